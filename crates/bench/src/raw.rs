//! The baseline for benchmarks: the same bytes straight to a drive file, zone after zone, with nothing in between.

use crate::cold;
use crate::error::{Error, Result};
use crate::paced::{Pace, Paced};
use crate::together::together;
use crate::watch::Watch;
use device::changed::Changed;
use device::{FileDrive, ZonedDevice};
use runtime::Runtime;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use zone::{ByteOffset, Geometry, ZoneAddress, ZoneId};

/// Stands between the name of the store's drive and the process id.
const SUFFIX: &str = ".bench-";

/// A drive file of the same shape beside the store's drive; it is removed on drop.
pub struct RawDrive {
    drive: Changed<FileDrive, Paced>,
    path: PathBuf,
}

impl RawDrive {
    /// Makes the drive beside `store_drive`, which has to be a file: beside a device, it would lie in memory.
    pub fn beside(
        store_drive: &Path,
        geometry: &Geometry,
        profile: &str,
        pace: Pace,
    ) -> Result<Self> {
        if !store_drive.is_file() {
            let path = store_drive.to_owned();
            return Err(Error::NoFile { path });
        }
        remove_left_overs(store_drive);
        let mut name = store_drive.as_os_str().to_owned();
        name.push(format!("{SUFFIX}{}", std::process::id()));
        let path = PathBuf::from(name);
        let drive = Changed {
            drive: FileDrive::create(&path, geometry, profile)?,
            change: Paced::new(pace),
        };
        Ok(Self { drive, path })
    }

    /// Writes `count` copies of `piece`, with a flush after every `flush_every` of them and one at the end. Returns
    /// the time taken. All zones are reset first.
    pub fn write(
        &self,
        piece: &[u8],
        count: u64,
        flush_every: Option<u64>,
        watch: &dyn Watch,
    ) -> Result<Duration> {
        let geometry = self.drive.geometry();
        for zone in geometry.zones().skip(geometry.conventional_zones as usize) {
            self.drive.reset(zone)?;
        }
        self.drive.flush()?;
        let mut at = ZoneAddress::new(ZoneId(geometry.conventional_zones), 0);
        let clock = Runtime::system();
        let start = clock.now();
        for number in 1..=count {
            watch.check()?;
            self.write_piece(geometry, &mut at, piece)?;
            if flush_every.is_some_and(|every| number % every == 0) {
                self.drive.flush()?;
            }
        }
        self.drive.flush()?;
        Ok(clock.now() - start)
    }

    /// Reads the `count` pieces that [`Self::write`] wrote, in scattered order and with an empty page cache, by
    /// `threads` threads. Returns the time taken.
    pub fn read(
        &self,
        piece_bytes: u64,
        count: u64,
        threads: u32,
        watch: &dyn Watch,
    ) -> Result<Duration> {
        cold::forget(&self.path)?;
        let geometry = self.drive.geometry();
        let first = ZoneId(geometry.conventional_zones);
        let capacity = geometry.capacity(first);
        let clock = Runtime::system();
        let start = clock.now();
        together(threads, count, watch, |number| {
            let mut piece = vec![0; piece_bytes as usize];
            let mut filled = 0;
            let first_byte = cold::scattered(number, count) * piece_bytes;
            while filled < piece_bytes {
                let at = first_byte + filled;
                let zone = ZoneId(first.0 + (at / capacity) as u32);
                let take = (capacity - at % capacity).min(piece_bytes - filled);
                let at = geometry.absolute(ZoneAddress::new(zone, at % capacity));
                let part = filled as usize..(filled + take) as usize;
                self.drive.read(at, &mut piece[part])?;
                filled += take;
            }
            Ok(())
        })?;
        Ok(clock.now() - start)
    }

    /// Writes one piece at `at`, across the end of a zone if necessary.
    fn write_piece(
        &self,
        geometry: &Geometry,
        at: &mut ZoneAddress,
        mut piece: &[u8],
    ) -> Result<()> {
        while !piece.is_empty() {
            let room = geometry.capacity(at.zone) - at.offset;
            if room == 0 {
                *at = ZoneAddress::new(ZoneId(at.zone.0 + 1), 0);
                continue;
            }
            let (now, later) = piece.split_at(room.min(piece.len() as u64) as usize);
            let ByteOffset(offset) = geometry.absolute(*at);
            self.drive.write(ByteOffset(offset), now)?;
            at.offset += now.len() as u64;
            piece = later;
        }
        Ok(())
    }
}

/// Removes drive files that killed benchmarks have left: they have the name of such a file, are drives, and no other
/// process has them open.
fn remove_left_overs(store_drive: &Path) {
    let (Some(folder), Some(name)) = (store_drive.parent(), store_drive.file_name()) else {
        return;
    };
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let prefix = format!("{}{SUFFIX}", name.display());
    for entry in entries.flatten() {
        let left = entry.file_name();
        let pid = left.to_str().and_then(|left| left.strip_prefix(&prefix));
        let ours =
            pid.is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit()));
        if ours && FileDrive::open(entry.path()).is_ok() {
            tracing::warn!(file = %entry.path().display(), "left by a benchmark that was killed; removed");
            let _ = fs::remove_file(entry.path());
        }
    }
}

impl Drop for RawDrive {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            let error = Error::file(&self.path, error);
            tracing::warn!("{} is left behind: {error}", self.path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Nobody;

    #[test]
    fn no_drive_is_made_beside_what_is_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("device");
        std::os::unix::net::UnixListener::bind(&path).unwrap();
        let geometry = device::profile::by_name("test-small")
            .unwrap()
            .geometry(16 << 20, None)
            .unwrap();
        let raw = RawDrive::beside(&path, &geometry, "test-small", Pace::default());
        assert!(matches!(raw, Err(Error::NoFile { .. })));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn pieces_fill_zone_after_zone_and_the_file_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.zoned");
        let geometry = device::profile::by_name("test-small")
            .unwrap()
            .geometry(16 << 20, None)
            .unwrap();
        fs::write(&path, "").unwrap();
        let raw = RawDrive::beside(&path, &geometry, "test-small", Pace::default()).unwrap();
        raw.write(&vec![7; 768 << 10], 4, Some(2), &Nobody).unwrap();
        // Twice, as every round begins with an empty drive.
        raw.write(&vec![7; 768 << 10], 4, None, &Nobody).unwrap();
        let written: Vec<u64> = raw
            .drive
            .report(ZoneId(geometry.conventional_zones), 4)
            .unwrap()
            .iter()
            .map(|zone| zone.write_pointer)
            .collect();
        assert_eq!(written, [1 << 20, 1 << 20, 1 << 20, 0]);
        drop(raw);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
