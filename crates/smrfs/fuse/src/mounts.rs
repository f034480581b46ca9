//! Mounts as the kernel lists them in `/proc/self/mountinfo`. Reading the list asks no file system, so one that does not
//! answer holds nobody up.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A mount.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mount {
    /// Device number of the file system, the `st_dev` of its files.
    pub device: u64,
    /// The directory where it is mounted.
    pub directory: PathBuf,
    /// Whether it is a file system of smrfs.
    pub is_smrfs: bool,
    /// The source that was named when it was mounted; of smrfs, the drive.
    pub source: PathBuf,
}

/// All mounts that this process sees, in the order in which they were made: of those at one directory, the last one hides
/// the others.
///
/// # Errors
/// `/proc` cannot be read.
pub fn mounts() -> io::Result<Vec<Mount>> {
    let list = std::fs::read("/proc/self/mountinfo")?;
    let lines = list.split(|byte| *byte == b'\n');
    Ok(lines.filter_map(parsed).collect())
}

/// Parses a line like `36 35 0:50 / /mnt rw shared:1 - fuse.smrfs /srv/d.zoned rw`.
fn parsed(line: &[u8]) -> Option<Mount> {
    let mut words = line.split(|byte| *byte == b' ');
    let device = std::str::from_utf8(words.nth(2)?).ok()?;
    let (major, minor) = device.split_once(':')?;
    let directory = unescaped(words.nth(1)?);
    let mut what = words.skip_while(|word| *word != b"-").skip(1);
    Some(Mount {
        device: libc::makedev(major.parse().ok()?, minor.parse().ok()?),
        directory,
        is_smrfs: what.next()? == b"fuse.smrfs",
        source: unescaped(what.next()?),
    })
}

/// Decodes the octal escapes that the kernel writes for spaces and the like, such as `\040`.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first() {
        let code = behind.get(..3).filter(|_| *first == b'\\');
        let code =
            code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 8).ok());
        bytes.push(code.unwrap_or(*first));
        rest = &behind[if code.is_some() { 3 } else { 0 }..];
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let line = br"36 35 0:50 / /mnt/a\040b rw,relatime shared:1 - fuse.smrfs /srv/d\134.zoned rw,user_id=0";
        let expected = Mount {
            device: 50,
            directory: PathBuf::from("/mnt/a b"),
            is_smrfs: true,
            source: PathBuf::from(r"/srv/d\.zoned"),
        };
        assert_eq!(parsed(line), Some(expected));
        let other = parsed(b"36 35 8:1 / / rw - ext4 /dev/sda rw").unwrap();
        assert_eq!((other.device, other.is_smrfs), (0x801, false));
        assert_eq!(parsed(b""), None);
        assert!(!mounts().unwrap().is_empty());
    }
}
