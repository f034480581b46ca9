//! The place where db_bench runs: a fresh drive with BlueFS, or a fresh directory beside it.

use crate::db_bench::{BenchStatistics, Measurements, measure};
use crate::error::{Error, Result};
use bluefs::{BlueFs, FormatOptions, Role};
use device::FileDrive;
use runtime::Runtime;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use zone::Geometry;

/// Geometry and profile of the drives that a benchmark makes.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Zones and limits of the drives.
    pub geometry: Geometry,
    /// The name of their profile.
    pub profile: String,
}

/// Paths of a benchmark's files, all of which are removed on drop.
pub struct Place {
    /// Path of the drive file.
    pub drive: PathBuf,
    folder: PathBuf,
    statistics: PathBuf,
    shape: Shape,
}

impl Place {
    /// A place for drives of this shape. Fails if a file exists at one of its paths.
    pub fn at(drive: &Path, shape: Shape) -> Result<Self> {
        let beside = |suffix: &str| {
            let mut name = drive.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        let folder = beside(".host");
        for path in [drive, folder.as_path()] {
            if std::fs::symlink_metadata(path).is_ok() {
                let path = path.to_owned();
                return Err(Error::Exists { path });
            }
        }
        Ok(Self {
            drive: drive.to_owned(),
            folder,
            statistics: beside(".statistics.json"),
            shape,
        })
    }

    /// Makes the drive, with an empty BlueFS on it.
    pub fn make_drive(&self) -> Result<()> {
        let Shape { geometry, profile } = &self.shape;
        let drive = FileDrive::create(&self.drive, geometry, profile)?;
        let uuid = Runtime::system().bytes();
        let options = FormatOptions {
            uuid: uuid.map_err(|e| Error::file(&self.drive, e))?,
            role: Role::Alone,
            copies: 1,
            force: false,
        };
        Ok(BlueFs::format(&drive, &options)?)
    }

    /// Removes the drive.
    pub fn remove_drive(&self) -> Result<()> {
        std::fs::remove_file(&self.drive).map_err(|e| Error::file(&self.drive, e))
    }

    /// Runs db_bench on the drive, which has been made before.
    pub fn on_drive(
        &self,
        names: &[&str],
        arguments: &[String],
    ) -> Result<(Measurements, BenchStatistics)> {
        let fixed = ["db_bench", "--db=/db"].map(OsString::from);
        let all = arguments.iter().map(OsString::from);
        let program: Vec<OsString> = fixed.into_iter().chain(all).collect();
        let mut launch = launch::rocksdb::launch(&self.drive, &program)?;
        launch.command.env("ZONESTORE_STATS", &self.statistics);
        let measured = measure(&mut launch.command, names)?;
        let statistics = std::fs::read(&self.statistics)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        let _ = std::fs::remove_file(&self.statistics);
        Ok((measured, BenchStatistics(statistics)))
    }

    /// Runs db_bench on a fresh drive.
    pub fn on_bluefs(
        &self,
        names: &[&str],
        arguments: &[String],
    ) -> Result<(Measurements, BenchStatistics)> {
        self.make_drive()?;
        let measured = self.on_drive(names, arguments)?;
        self.remove_drive()?;
        Ok(measured)
    }

    /// Runs db_bench in a fresh directory of the host's file system.
    pub fn on_host(&self, names: &[&str], arguments: &[String]) -> Result<Measurements> {
        let folder = &self.folder;
        std::fs::create_dir(folder).map_err(|e| Error::file(folder, e))?;
        let mut command = Command::new("db_bench");
        command
            .arg(format!("--db={}", folder.display()))
            .args(arguments);
        let measured = measure(&mut command, names)?;
        std::fs::remove_dir_all(folder).map_err(|e| Error::file(folder, e))?;
        Ok(measured)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.drive);
        // A killed program leaves this file (docs/format/unsynced.md).
        let _ = std::fs::remove_file(self.drive.with_added_extension("unsynced"));
        let _ = std::fs::remove_file(&self.statistics);
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
