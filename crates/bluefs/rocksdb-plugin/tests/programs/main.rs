//! Debian's unmodified RocksDB programs on a drive, by preloading the library.
//!
//! They come with `rocksdb-tools`; without them these tests fail rather than pass silently.
#![allow(clippy::unwrap_used)]

mod db_bench;
mod default_file_system;
mod kill_9;
mod ldb;
mod linked;
mod refusals;

use bluefs::{BlueFs, FormatOptions, MountOptions, Role};
use device::{FileDrive, ZonedDevice, profile};
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use tempfile::TempDir;
use zone::ZoneId;
use zone_alloc::ZonePool;

const SIZE: u64 = 512 << 20;

/// A drive file in a directory of its own.
struct Drive {
    _directory: TempDir,
    path: PathBuf,
}

impl Drive {
    fn unformatted() -> Self {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("a drive.zoned");
        let geometry = profile::by_name("test-small")
            .unwrap()
            .geometry(SIZE, None)
            .unwrap();
        FileDrive::create(&path, &geometry, "test-small").unwrap();
        Self {
            _directory: directory,
            path,
        }
    }

    fn formatted() -> Self {
        let drive = Self::unformatted();
        let options = FormatOptions {
            uuid: [9; 16],
            role: Role::Alone,
            force: false,
        };
        BlueFs::format(&FileDrive::open(&drive.path).unwrap(), &options).unwrap();
        drive
    }

    fn uri(&self) -> String {
        format!("--fs_uri=zonestore://{}", self.path.display())
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .arg(self.uri())
            .args(arguments)
            .env("LD_PRELOAD", library());
        command.env("LC_ALL", "C").stdin(Stdio::null());
        command
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Output {
        output(&mut self.command(program, arguments))
    }

    /// What a run that has to succeed prints.
    fn ok(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.run(program, arguments);
        assert!(
            output.status.success(),
            "{program} {arguments:?}: {}",
            words(&output)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The keys of `/db`, as hexadecimal digits.
    fn keys(&self) -> Vec<String> {
        let scan = self.ok("ldb", &["--db=/db", "scan", "--hex"]);
        scan.lines()
            .map(|line| line.split(" : ").next().unwrap().to_owned())
            .collect()
    }

    /// The file system must be whole when nobody uses it.
    fn check(&self) {
        let device: Arc<dyn ZonedDevice> = Arc::new(FileDrive::open(&self.path).unwrap());
        let g = device.geometry().clone();
        let report = device.report(ZoneId(0), g.zone_count).unwrap();
        let pool = Arc::new(ZonePool::new(g, &report));
        let fs = BlueFs::mount(device, pool, MountOptions::default()).unwrap();
        let report = fs.check(true).unwrap();
        assert!(report.errors.is_empty(), "{report:?}");
        fs.unmount().unwrap();
    }
}

/// The library as it was built for this test.
fn library() -> PathBuf {
    built("libzonestore_rocksdb.so")
}

fn built(file: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.with_file_name(file);
    assert!(path.is_file(), "{} is missing", path.display());
    path
}

fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| {
        panic!(
            "{:?}: {error}; apt-get install rocksdb-tools",
            command.get_program()
        )
    })
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

/// Runs all three programs on what they cannot use; every one must end by itself with an error and
/// one line that says all of `expected`.
fn refused(drive: &Drive, expected: &[&str]) {
    let calls: [(&str, &[&str]); 3] = [
        (
            "db_bench",
            &["--db=/db", "--benchmarks=fillseq", "--num=10"],
        ),
        ("ldb", &["--db=/db", "scan"]),
        ("sst_dump", &["--file=/db"]),
    ];
    for (program, arguments) in calls {
        let output = drive.run(program, arguments);
        let said = words(&output);
        assert!(
            output.status.code().is_some_and(|code| code != 0),
            "{program}: {said}"
        );
        let found = said
            .lines()
            .any(|line| expected.iter().all(|words| line.contains(words)));
        assert!(found, "{program}: {said}");
        assert!(!said.contains("panicked"), "{program}: {said}");
    }
}
