//! Unmodified LevelDB programs on a drive, by preloading the library: one in C++, compiled here, and
//! Debian's plyvel.
//!
//! They need libleveldb-dev, g++ and python3-plyvel; without them these tests fail rather than pass
//! silently.

#![allow(clippy::unwrap_used)]

use bluefs::{BlueFs, FormatOptions, MountOptions, Role};
use device::{FileDrive, ZonedDevice, profile};
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, OnceLock};
use tempfile::TempDir;
use zone::ZoneId;
use zone_alloc::ZonePool;

/// The Python that Debian's packages are for.
const PYTHON: &str = "/usr/bin/python3";

/// A drive file in a directory of its own.
struct Drive {
    _directory: TempDir,
    path: PathBuf,
}

impl Drive {
    fn unformatted(size: u64) -> Self {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("a drive.zoned");
        let geometry = profile::by_name("test-small")
            .unwrap()
            .geometry(size, None)
            .unwrap();
        FileDrive::create(&path, &geometry, "test-small").unwrap();
        Self {
            _directory: directory,
            path,
        }
    }

    fn formatted() -> Self {
        Self::of_size(256 << 20)
    }

    fn of_size(size: u64) -> Self {
        let drive = Self::unformatted(size);
        let options = FormatOptions {
            uuid: [9; 16],
            role: Role::Alone,
            force: false,
        };
        BlueFs::format(&FileDrive::open(&drive.path).unwrap(), &options).unwrap();
        drive
    }

    fn command(&self, program: impl AsRef<Path>, arguments: &[&str]) -> Command {
        let mut uri = OsString::from("zonestore://");
        uri.push(&self.path);
        let mut command = Command::new(program.as_ref());
        command.args(arguments).env("LC_ALL", "C");
        preloaded(&mut command).env("ZONESTORE_URI", uri);
        command.stdin(Stdio::null());
        command
    }

    fn client(&self, arguments: &[&str]) -> Output {
        output(&mut self.command(client(), arguments))
    }

    /// What the client prints that has to succeed.
    fn ok(&self, arguments: &[&str]) -> String {
        succeeded(&self.client(arguments))
    }

    fn python(&self, script: &str) -> String {
        let script = source(script);
        succeeded(&output(
            &mut self.command(PYTHON, &[script.to_str().unwrap()]),
        ))
    }

    fn mounted<T>(&self, work: impl FnOnce(&BlueFs) -> T) -> T {
        let device: Arc<dyn ZonedDevice> = Arc::new(FileDrive::open(&self.path).unwrap());
        let g = device.geometry().clone();
        let report = device.report(ZoneId(0), g.zone_count).unwrap();
        let pool = Arc::new(ZonePool::new(g, &report));
        let fs = BlueFs::mount(device, pool, MountOptions::default()).unwrap();
        let done = work(&fs);
        fs.unmount().unwrap();
        done
    }

    /// The file system must be whole when nobody uses it.
    fn check(&self) {
        let report = self.mounted(|fs| fs.check(true).unwrap());
        assert!(report.errors.is_empty(), "{report:?}");
    }
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name)
}

/// A library as it was built for this test.
fn built(file: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.with_file_name(file);
    assert!(path.is_file(), "{} is missing", path.display());
    path
}

/// As `zonestore leveldb` starts a program.
fn preloaded(command: &mut Command) -> &mut Command {
    command.env("LD_PRELOAD", built("libzonestore_preload.so"));
    command.env("ZONESTORE_LEVELDB_LIB", built("libzonestore_leveldb.so"))
}

/// The C++ program, compiled once.
fn client() -> &'static Path {
    static CLIENT: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = CLIENT.get_or_init(|| {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("client");
        let mut compiler = Command::new("g++");
        compiler.args(["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]);
        compiler.arg(&path).arg(source("client.cc"));
        succeeded(&output(compiler.arg("-lleveldb")));
        (directory, path)
    });
    path
}

fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| {
        panic!(
            "{:?}: {error}; scripts/setup --test installs what is needed",
            command.get_program()
        )
    })
}

