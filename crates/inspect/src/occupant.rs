//! Describes the drive at a path. The drive is observed without a lock, so one that is in use is described too.

use crate::content::Content;
use bluefs::BlueFs;
use device::Drive;
use device::file::format;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Describes the drive at `path` and its content: "a zoned drive with an object store (…)". `None` if there is
/// no drive at the path.
pub fn drive_at(path: &Path) -> Option<String> {
    if device::is_host_device(path) {
        // Other devices of the host are not described.
        return Drive::observe(path).ok().map(|drive| words(&drive));
    }
    // Opening a pipe would wait for its other end.
    if !path.is_file() {
        return None;
    }
    let mut magic = [0; 8];
    File::open(path).ok()?.read_exact(&mut magic).ok()?;
    if magic != format::MAGIC {
        return None;
    }
    let drive = Drive::observe(path).map(|drive| words(&drive));
    Some(drive.unwrap_or_else(|_| "a drive file that is damaged".to_owned()))
}

fn words(drive: &Drive) -> String {
    let content = Content::of(drive);
    if matches!(content, Content::Smrfs | Content::ZeaFs | Content::Zea) {
        return format!("a zoned drive with {}", content.words());
    }
    match BlueFs::contents(drive) {
        Ok(contents) if contents.is_empty() => "an empty zoned drive".to_owned(),
        Ok(contents) => format!("a zoned drive with {contents}"),
        Err(error) => format!("a zoned drive that cannot be read: {error}"),
    }
}
