//! A drive file for programs that a plug-in is loaded into, and what these programs say. For the tests of
//! both plug-ins.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use bluefs::{BlueFs, FormatOptions, MountOptions, Role};
use device::{FileDrive, ZonedDevice, profile};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;
use tempfile::TempDir;
use zone::ZoneId;
use zone_alloc::ZonePool;

/// A drive file in a directory of its own.
pub struct Drive {
    _directory: TempDir,
    pub path: PathBuf,
    /// How its address begins.
    pub scheme: &'static str,
}

impl Drive {
    pub fn unformatted(size: u64) -> Self {
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
            scheme: "zonestore://",
        }
    }

    pub fn of_size(size: u64) -> Self {
        let drive = Self::unformatted(size);
        let options = FormatOptions {
            uuid: [9; 16],
            role: Role::Alone,
            copies: 1,
            force: false,
        };
        BlueFs::format(&FileDrive::open(&drive.path).unwrap(), &options).unwrap();
        drive
    }

    pub fn mounted<T>(&self, work: impl FnOnce(&BlueFs) -> T) -> T {
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
    pub fn check(&self) {
        let report = self.mounted(|fs| fs.check(true).unwrap());
        assert!(report.errors.is_empty(), "{report:?}");
    }
}

/// A library as it was built for this test.
pub fn built(file: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.with_file_name(file);
    assert!(path.is_file(), "{} is missing", path.display());
    path
}

pub fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| {
        panic!(
            "{:?}: {error}; scripts/setup --test installs what is needed",
            command.get_program()
        )
    })
}

pub fn words(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!(
        "{}: {}{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    )
}
