//! `zonestore drive power-test`: checks that a drive keeps flushed data through a power cut.

use crate::args::DrivePowerTest;
use crate::conformance;
use crate::drive_file;
use crate::errors::{CommandError, CommandResult, fail};
use crate::local_file;
use crate::output::{Output, tell};
use device::{Drive, ZonedDevice};
use device_qualify::power::{self, Kept, LogError, Round, Rounds};
use runtime::Runtime;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use terminal::{Interrupt, Progress, shell_word};
use zone::{ZoneError, ZoneId};

/// Writes a round, or checks the last one.
pub fn run(arguments: &DrivePowerTest, out: &mut Output) -> CommandResult {
    if arguments.check {
        return check(arguments, out);
    }
    conformance::check_erase(&arguments.drive, arguments.yes_erase)?;
    write(arguments, out)
}

/// Results of the checks in a log, all of this drive.
pub fn checked(log: &Path, drive: &Drive) -> CommandResult<Vec<Kept>> {
    let rounds = read(log)?;
    check_drive(&rounds, log, drive)?;
    let rounds = rounds.rounds.into_iter();
    let kept: Vec<Kept> = rounds.filter_map(|round| round.kept).collect();
    if kept.is_empty() {
        return fail!(
            NotFound, "{}: no round of it was checked", log.display();
            "zonestore drive power-test DRIVE --log {} --check", shell_word(log)
        );
    }
    Ok(kept)
}

/// Refuses a log of another drive.
fn check_drive(rounds: &Rounds, log: &Path, drive: &Drive) -> CommandResult {
    let name = name(drive);
    let mut rounds = rounds.rounds.iter();
    let fits = rounds.try_for_each(|one| one.round.fits(drive.geometry(), name.as_deref()));
    fits.or_else(|error| {
        let (shown, log) = (drive.path().display(), log.display());
        fail!(Usage, "{shown}, {log}: {error}"; "name the drive that was written to, or another log")
    })
}

/// The name that a drive has wherever it is attached: the UUID of a file, and of a device its identifier or serial number.
fn name(drive: &Drive) -> Option<String> {
    if let Some(file) = drive.as_file() {
        return Some(file.uuid().to_string());
    }
    let device = std::fs::metadata(drive.path()).ok()?;
    let kind = match device.file_type().is_block_device() {
        true => "block",
        false => "char",
    };
    let (major, minor) = (
        rustix::fs::major(device.rdev()),
        rustix::fs::minor(device.rdev()),
    );
    let folder = Path::new("/sys/dev").join(format!("{kind}/{major}:{minor}"));
    // The character device of a namespace has no identifier of its own, and the serial number is that of all namespaces.
    let node = drive.path().file_name().and_then(|name| name.to_str());
    let sibling = node.and_then(|node| node.strip_prefix("ng"));
    let sibling = sibling.map(|of| Path::new("/sys/class/block").join(format!("nvme{of}/wwid")));
    let own = ["wwid", "device/wwid", "device/serial"].map(|file| folder.join(file));
    sibling.into_iter().chain(own).find_map(|file| {
        let text = std::fs::read_to_string(file).ok()?;
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        (!text.is_empty()).then_some(text)
    })
}

fn read(log: &Path) -> CommandResult<Rounds> {
    let opened = terminal::open(log, File::options().read(true));
    let file = opened.map_err(|error| CommandError::file(log, &error))?;
    Rounds::read(BufReader::new(file)).or_else(|error| match error {
        LogError::Io(error) => Err(CommandError::file(log, &error)),
        LogError::Version { .. } => fail!(
            Usage, "{}: {error}", log.display();
            "use the program version that wrote it; another --log begins anew"
        ),
        LogError::Line { .. } | LogError::Empty => fail!(Usage, "{}: {error}", log.display()),
    })
}

/// The hint for log failures: a flush that is not in the log does not count.
const ELSEWHERE: &str =
    "name a file in --log, on a disk with room that keeps its power; - is standard output";

/// Destination of the log of flushes.
enum Log {
    File(File),
    StandardOutput,
}

impl Log {
    /// Opens the log for a new round.
    fn for_round(path: &Path, drive: &Drive) -> CommandResult<Self> {
        if local_file::is_standard_output(path) {
            // Refuses one that is closed.
            local_file::destination(path)?;
            return Ok(Self::StandardOutput);
        }
        let is_new = std::fs::metadata(path).map_or(true, |found| found.len() == 0);
        let rounds = if is_new {
            Rounds::default()
        } else {
            read(path)?
        };
        check_drive(&rounds, path, drive)?;
        if rounds.rounds.last().is_some_and(|last| last.kept.is_none()) {
            return fail!(
                Refused, "{}: its last round was not checked", path.display();
                "--check does; another --log begins anew"
            );
        }
        Self::behind(path, rounds.whole_bytes)
            .map_err(|error| CommandError::file(path, &error).hint(ELSEWHERE))
    }

