//! The operations in the journal's frames: changes of the file system's metadata.

use codec::{Put, Reader};
use zone::{ZoneAddress, ZoneId};

/// Layout of a file's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Extents that the journal names.
    Plain,
    /// Self-describing records in log zones; the journal names where runs of them begin.
    Log,
}

/// A run of a plain file's bytes in a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExtentEntry {
    /// The first byte's offset in the file.
    pub file_offset: u64,
    /// Position of the first byte; block-aligned.
    pub at: ZoneAddress,
    /// Number of bytes; on the drive padded to a whole block.
    pub length: u64,
    /// crc32c of the bytes; 0 if it is not known, after a truncation.
    pub checksum: u32,
}

/// A field of an operation, little-endian.
trait Field: Sized {
    fn put(&self, out: &mut Vec<u8>);
    fn take(b: &mut Reader<'_>) -> Option<Self>;
}

/// Makes the enum and its encoding from a list of operations, each after its type: one byte of type, then the fields in
/// the order of the list.
macro_rules! operations {
    ($($(#[$doc:meta])* $type:literal $name:ident { $($field:ident: $kind:ty),* })*) => {
        /// A change of the file system's metadata; the fields are described in `docs/format/bluefs.md`.
        #[allow(missing_docs)]
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum JournalOperation {
            $($(#[$doc])* $name { $($field: $kind),* }),*
        }

        impl JournalOperation {
            /// Appends the operation: one byte of type, then its fields.
            pub fn encode(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$name { $($field),* } => {
                        out.push($type);
                        $($field.put(out);)*
                    })*
                }
            }

            /// Decodes the operation at the front; `None` if it is incomplete or unknown.
            pub(super) fn decode(b: &mut Reader<'_>) -> Option<Self> {
                match b.u8()? {
                    $($type => Some(Self::$name { $($field: Field::take(b)?),* }),)*
                    _ => None,
                }
            }
        }
    };
}

operations! {
    /// A directory is created.
    1 MakeDirectory { path: String }
    /// An empty directory is removed.
    2 RemoveDirectory { path: String }
    /// A file is created; its inode number was never used before.
    3 Create { kind: Kind, inode: u64, modified_micros: u64, path: String }
    /// A file gets a further name.
    4 Link { inode: u64, path: String }
    /// A name is removed; with its last name the file is removed.
    5 Unlink { path: String }
    /// A file or directory changes its name; a file of that name is replaced.
    6 Rename { from: String, to: String }
    /// A plain file grows. Extents that the file has already are skipped.
    7 Extend { inode: u64, modified_micros: u64, extents: Vec<ExtentEntry> }
    /// A range of a plain file was moved: `extents`, without holes, replace all extents that begin in the range.
    8 Move { inode: u64, extents: Vec<ExtentEntry> }
    /// A log continues with records at `offset` in `zone`, up to `end` (an offset in the zone) or, if that is
    /// `u64::MAX`, to the first block that is no record of the run.
    9 LogSegment { inode: u64, file_offset: u64, offset: u64, end: u64, zone: ZoneId, run_id: u32 }
    /// A log is truncated to a size.
    10 LogTruncate { inode: u64, size: u64 }
    /// The journal continues in another zone.
    11 NextZone { zone: ZoneId }
    /// The lowest inode number that was never used.
    12 NextInode { inode: u64 }
    /// A plain file is truncated to a size.
    13 Truncate { inode: u64, modified_micros: u64, size: u64 }
    /// BlueFS owns the zone from now on. Durable before anything is written to the zone.
    14 Take { zone: ZoneId }
    /// BlueFS no longer owns the zone. Durable before another owner may take the zone.
    15 Give { zone: ZoneId }
    /// The run of log records with this run id in this zone had been written at least up to this offset when the frame
    /// was written.
    16 WrittenEnd { at: ZoneAddress, run_id: u32 }
    /// The two zones hold the same bytes from now on, and are addressed by the number of the first.
    17 Twin { zone: ZoneId, twin: ZoneId }
}

impl Field for u64 {
    fn put(&self, out: &mut Vec<u8>) {
        out.put_u64(*self);
    }

    fn take(b: &mut Reader<'_>) -> Option<Self> {
        b.u64()
    }
}

impl Field for u32 {
    fn put(&self, out: &mut Vec<u8>) {
        out.put_u32(*self);
    }

    fn take(b: &mut Reader<'_>) -> Option<Self> {
        b.u32()
    }
}

impl Field for String {
    fn put(&self, out: &mut Vec<u8>) {
        out.put_u16(self.len() as u16);
        out.extend_from_slice(self.as_bytes());
    }

    fn take(b: &mut Reader<'_>) -> Option<Self> {
        b.string()
    }
}

impl Field for Kind {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(if *self == Self::Plain { 1 } else { 2 });
    }

    fn take(b: &mut Reader<'_>) -> Option<Self> {
        match b.u8()? {
            1 => Some(Self::Plain),
            2 => Some(Self::Log),
            _ => None,
        }
    }
}

impl Field for ZoneId {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }

    fn take(b: &mut Reader<'_>) -> Option<Self> {
        b.u32().map(Self)
    }
}

impl Field for ZoneAddress {
    fn put(&self, out: &mut Vec<u8>) {
        self.offset.put(out);
        self.zone.put(out);
    }

    fn take(b: &mut Reader<'_>) -> Option<Self> {
        let offset = b.u64()?;
        Some(Self::new(Field::take(b)?, offset))
    }
}

impl Field for Vec<ExtentEntry> {
    fn put(&self, out: &mut Vec<u8>) {
        out.put_u32(self.len() as u32);
        for extent in self {
            out.put_u64(extent.file_offset);
            out.put_u64(extent.at.offset);
            out.put_u64(extent.length);
            out.put_u32(extent.at.zone.0);
            out.put_u32(extent.checksum);
        }
    }

    fn take(b: &mut Reader<'_>) -> Option<Self> {
        let count = b.u32()? as usize;
        if count > b.0.len() / 32 {
            return None;
        }
        let extent = |b: &mut Reader<'_>| {
            let (file_offset, offset, length) = (b.u64()?, b.u64()?, b.u64()?);
            Some(ExtentEntry {
                file_offset,
                at: ZoneAddress::new(Field::take(b)?, offset),
                length,
                checksum: b.u32()?,
            })
        };
        (0..count).map(|_| extent(b)).collect()
    }
}