fn succeeded(output: &Output) -> String {
    assert!(output.status.success(), "{}", words(output));
    assert!(output.stderr.is_empty(), "{}", words(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn words(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!(
        "{}: {}{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    )
}

#[test]
fn the_environment_does_as_leveldb_says() {
    let drive = Drive::formatted();
    drive.ok(&["environment", "/an/environment"]);
    drive.ok(&["drive", "/another/one"]);
    drive.check();
    assert!(!Path::new("/an").exists());
}

#[test]
fn a_database_works_comes_back_is_repaired_and_destroyed() {
    let drive = Drive::formatted();
    drive.ok(&["work"]);
    drive.check();
    let names = drive.mounted(|fs| fs.list("/some/db").unwrap());
    assert!(names.contains(&"CURRENT".to_owned()), "{names:?}");
    drive.ok(&["verify"]);
    drive.ok(&["repair"]);
    drive.check();
    drive.ok(&["destroy"]);
    // What the repair put aside, and what the attempt to open it has made.
    let left = drive.mounted(|fs| fs.list("/some/db").unwrap());
    assert_eq!(left, ["LOCK", "LOG", "lost"]);
    drive.check();
}

#[test]
fn plyvel_does_everything_on_a_drive() {
    let drive = Drive::formatted();
    drive.python("everything.py");
    drive.check();
    drive.python("everything.py");
    drive.check();
}

#[test]
fn what_plyvel_synced_survives_kill_9() {
    let drive = Drive::formatted();
    let script = source("acknowledge.py");
    let mut least = 0;
    for more in [100, 2_000, 15_000] {
        let mut command = drive.command(PYTHON, &[script.to_str().unwrap()]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        let wanted = least + more;
        while least < wanted {
            least = said.next().unwrap().unwrap().parse().unwrap();
        }
        child.kill().unwrap();
        let last = said.map_while(Result::ok).last();
        least = last.map_or(least, |line| line.parse().unwrap());
        child.wait().unwrap();
        drive.check();
        let list =
            "import plyvel\nfor k, v in plyvel.DB('/db'): print(int(k), int(v[:len(v)//20]))";
        let found = succeeded(&output(&mut drive.command(PYTHON, &["-c", list])));
        let count = found.lines().count() as u64;
        for (number, line) in found.lines().enumerate() {
            assert_eq!(line, format!("{number} {number}"));
        }
        assert!(count >= least, "{count} keys of {least}");
    }
}

/// LevelDB says that a write without sync survives the process: the host has it.
#[test]
fn what_plyvel_did_not_sync_survives_kill_9_too() {
    let drive = Drive::formatted();
    let put = "import plyvel, sys, signal
db = plyvel.DB('/db', create_if_missing=True, write_buffer_size=300000)
first, end = int(sys.argv[1]), int(sys.argv[2])
for n in range(first, end): db.put(b'%06d' % n, b'v' * 400)
signal.raise_signal(signal.SIGKILL)";
    let list =
        "import plyvel\nprint(*[int(k) for k in plyvel.DB('/db').iterator(include_value=False)])";
    // Less than a block of the drive, several memtables, and one more after another process's look.
    for (first, end) in [(0, 1), (1, 384), (384, 5000), (5000, 5001)] {
        let arguments = ["-c", put, &first.to_string(), &end.to_string()];
        let killed = output(&mut drive.command(PYTHON, &arguments));
        assert_eq!(killed.status.signal(), Some(9), "{}", words(&killed));
        if first == 384 {
            drive.check();
        }
        let found = succeeded(&output(&mut drive.command(PYTHON, &["-c", list])));
        let numbers: Vec<u64> = found
            .split_whitespace()
            .map(|n| n.parse().unwrap())
            .collect();
        assert!(
            numbers == (0..end).collect::<Vec<_>>(),
            "{} of {end}",
            numbers.len()
        );
    }
    drive.check();
}

/// Where nothing is kept beside the drive, what was put a second ago survives all the same.
#[test]
fn what_has_an_age_survives_kill_9_without_the_hosts_memory() {
    let drive = Drive::formatted();
    // Nothing can be made there.
    let mut beside = drive.path.clone().into_os_string();
    beside.push(".unsynced");
    std::fs::create_dir(&beside).unwrap();
    // Less than what is written out for its size.
    let put = "import plyvel, time
db = plyvel.DB('/db', create_if_missing=True)
for n in range(1000): db.put(b'%08d' % n, b'v' * 400)
while True: time.sleep(1)";
    let mut command = drive.command(PYTHON, &["-c", put]);
    command.env("ZONESTORE_LOG_AGE_MS", "50");
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    // However long that takes here.
    let mut search = Command::new("grep");
    search.args(["-qaF", "00000999"]).arg(&drive.path);
    while !output(&mut search).status.success() {
        assert!(child.try_wait().unwrap().is_none());
    }
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::remove_dir(&beside).unwrap();
    drive.check();
    let list = "import plyvel\nprint(sum(1 for _ in plyvel.DB('/db')))";
    let found = succeeded(&output(&mut drive.command(PYTHON, &["-c", list])));
    assert_eq!(found.trim(), "1000");
}

#[test]
fn a_synced_put_vouches_for_the_log_in_front_of_its_own() {
    let drive = Drive::formatted();
    let killed = drive.client(&["hole"]);
    assert_eq!(killed.status.signal(), Some(9), "{}", words(&killed));
    let acknowledged = String::from_utf8(killed.stdout).unwrap();
    assert_eq!(drive.ok(&["prefix"]), acknowledged);
    drive.check();
}

#[test]
fn a_program_that_closes_nothing_loses_nothing() {
    let drive = Drive::formatted();
    drive.ok(&["leak"]);
    drive.check();
    assert_eq!(drive.ok(&["prefix"]), "1\n");
    assert_eq!(drive.ok(&["prefix", "/some/db2"]), "1\n");
}

#[test]
fn a_forked_child_cannot_write_to_its_parents_drive() {
    let drive = Drive::formatted();
    drive.python("fork.py");
    drive.check();
}

/// LevelDB promises of a put that failed that no later one succeeds, and not that it is gone: its record
/// may have reached the log before there was no space for something else, or find space later. To open a
/// full database it needs room for a table of its log, which something else makes here.
#[test]
fn a_full_drive_is_an_error_and_can_be_emptied() {
    let number = |text: String| text.trim().parse::<u64>().unwrap();
    let drive = Drive::of_size(36 << 20);
    drive.mounted(|fs| {
        let mut other = fs.create("/other").unwrap();
        other.append(&vec![1; 4 << 20]).unwrap();
        other.sync().unwrap();
        other.close().unwrap();
    });
    let stored = number(drive.ok(&["full"]));
    drive.check();
    drive.mounted(|fs| fs.delete("/other").unwrap());
    let found = number(drive.ok(&["prefix"]));
    assert!(
        (stored..=stored + 1).contains(&found),
        "{found} of {stored}"
    );
    drive.ok(&["drain"]);
    assert_eq!(drive.ok(&["prefix"]), "200\n");
    drive.check();
}

/// Runs both programs on what they cannot use; each must end by itself with an error and one line
/// that says all of `expected`.
fn refused(drive: &Drive, expected: &[&str]) {
    let import = "import plyvel; plyvel.DB('/db', create_if_missing=True)";
    let programs = [
        drive.command(client(), &["work"]),
        drive.command(PYTHON, &["-c", import]),
    ];
    for mut command in programs {
        let output = output(&mut command);
        let said = words(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        let found = said
            .lines()
            .filter(|line| expected.iter().all(|words| line.contains(words)));
        assert_eq!(found.count(), 1, "{said}");
        assert!(!said.contains("panicked"), "{said}");
    }
}

#[test]
fn a_drive_that_cannot_be_used_is_one_clear_line_and_no_crash() {
    let drive = Drive::formatted();
    let name = drive.path.to_str().unwrap().to_owned();
    let held = FileDrive::open(&drive.path).unwrap();
    refused(&drive, &["IO error", &name, "another process"]);
    drop(held);

    refused(
        &Drive::unformatted(64 << 20),
        &["not formatted", "zonestore fs mkfs"],
    );

    let mut damaged = std::fs::read(&drive.path).unwrap();
    damaged[100] ^= 1;
    std::fs::write(&drive.path, &damaged).unwrap();
    refused(&drive, &[&name]);
    assert!(
        std::fs::read(&drive.path).unwrap() == damaged,
        "a damaged drive was written to"
    );

    std::fs::write(&drive.path, b"something else").unwrap();
    refused(&drive, &[&name, "not a drive file"]);
    std::fs::remove_file(&drive.path).unwrap();
    refused(&drive, &[&name, "No such file"]);
    std::fs::create_dir(&drive.path).unwrap();
    refused(&drive, &[&name]);
}

#[test]
fn an_address_that_is_none_is_said() {
    let drive = Drive::formatted();
    let mut command = drive.command(client(), &["work"]);
    let output = output(command.env("ZONESTORE_URI", "/some/drive"));
    assert_eq!(output.status.code(), Some(1));
    let said = words(&output);
    assert!(said.contains("zonestore:///path/of/drive"), "{said}");
}

#[test]
fn without_a_drive_programs_run_as_always() {
    let directory = TempDir::new().unwrap();
    let database = directory.path().join("db");
    let environment = directory.path().join("environment");
    for command in [
        Command::new("true").arg("x"),
        Command::new(client()).arg("work").arg(&database),
        Command::new(client()).arg("environment").arg(&environment),
    ] {
        preloaded(command);
        succeeded(&output(command.env_remove("ZONESTORE_URI")));
    }
    assert!(database.join("CURRENT").is_file());
    // One that inherits all of it, and needs no database, does not touch the drive.
    let drive = Drive::formatted();
    let _held = FileDrive::open(&drive.path).unwrap();
    let import = "import plyvel, subprocess; subprocess.run(['true'], check=True)";
    succeeded(&output(&mut drive.command(PYTHON, &["-c", import])));
}
