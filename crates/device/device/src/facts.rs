//! Facts about a device from sysfs, for people who compare them with a label or a data sheet.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Files of sysfs below a device's folder, and the names under which they are shown.
const FACTS: [(&str, &str); 9] = [
    ("vendor", "device/vendor"),
    ("model", "device/model"),
    ("firmware", "device/firmware_rev"),
    ("firmware", "device/rev"),
    ("serial number", "device/serial"),
    ("transport", "device/transport"),
    ("write cache", "queue/write_cache"),
    ("I/O scheduler", "queue/scheduler"),
    ("longest request in KiB", "queue/max_sectors_kb"),
];

/// The facts about the device at `path`, as pairs of name and value. Empty for a file; facts that the host
/// lacks are left out.
pub fn of_device(path: &Path) -> Vec<(&'static str, String)> {
    let Some(folder) = folder(path) else {
        return Vec::new();
    };
    let read = |file: &Path| {
        let text = fs::read_to_string(file).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    let mut facts: Vec<(&'static str, String)> = FACTS
        .iter()
        .filter_map(|(name, file)| Some((*name, read(&folder.join(file))?)))
        .collect();
    facts.extend(read(Path::new("/proc/sys/kernel/osrelease")).map(|version| ("kernel", version)));
    facts
}

fn folder(path: &Path) -> Option<PathBuf> {
    let metadata = fs::metadata(path).ok()?;
    let kind = match metadata.file_type() {
        kind if kind.is_block_device() => "block",
        kind if kind.is_char_device() => "char",
        _ => return None,
    };
    let device = metadata.rdev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    Some(format!("/sys/dev/{kind}/{major}:{minor}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_no_device() {
        assert!(of_device(Path::new("/")).is_empty());
        assert!(of_device(Path::new("/nowhere")).is_empty());
        assert!(
            of_device(Path::new("/dev/null"))
                .iter()
                .any(|(name, _)| *name == "kernel")
        );
    }
}
