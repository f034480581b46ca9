//! Unmodified LevelDB programs on a drive, by preloading the library: one in C++, compiled here, and
//! Debian's plyvel.
//!
//! They need libleveldb-dev, g++ and python3-plyvel; without them these tests fail rather than pass
//! silently.
#![allow(clippy::unwrap_used)]

mod exits;
mod kill_9;
mod leveldb;
mod refusals;
#[path = "../../../bluefs-c/tests/support/mod.rs"]
mod support;
mod zeafs_drive;

use device::FileDrive;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use support::{Drive, built, output, words};
use tempfile::TempDir;
use zeafs_drive::both;

/// The Python that Debian's packages are for.
const PYTHON: &str = "/usr/bin/python3";

impl Drive {
    fn formatted() -> Self {
        Self::of_size(256 << 20)
    }

    fn command(&self, program: impl AsRef<Path>, arguments: &[&str]) -> Command {
        let mut uri = OsString::from(self.scheme);
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
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name)
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

fn succeeded(output: &Output) -> String {
    assert!(output.status.success(), "{}", words(output));
    assert!(output.stderr.is_empty(), "{}", words(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