    /// Opens the log for appending after `bytes`; a torn line there is truncated.
    fn behind(path: &Path, bytes: u64) -> io::Result<Self> {
        // Opening a pipe would wait for its other end, and what is open already would be cut.
        let is_other = path.metadata().is_ok_and(|found| !found.is_file());
        if is_other || runtime::descriptor(path).is_some() {
            let why = "open already, or a directory, pipe or device, and no file";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let mut options = OpenOptions::new();
        let mut file = options
            .create(true)
            .write(true)
            .truncate(false)
            .open(path)?;
        file.set_len(bytes)?;
        file.seek(SeekFrom::End(0))?;
        Ok(Self::File(file))
    }

    fn add(&mut self, line: &str) -> io::Result<()> {
        match self {
            Self::File(file) => {
                file.write_all(line.as_bytes())?;
                file.sync_data()
            }
            Self::StandardOutput => {
                io::stdout().write_all(line.as_bytes())?;
                io::stdout().flush()
            }
        }
    }
}

/// Why writing ended.
enum Ended {
    Drive(ZoneError),
    Log(io::Error),
}

impl From<ZoneError> for Ended {
    fn from(error: ZoneError) -> Self {
        Self::Drive(error)
    }
}

fn write(arguments: &DrivePowerTest, out: &mut Output) -> CommandResult {
    let path = &arguments.drive;
    let drive = drive_file::open(path)?;
    let seed = u64::from_le_bytes(Runtime::system().bytes()?);
    let round = Round::new(drive.geometry(), arguments.zones, seed)
        .or_else(|error| fail!(Usage, "{}: {error}", path.display()))?;
    let round = Round {
        drive: self::name(&drive),
        ..round
    };
    let mut log = Log::for_round(&arguments.log, &drive)?;
    let round = match log {
        Log::File(_) => round,
        // What reads it may be behind.
        Log::StandardOutput => round.with_a_lagging_log(),
    };
    let interrupt = Interrupt::listen()?;
    let progress = Progress::words("writing; cut the power now");
    let mut last = 0;
    let failed = |error| CommandError::file(&arguments.log, &error).hint(ELSEWHERE);
    log.add(&Rounds::head(&round)).map_err(failed)?;
    let ended = power::write(&drive, &round, &mut |number| {
        log.add(&Rounds::flushed(number)).map_err(Ended::Log)?;
        last = number;
        progress.message(format!("{number} flushes noted"));
        let is_enough = arguments.flushes.is_some_and(|most| number >= most);
        Ok(!is_enough && !interrupt.is_wished())
    });
    drop(progress);
    let why = match ended {
        Ok(()) => {
            log.add(Rounds::ENDED).map_err(failed)?;
            "ended as asked, and the power was not cut".to_owned()
        }
        Err(Ended::Log(error)) => return Err(failed(error)),
        // This is expected: the drive has lost its power.
        Err(Ended::Drive(error)) if is_gone(&drive, &error) => {
            format!("the drive does not answer any more: {error}")
        }
        // Without this line, the check would take the round for one with a power cut.
        Err(Ended::Drive(error)) => {
            log.add(Rounds::ENDED).map_err(failed)?;
            let mut made = CommandError::from(error);
            made.message += "; the drive still answers, so this round is not one of a power cut";
            return Err(made);
        }
    };
    if matches!(log, Log::StandardOutput) {
        tell(format_args!("zonestore: {why}; {last} flushes were noted"));
        return Ok(());
    }
    out.line(format_args!("{why}; {last} flushes were noted"))?;
    out.line(format_args!(
        "when it is back: zonestore drive power-test {} --log {} --check",
        shell_word(path),
        shell_word(&arguments.log)
    ))?;
    out.value(&serde_json::json!({ "flushed": last, "ended": why }))
}

/// Whether a drive that failed a command with `error` answers no other command either.
fn is_gone(drive: &Drive, error: &ZoneError) -> bool {
    matches!(error, ZoneError::PowerLost { .. }) || drive.report(ZoneId(0), 1).is_err()
}

fn check(arguments: &DrivePowerTest, out: &mut Output) -> CommandResult {
    let (path, log) = (&arguments.drive, &arguments.log);
    // The result is noted in it, so a pipe is refused.
    local_file::regular(log)?;
    let rounds = read(log)?;
    let Some(last) = rounds.rounds.last() else {
        return fail!(Usage, "{}: no round of the test has begun", log.display());
    };
    let drive = drive_file::open_read_only(path)?;
    check_drive(&rounds, log, &drive)?;
    let progress = Progress::steps("comparing zones", Some(0));
    let mut kept = power::check(&drive, &last.round, last.flushed, &mut |done, all| {
        progress.set_of(done, all);
    })?;
    kept.ended_as_asked = last.ended_as_asked;
    drop(progress);
    Log::behind(log, rounds.whole_bytes)
        .and_then(|mut file| file.add(&Rounds::kept(&kept)))
        .map_err(|error| CommandError::file(log, &error))?;
    out.line(format_args!("{kept}"))?;
    out.value(&kept)?;
    if kept.is_safe() {
        return Ok(());
    }
    fail!(
        Damaged, "{}: the drive has not kept what it had flushed", path.display();
        "switch its write cache off (hdparm -W 0, nvme set-feature -f 6) and test again, or do not trust it with data"
    )
}
