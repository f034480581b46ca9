//! The report on the tests of a drive, for people: a page of Markdown.

use crate::power::Kept;
use crate::speed::Measured;
use serde::Serialize;
use std::fmt::{self, Display, Formatter};
use zone::Geometry;

/// The results of all tests of a drive.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Facts about the drive and the host: a name and a value each.
    pub facts: Vec<(&'static str, String)>,
    /// Geometry of the drive.
    pub geometry: Geometry,
    /// The result of the conformance suite.
    pub conformance: Conformance,
    /// The measured speeds of commands.
    pub speed: Vec<Measured>,
    /// The outcomes of the rounds of the power test; empty if none was tried.
    pub power: Vec<Kept>,
    /// Conclusions for the use of the drive.
    pub remarks: Vec<Remark>,
}

/// The result of the conformance suite.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Conformance {
    /// The suite was not run.
    NotRun {
        /// The reason why no case could be run.
        why: String,
    },
    /// The drive conforms; notes say which cases were left out and where it uses a choice of the standards.
    Passed {
        /// The notes, one line each.
        notes: Vec<String>,
    },
    /// The drive broke a rule.
    Failed {
        /// The rule.
        why: String,
    },
}

/// A conclusion for the use of the drive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Remark {
    /// Whether it is a reason not to use the drive.
    pub is_fault: bool,
    /// The conclusion in words.
    pub text: String,
}

impl Report {
    /// Whether no remark is a reason not to use the drive.
    pub fn is_fit(&self) -> bool {
        !self.remarks.iter().any(|remark| remark.is_fault)
    }
}

/// Derives the remarks from the test results.
pub fn remarks(geometry: &Geometry, conformance: &Conformance, power: &[Kept]) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let mut add = |is_fault, text: String| remarks.push(Remark { is_fault, text });
    match conformance {
        Conformance::Failed { why } => {
            add(
                true,
                format!("it does not do what a zoned drive has to: {why}"),
            );
        }
        Conformance::NotRun { why } => {
            add(false, format!("the conformance suite was not run: {why}"))
        }
        Conformance::Passed { .. } => {}
    }
    let lossy = power.iter().filter(|kept| !kept.is_safe()).count();
    if lossy > 0 {
        let all = power.len();
        add(
            true,
            format!("it lost or changed flushed data in {lossy} of {all} rounds of the power test"),
        );
    } else if power
        .iter()
        .all(|kept| kept.ended_as_asked || kept.flushed == 0)
    {
        add(
            false,
            "its power was not cut: `zonestore drive power-test` shows whether it keeps what it has flushed".to_owned(),
        );
    }
    if (1..8).contains(&geometry.max_active_zones) {
        let limit = geometry.max_active_zones;
        add(
            true,
            format!("it has {limit} active zones at most; a store needs 8"),
        );
    } else if (8..13).contains(&geometry.max_active_zones) {
        let limit = geometry.max_active_zones;
        add(
            false,
            format!(
                "with {limit} active zones a store keeps one copy of its metadata; two need 13"
            ),
        );
    }
    remarks
}

fn micros(value: f64) -> String {
    match value {
        ..1000.0 => format!("{value:.0} µs"),
        ..1e6 => format!("{:.1} ms", value / 1e3),
        _ => format!("{:.1} s", value / 1e6),
    }
}

impl Measured {
    /// A row of the table: command, zones or size, speed, and median, 99 % and longest latency.
    pub fn row(&self) -> [String; 6] {
        let is_command = self.bytes == 0 || self.probe == "write a block and finish";
        let rate = match is_command {
            true => format!("{:.0} /s", self.commands as f64 / self.seconds.max(1e-9)),
            _ if self.probe == "read at random" => {
                format!(
                    "{:.0} reads/s",
                    self.requests as f64 / self.seconds.max(1e-9)
                )
            }
            _ => format!("{:.1} MiB/s", self.bytes_per_second() / f64::from(1 << 20)),
        };
        let of = |value: fn(&crate::Latencies) -> f64| {
            let latency = self.latency_us.as_ref();
            latency.map_or_else(String::new, |latency| micros(value(latency)))
        };
        let (median, p99, max) = (of(|l| l.median), of(|l| l.p99), of(|l| l.max));
        [
            self.probe.to_owned(),
            self.of.clone(),
            rate,
            median,
            p99,
            max,
        ]
    }
}

/// The head of the table of [`Measured::row`].
pub const HEAD: [&str; 6] = ["command", "of", "speed", "median", "p99", "longest"];

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "# A zoned drive, tried\n")?;
        let verdict = if self.is_fit() {
            "Nothing was found that speaks against this drive."
        } else {
            "**This drive should not be trusted with data.**"
        };
        writeln!(f, "{verdict}\n")?;
        for remark in &self.remarks {
            writeln!(f, "- {}", remark.text)?;
        }
        writeln!(f, "\n| | |\n|---|---|")?;
        for (name, value) in &self.facts {
            writeln!(f, "| {name} | {} |", value.replace('|', "\\|"))?;
        }
        writeln!(f, "| shape | {} |", self.geometry)?;
        writeln!(f, "\n## Conformance\n")?;
        match &self.conformance {
            Conformance::NotRun { why } => writeln!(f, "Not run: {why}.")?,
            Conformance::Failed { why } => writeln!(f, "Failed: {why}")?,
            Conformance::Passed { notes } => {
                writeln!(
                    f,
                    "Passed: every command in every condition, limits, ranges, data."
                )?;
                for note in notes {
                    writeln!(f, "- {note}")?;
                }
            }
        }
        writeln!(f, "\n## Speed\n\n| {} |", HEAD.join(" | "))?;
        writeln!(f, "|{}", "---|".repeat(HEAD.len()))?;
        for measured in &self.speed {
            writeln!(f, "| {} |", measured.row().join(" | "))?;
        }
        writeln!(f, "\n## Power cuts\n")?;
        if self.power.is_empty() {
            writeln!(f, "None was tried.")?;
        }
        for (index, kept) in self.power.iter().enumerate() {
            writeln!(f, "{}. {kept}", index + 1)?;
        }
        Ok(())
    }
}

impl Display for Kept {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let (flushed, unflushed) = (mib(self.flushed_bytes), mib(self.unflushed_bytes));
        if self.ended_as_asked {
            write!(f, "its power was not cut: ")?;
        }
        let flushes = zone::count(self.flushed, "flush").replace("flushs", "flushes");
        write!(f, "{flushes}, {flushed:.1} MiB of them still live: ")?;
        match self.is_safe() {
            true => write!(f, "all there")?,
            false => write!(
                f,
                "{} bytes are lost and {} are not what was written",
                self.lost_bytes, self.wrong_bytes
            )?,
        }
        write!(f, "; {unflushed:.1} MiB that no flush covered were kept")?;
        if self.unflushed_wrong_bytes > 0 {
            write!(
                f,
                ", and {} bytes of that are not what was sent",
                self.unflushed_wrong_bytes
            )?;
        }
        for fault in &self.faults {
            write!(f, "\n   zone {}: {}", fault.zone, fault.what)?;
        }
        Ok(())
    }
}
