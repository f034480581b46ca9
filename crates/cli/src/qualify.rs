//! `zonestore drive qualify`: tests a drive before it is trusted with data, and writes a report.

use crate::args::DriveQualify;
use crate::conformance;
use crate::drive_file;
use crate::errors::{CommandError, CommandResult, fail};
use crate::local_file;
use crate::output::Output;
use crate::power_test;
use device::ZonedDevice;
use device_qualify::report::{Conformance, HEAD, Report, remarks};
use device_qualify::speed::{self, Options};
use runtime::Runtime;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use terminal::{Progress, shell_word};

/// Tests a drive; all data on it is lost.
pub fn qualify(arguments: &DriveQualify, out: &mut Output) -> CommandResult {
    let path = &arguments.drive;
    conformance::check_erase(path, arguments.yes_erase)?;
    let drive = Arc::new(drive_file::open(path)?);
    // Before minutes of work, the log is read and the report file created.
    let power = match &arguments.power_log {
        Some(log) => power_test::checked(log, &drive)?,
        None => Vec::new(),
    };
    let report_file = match &arguments.report {
        Some(name) => Some((name, local_file::create_for_later(name)?)),
        None => None,
    };
    let geometry = drive.geometry().clone();
    let mut facts = vec![
        ("drive", path.display().to_string()),
        (
            "kind",
            match drive.as_file() {
                Some(file) => format!(
                    "emulated, after {}: its speed is that of this machine's memory and disk",
                    file.profile_name()
                ),
                None => drive.profile_name().to_owned(),
            },
        ),
    ];
    facts.extend(device::facts::of_device(path));
    let options = Options {
        zones: arguments.zones,
        most_time: Duration::from_secs(arguments.most_time.0.max(1)),
    };
    let progress = Progress::words("measuring");
    let mut tell = |measured: &speed::Measured| {
        progress.message(format!("{}, {}", measured.probe, measured.of));
    };
    let speed = speed::measure(&*drive, &Runtime::system(), options, &mut tell)?;
    drop(progress);
    // The conformance suite runs last, because it leaves empty zones.
    let progress = Progress::words("conformance");
    let suite = || device_conformance::run_on(drive.clone());
    let conformance = match conformance::judged(suite) {
        Ok(Ok(notes)) => Conformance::Passed { notes },
        Ok(Err(why)) => Conformance::NotRun { why },
        Err(why) => Conformance::Failed { why },
    };
    drop(progress);
    let report = Report {
        remarks: remarks(&geometry, &conformance, &power),
        facts,
        geometry,
        conformance,
        speed,
        power,
    };
    let mut rows = vec![HEAD.map(str::to_owned).to_vec()];
    rows.extend(report.speed.iter().map(|measured| measured.row().to_vec()));
    out.table(&[0, 1], &rows)?;
    for remark in &report.remarks {
        out.line(format_args!("{}", remark.text))?;
    }
    if let Some((name, mut file)) = report_file {
        let written = file.write_all(report.to_string().as_bytes());
        written.map_err(|error| CommandError::file(name, &error))?;
        file.publish()?;
        out.line(format_args!("the report is in {}", name.display()))?;
    }
    out.value(&report)?;
    if report.is_fit() {
        return out.line(format_args!(
            "zonestore store mkfs {} --force    makes a store on it",
            shell_word(path)
        ));
    }
    fail!(
        Failed, "{}: this drive should not be trusted with data", path.display();
        "what is above says why"
    )
}
