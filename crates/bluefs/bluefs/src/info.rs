//! Descriptions of a mounted file system and of its files.

use zone::{Bytes, ZoneAddress};

/// Metadata of a file or directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metadata {
    /// Size in bytes; 0 for directories.
    pub size: u64,
    /// Time of the last change of the contents, in microseconds of Unix time; 0 for directories.
    pub modified_micros: u64,
    /// Whether it is a directory.
    pub is_directory: bool,
    /// Names (hard links) of the file.
    pub links: u32,
    /// Inode number; 0 for directories.
    pub inode: u64,
}

/// Purpose of a zone of the file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ZonePurpose {
    /// A superblock ring.
    Superblock,
    /// The journal.
    Journal,
    /// Records of logs.
    Log,
    /// Extents of plain files.
    Data,
    /// Empty, and kept ready.
    Spare,
    /// Without live data; it is reset once the journal records that durably.
    Freed,
}

/// A run of a file's bytes in one zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct FileExtent {
    /// Offset of the first byte in the file.
    pub file_offset: u64,
    /// Position on the drive; in a log, after the record's header.
    pub at: ZoneAddress,
    /// Number of bytes.
    pub length: u64,
}

/// Space in use and available, and the zones that hold it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct Usage {
    /// Zones that the file system owns.
    pub zones: u32,
    /// Of these, zones with file data.
    pub data_zones: u32,
    /// Bytes of file data, padding to whole blocks included.
    pub live_bytes: u64,
    /// Bytes of file data for which there is always room, whatever is dead now, if no store uses the drive: all usable
    /// zones less those kept for metadata and for moving data.
    pub capacity_bytes: u64,
    /// Bytes of file data that can still be written, once dead data has been cleaned: capacity less live bytes.
    pub free_bytes: u64,
    /// Files.
    pub files: u64,
    /// Copies of each byte, in as many zones: 1 or 2.
    pub copies: u32,
    /// Pairs of zones with a copy found damaged; their live data is written again elsewhere.
    pub damaged_copies: u32,
}

impl Usage {
    /// Names and values, for output.
    pub fn in_words(&self) -> [(&'static str, String); 5] {
        let (live, free) = (Bytes(self.live_bytes), Bytes(self.free_bytes));
        let (zones, data) = (self.zones, self.data_zones);
        let copies = match self.copies {
            1 => "1".to_owned(),
            copies => format!("{copies}, damaged in {} zones", self.damaged_copies),
        };
        [
            ("files", self.files.to_string()),
            ("used", format!("{live} of file data")),
            ("free", free.to_string()),
            ("zones", format!("{zones}, {data} of them with file data")),
            ("copies", copies),
        ]
    }
}
