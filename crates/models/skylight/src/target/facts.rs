//! Facts that the host's system has on a device or file: its use, its contents, and its reported characteristics.

use super::{Told, Zoned};
use crate::reading::told_rows;
use runtime::Runtime;
use rustix::fs::{major, minor};
use serde::{Serialize, Serializer};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use zone::Bytes;

/// Facts known without a request to the device.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Facts {
    /// The path as given.
    #[serde(serialize_with = "shown")]
    pub path: PathBuf,
    /// Whether it is a block device; otherwise a file.
    pub device: bool,
    /// Vendor and model.
    pub model: Option<String>,
    /// Names of its partitions.
    pub partitions: Vec<String>,
    /// Where it or a part of it is mounted, or otherwise in use.
    pub used: Vec<String>,
    /// Its contents.
    pub signature: Signature,
    /// Reported characteristics.
    pub told: Told,
    #[serde(skip)]
    identity: Identity,
}

/// What stays the same whatever a path is changed to: whether it is a device; the device's number, or a file's inode
/// and its file system's number.
type Identity = (bool, u64, u64);

fn identity(metadata: &Metadata) -> Identity {
    match metadata.file_type().is_block_device() {
        true => (true, metadata.rdev(), 0),
        false => (false, metadata.ino(), metadata.dev()),
    }
}

/// The result of `blkid`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Signature {
    /// A file system, a partition table, …
    Found(String),
    /// No known contents.
    None,
    /// `blkid` could not be run, or did not end.
    Unknown,
}

/// A path that is not UTF-8 can be shown, but not serialized.
fn shown<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&path.display())
}
impl Facts {
    /// Whether these are the facts on what has this metadata.
    pub(super) fn are_of(&self, metadata: &Metadata) -> bool {
        self.identity == identity(metadata)
    }

    /// The facts in lines for people, with the size in bytes.
    pub fn in_words(&self, bytes: u64) -> Vec<String> {
        let kind = match (&self.model, self.device) {
            (Some(model), _) => model,
            (None, true) => "block device",
            (None, false) => "file",
        };
        let (path, size) = (self.path.display(), Bytes(bytes));
        let mut lines = vec![format!("{path}: {kind}, {size} ({bytes} bytes)")];
        let told = told_rows(&self.told).into_iter();
        lines.extend(told.map(|row| format!("  {}: {}", row.property, row.value)));
        if !self.partitions.is_empty() {
            lines.push(format!("  partitions: {}", self.partitions.join(", ")));
        }
        lines.push(match &self.signature {
            Signature::Found(what) => format!("  on it: {what}"),
            Signature::None => "  on it: nothing that is known".into(),
            Signature::Unknown => "  on it: unknown, for it could not be looked at".into(),
        });
        lines
    }
}

/// Collects the facts on `path`.
///
/// # Errors
/// The path is neither a block device nor a file, or cannot be examined.
pub fn look(path: &Path) -> io::Result<Facts> {
    let metadata = std::fs::metadata(path)?;
    let kind = metadata.file_type();
    if !kind.is_block_device() && !kind.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut facts = Facts {
        path: path.to_owned(),
        device: kind.is_block_device(),
        model: None,
        partitions: Vec::new(),
        used: Vec::new(),
        signature: signature(path),
        told: Told::default(),
        identity: identity(&metadata),
    };
    if facts.device {
        let own = folder(&metadata)?;
        let disk = whole(&own);
        let parts = parts(&own);
        facts.model = model(&disk);
        facts.told = told(&disk);
        facts.used = used(std::iter::once(&own).chain(&parts));
        facts.partitions = parts.iter().filter_map(|part| name(part)).collect();
    }
    let behind = looped(&metadata);
    let loops: Vec<PathBuf> = behind.iter().flat_map(|own| with_parts(own)).collect();
    facts.used.extend(behind.iter().filter_map(|own| {
        let name = name(own)?;
        Some(format!("it is what /dev/{name} shows"))
    }));
    facts.used.extend(used(loops.iter()));
    Ok(facts)
}

/// The device's folder in the kernel's `/sys`.
pub(super) fn folder(metadata: &Metadata) -> io::Result<PathBuf> {
    let device = metadata.rdev();
    let link = format!("/sys/dev/block/{}:{}", major(device), minor(device));
    std::fs::canonicalize(link)
}

