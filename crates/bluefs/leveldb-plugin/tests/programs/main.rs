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
