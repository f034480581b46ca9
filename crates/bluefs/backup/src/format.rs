//! The archive's last file: its list of contents, with a checksum of that list. Nothing here does I/O.

use crc_fast::{CrcAlgorithm, checksum};
use serde::{Deserialize, Serialize};
use std::path::{Component, Path};

/// The name of the archive's last file.
pub const CHECKSUMS: &str = ".zonestore-backup";
/// The directory in the root that has all files of a restore until the whole archive has been verified.
pub const PARTIAL: &str = ".zonestore-restore";
/// The name of [`PARTIAL`] once the archive has been verified, until all files have their own names.
pub const VERIFIED: &str = ".zonestore-restored";
/// The version of its format.
pub const VERSION: u32 = 1;

/// The contents of an archive.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq, Eq)]
pub struct Contents {
    /// Always [`VERSION`]; other versions are not read.
    pub version: u32,
    /// Paths, in the order of the archive.
    pub directories: Vec<String>,
    /// In the order of the archive.
    pub files: Vec<Member>,
}

/// A file in an archive.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its absolute path.
    pub path: String,
    /// Bytes of its content.
    pub bytes: u64,
    /// Checksum of its content.
    pub crc32c: u32,
}

impl Default for Contents {
    fn default() -> Self {
        Self {
            version: VERSION,
            directories: Vec::new(),
            files: Vec::new(),
        }
    }
}

impl Contents {
    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        let bytes = self.files.iter().map(|file| file.bytes);
        bytes.fold(0, u64::saturating_add)
    }

    /// Orders everything by path.
    pub fn sort(&mut self) {
        self.directories.sort_unstable();
        self.files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    }

    /// Encodes the content of the last file.
    ///
    /// # Errors
    /// None that could happen: it is written to memory.
    pub fn encode(&self) -> serde_json::Result<Vec<u8>> {
        let mut text = serde_json::to_vec(self)?;
        let sum = crc32c(&text);
        text.extend_from_slice(format!("\n{sum:08x}\n").as_bytes());
        Ok(text)
    }

    /// Decodes the content of the last file; `None` if it is damaged or of another version.
    pub fn decode(text: &[u8]) -> Option<Self> {
        let text = text.strip_suffix(b"\n")?;
        let end = text.iter().rposition(|byte| *byte == b'\n')?;
        let (text, sum) = (&text[..end], std::str::from_utf8(&text[end + 1..]).ok()?);
        let intact = u32::from_str_radix(sum, 16) == Ok(crc32c(text));
        let found: Self = serde_json::from_slice(text).ok().filter(|_| intact)?;
        (found.version == VERSION).then_some(found)
    }
}

fn crc32c(bytes: &[u8]) -> u32 {
    checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// Converts a name in the archive to an absolute path; `None` if it has `..` or is not UTF-8.
pub fn absolute(name: &Path) -> Option<String> {
    let mut path = String::new();
    for part in name.components() {
        match part {
            Component::Normal(part) => {
                path.push('/');
                path.push_str(part.to_str()?);
            }
            Component::CurDir | Component::RootDir => {}
            Component::ParentDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

/// Whether an absolute path is [`PARTIAL`] or [`VERIFIED`], or leads below one of them.
pub fn is_partial(path: &str) -> bool {
    matches!(path.split('/').nth(1), Some(PARTIAL | VERIFIED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside() {
        assert_eq!(
            absolute(Path::new("db/000001.log")).unwrap(),
            "/db/000001.log"
        );
        assert_eq!(absolute(Path::new("./db//x")).unwrap(), "/db/x");
        assert_eq!(absolute(Path::new("/db/x")).unwrap(), "/db/x");
        assert_eq!(absolute(Path::new("db/../../x")), None);
    }

    #[test]
    fn every_changed_byte_of_the_checksums_is_noticed() {
        let file = Member {
            path: "/db/a \n b".to_owned(),
            bytes: 7,
            crc32c: 9,
        };
        let contents = Contents {
            directories: vec!["/db".to_owned()],
            files: vec![file],
            ..Contents::default()
        };
        let text = contents.encode().unwrap();
        assert_eq!(Contents::decode(&text), Some(contents));
        for at in 0..text.len() {
            let mut bad = text.clone();
            bad[at] ^= 1;
            assert_eq!(Contents::decode(&bad), None, "{at}");
            assert_eq!(Contents::decode(&text[..at]), None, "{at}");
        }
    }
}