/// The loop devices on a device or file, identified by inode and not by name.
fn looped(metadata: &Metadata) -> Vec<PathBuf> {
    let mut all = entries(Path::new("/sys/block"));
    all.retain(|own| {
        let behind =
            text(own.join("loop/backing_file")).and_then(|path| std::fs::metadata(path).ok());
        behind.is_some_and(|behind| identity(&behind) == identity(metadata))
    });
    all
}

fn with_parts(own: &Path) -> Vec<PathBuf> {
    let mut all = parts(own);
    all.insert(0, own.to_owned());
    all
}

/// Whether the device is read-only for the kernel.
pub(super) fn read_only(own: &Path) -> bool {
    text(own.join("ro")).as_deref() == Some("1")
}

/// The `/sys` folder of the whole disk, if a folder is that of a partition.
pub(super) fn whole(folder: &Path) -> PathBuf {
    let parent = folder.parent().filter(|_| is_part(folder));
    parent.unwrap_or(folder).to_owned()
}

/// The contents of a kernel file, as one line.
pub(super) fn text(path: impl AsRef<Path>) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(plain(text.trim())).filter(|text| !text.is_empty())
}

/// Removes control characters from a drive's text, which could move the cursor of a terminal.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

fn is_part(folder: &Path) -> bool {
    folder.join("partition").exists()
}

fn name(folder: &Path) -> Option<String> {
    Some(folder.file_name()?.to_string_lossy().into_owned())
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let all = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = all.map(|entry| entry.path()).collect();
    paths.sort_unstable();
    paths
}

fn parts(folder: &Path) -> Vec<PathBuf> {
    let mut all = entries(folder);
    all.retain(|entry| is_part(entry));
    all
}

fn model(disk: &Path) -> Option<String> {
    let part = |name| text(disk.join("device").join(name));
    let words = [part("vendor"), part("model")];
    let words: Vec<String> = words.into_iter().flatten().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// Page B1h of the vital product data, where the kernel shows it, has more than the kernel's own attributes.
fn told(disk: &Path) -> Told {
    let queue = |name| text(disk.join("queue").join(name));
    let page = std::fs::read(disk.join("device/vpd_pgb1")).unwrap_or_default();
    let mut told = characteristics(&page);
    match queue("zoned").as_deref() {
        Some("host-managed") => told.zoned = Some(Zoned::HostManaged),
        Some("host-aware") => told.zoned = Some(Zoned::HostAware),
        _ => {}
    }
    let kernel = queue("rotational").map(|text| text == "1");
    told.rotational = told.rotational.or(kernel);
    told
}

/// Block device characteristics (SBC-4, page B1h): medium rotation rate and ZONED.
fn characteristics(page: &[u8]) -> Told {
    let mut told = Told::default();
    if page.get(1) != Some(&0xb1) {
        return told;
    }
    if let Some([high, low]) = page.get(4..6).and_then(|rate| rate.first_chunk()) {
        match u16::from_be_bytes([*high, *low]) {
            0 => {}
            1 => told.rotational = Some(false),
            rate => {
                told.rotational = Some(true);
                told.rpm = (0x401..0xffff).contains(&rate).then_some(rate.into());
            }
        }
    }
    told.zoned = page.get(8).and_then(|byte| match byte >> 4 & 3 {
        1 => Some(Zoned::HostAware),
        2 => Some(Zoned::DriveManaged),
        _ => None,
    });
    told
}

/// Mounts, swap, and devices built on these.
fn used<'a>(folders: impl Iterator<Item = &'a PathBuf>) -> Vec<String> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    let mut all = Vec::new();
    for folder in folders {
        let Some(name) = name(folder) else { continue };
        let number = text(folder.join("dev")).unwrap_or_default();
        let path = format!("/dev/{name}");
        all.extend(mounted(&mounts, &number, &path).map(|at| format!("{path} is mounted at {at}")));
        if swaps
            .lines()
            .any(|line| line.split(' ').next() == Some(&*path))
        {
            all.push(format!("{path} is swap space"));
        }
        let holders = entries(&folder.join("holders"));
        let holders = holders.iter().filter_map(|holder| self::name(holder));
        all.extend(holders.map(|holder| format!("{path} is part of {holder}")));
    }
    all
}

