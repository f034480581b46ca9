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
#[path = "../../../bluefs-c/tests/support/mod.rs"]
mod support;

use device::FileDrive;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use support::{Drive, built, output, words};
use tempfile::TempDir;
use zone::ZoneCondition;

const SIZE: u64 = 512 << 20;

impl Drive {
    fn formatted() -> Self {
        Self::of_size(SIZE)
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
}

/// The library as it was built for this test.
fn library() -> PathBuf {
    built("libzonestore_rocksdb.so")
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
