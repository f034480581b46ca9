//! What a file system tells of itself and of its files.

use zone::{Bytes, ZoneAddress};

/// What a file is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metadata {
    /// Bytes in it.
    pub size: u64,
    /// When it last changed, Unix time in microseconds; 0 for directories.
    pub modified_micros: u64,
    /// A directory.
    pub is_directory: bool,
    /// How many names it has.
    pub links: u32,
    /// Its number; 0 for directories.
    pub inode: u64,
}

/// What a zone of the file system is for.
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
    /// Without live data, to be reset as soon as the journal says so durably.
    Freed,
}

/// Bytes of a file that lie together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct FileExtent {
    /// Of the first byte.
    pub file_offset: u64,
    /// Where it lies; in a log behind the record's header.
    pub at: ZoneAddress,
    /// Bytes.
    pub length: u64,
}

/// How the zones of the file system are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct Usage {
    /// Zones it owns.
    pub zones: u32,
    /// Of these, zones with file data.
    pub data_zones: u32,
    /// Bytes of file data, padding to whole blocks included.
    pub live_bytes: u64,
    /// Bytes of file data that find a place whatever is dead now, if nobody else uses the drive:
    /// all usable zones less those that are kept for metadata and for moving data.
    pub capacity_bytes: u64,
    /// Bytes of file data that can still be written, after what is dead has been cleaned: capacity less
    /// what is live.
    pub free_bytes: u64,
    /// Files.
    pub files: u64,
    /// In how many zones each byte is.
    pub copies: u32,
    /// Zones with a copy that was found to be damaged; what is live in them is written anew elsewhere.
    pub damaged_copies: u32,
}

impl Usage {
    /// Names and values, for people.
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