/// Mount points of a device in `/proc/self/mountinfo`, by device number, or by path where the file system has a
/// number of its own.
fn mounted<'a>(mounts: &'a str, number: &'a str, path: &'a str) -> impl Iterator<Item = &'a str> {
    mounts.lines().filter_map(move |line| {
        let (front, back) = line.split_once(" - ")?;
        let mut fields = front.split(' ').skip(2);
        let (device, at) = (fields.next()?, fields.nth(1)?);
        let source = back.split(' ').nth(1)?;
        (device == number || source == path).then_some(at)
    })
}

/// How long to wait for `blkid`; on a stuck device it never ends.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs `blkid` of util-linux.
fn signature(path: &Path) -> Signature {
    let child = Command::new("blkid")
        .args(["-p", "-o", "export"])
        .arg(path)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        return Signature::Unknown;
    };
    let clock = Runtime::system();
    while matches!(child.try_wait(), Ok(None)) {
        if clock.now() > PATIENCE {
            let _ = child.kill();
            return Signature::Unknown;
        }
        runtime::thread::sleep(Duration::from_millis(5));
    }
    let Ok(output) = child.wait_with_output() else {
        return Signature::Unknown;
    };
    match output.status.code() {
        Some(0) => found(&String::from_utf8_lossy(&output.stdout)),
        // 2: nothing found; 8: several results.
        Some(2) => Signature::None,
        Some(8) => Signature::Found("several things at once".into()),
        _ => Signature::Unknown,
    }
}

fn found(export: &str) -> Signature {
    let value = |key: &str| {
        let line = export.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|rest| rest.strip_prefix('='))
    };
    let kind = value("TYPE").map(|kind| match value("LABEL") {
        Some(label) => format!("{kind} \"{label}\""),
        None => kind.to_owned(),
    });
    let table = value("PTTYPE").map(|kind| format!("a partition table ({kind})"));
    let all: Vec<String> = [kind, table].into_iter().flatten().collect();
    if all.is_empty() {
        Signature::None
    } else {
        Signature::Found(plain(&all.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characteristics_of_a_drive() {
        let page = |rate: u16, zoned: u8| {
            let [high, low] = rate.to_be_bytes();
            characteristics(&[0, 0xb1, 0, 60, high, low, 0, 0, zoned << 4])
        };
        let disk = page(5_980, 2);
        assert_eq!((disk.rpm, disk.rotational), (Some(5_980), Some(true)));
        assert_eq!(disk.zoned, Some(Zoned::DriveManaged));
        assert_eq!(page(7_200, 1).zoned, Some(Zoned::HostAware));
        let flash = page(1, 0);
        assert_eq!(
            (flash.rotational, flash.rpm, flash.zoned),
            (Some(false), None, None)
        );
        assert_eq!(characteristics(&[]), Told::default());
        assert_eq!(characteristics(&[0, 0xb1, 0, 60]), Told::default());
    }

    #[test]
    fn mounts_are_found_by_number_and_by_path() {
        let mounts = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 22 8:17 / /mnt/a rw - xfs /dev/sdb1 rw
41 22 0:42 / /mnt/b rw - btrfs /dev/sdc rw
";
        let at = |number, path| mounted(mounts, number, path).collect::<Vec<_>>();
        assert_eq!(at("8:17", "/dev/sdb1"), ["/mnt/a"]);
        assert_eq!(at("8:32", "/dev/sdc"), ["/mnt/b"]);
        assert!(at("8:16", "/dev/sdb").is_empty());
    }

    #[test]
    fn what_blkid_says() {
        let text = "DEVNAME=/dev/x\nLABEL=old data\nTYPE=ext4\nUSAGE=filesystem\n";
        assert_eq!(found(text), Signature::Found("ext4 \"old data\"".into()));
        let table = "DEVNAME=/dev/x\nPTUUID=1\nPTTYPE=gpt\n";
        assert_eq!(
            found(table),
            Signature::Found("a partition table (gpt)".into())
        );
        assert_eq!(found("DEVNAME=/dev/x\n"), Signature::None);
        let escape = "TYPE=ext4\nLABEL=a\u{1b}[2Jb\n";
        assert_eq!(found(escape), Signature::Found("ext4 \"a[2Jb\"".into()));
    }

    #[test]
    fn a_path_need_not_be_utf_8() {
        use std::os::unix::ffi::OsStrExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(std::ffi::OsStr::from_bytes(b"\xff"));
        std::fs::write(&path, [0; 4096]).unwrap();
        let facts = look(&path).unwrap();
        let told = serde_json::to_value(&facts).unwrap();
        assert!(told["path"].as_str().unwrap().ends_with('\u{fffd}'));
    }
}
