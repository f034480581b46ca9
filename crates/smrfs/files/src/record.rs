//! Records, the units of metadata: a checkpoint has records of the whole state, the journal has records of changes. A
//! mount applies them by the same code as a running operation.

use crate::inode::{Attributes, Time};
use codec::{Put, Reader};

/// A change of metadata. Block numbers count from the start of a file or of a zone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Record {
    /// Creates an inode with these attributes, or sets those of an existing one; its content stays.
    Inode(Attributes),
    /// Removes an inode with its content.
    Remove {
        /// The inode.
        ino: u64,
    },
    /// Adds an entry to a directory.
    Name {
        /// The directory's inode.
        dir: u64,
        /// At most 255 bytes.
        name: Box<[u8]>,
        /// The inode of the entry.
        ino: u64,
    },
    /// Removes an entry of a directory.
    Unname {
        /// The directory's inode.
        dir: u64,
        /// At most 255 bytes.
        name: Box<[u8]>,
    },
    /// Maps blocks of a file to blocks of a zone.
    Extent {
        /// The file's inode.
        ino: u64,
        /// The first block.
        block: u64,
        /// The zone, by the drive's number.
        zone: u32,
        /// The first block in the zone.
        offset: u32,
        /// CRC-32C of each block.
        sums: Box<[u32]>,
    },
    /// Makes blocks of a file a hole.
    Hole {
        /// The file's inode.
        ino: u64,
        /// The first block.
        from: u64,
        /// End of the blocks (exclusive).
        to: u64,
    },
    /// Sets an extended attribute.
    Xattr {
        /// The inode.
        ino: u64,
        /// At most 255 bytes.
        name: Box<[u8]>,
        /// At most 64 KiB.
        value: Box<[u8]>,
    },
    /// Removes an extended attribute.
    NoXattr {
        /// The inode.
        ino: u64,
        /// At most 255 bytes.
        name: Box<[u8]>,
    },
    /// Sets the target of a symbolic link.
    Target {
        /// The link's inode.
        ino: u64,
        /// At most 4,095 bytes.
        target: Box<[u8]>,
    },
    /// Sets the number of the next new inode; all lower numbers have been used.
    Next {
        /// The number.
        ino: u64,
    },
    /// Preallocates those blocks of a file that are holes, until they are written or become holes again.
    Preallocate {
        /// The file's inode.
        ino: u64,
        /// The first block.
        from: u64,
        /// End of the blocks (exclusive).
        to: u64,
    },
    /// Ends this slot: the other slot continues with this generation.
    Moved {
        /// Generation of the other slot.
        generation: u64,
    },
}

impl Record {
    /// The first format version that has this record.
    pub const fn version(&self) -> u16 {
        match self {
            Self::Preallocate { .. } => 2,
            _ => 1,
        }
    }

    /// Appends the encoded record to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Inode(a) => {
                out.push(1);
                out.put_u64(a.ino);
                for number in [a.mode, a.uid, a.gid, a.rdev, a.nlink] {
                    out.put_u32(number);
                }
                out.put_u64(a.size);
                for time in [a.atime, a.mtime, a.ctime, a.btime] {
                    out.put_u64(time.seconds as u64);
                    out.put_u32(time.nanos);
                }
            }
            Self::Remove { ino } => {
                out.push(2);
                out.put_u64(*ino);
            }
            Self::Name { dir, name, ino } => {
                out.push(3);
                out.put_u64(*dir);
                out.put_u64(*ino);
                put_bytes(out, name);
            }
            Self::Unname { dir, name } => {
                out.push(4);
                out.put_u64(*dir);
                put_bytes(out, name);
            }
            Self::Extent {
                ino,
                block,
                zone,
                offset,
                sums,
            } => {
                out.push(5);
                out.put_u64(*ino);
                out.put_u64(*block);
                out.put_u32(*zone);
                out.put_u32(*offset);
                out.put_u32(sums.len() as u32);
                sums.iter().for_each(|sum| out.put_u32(*sum));
            }
            Self::Hole { ino, from, to } => {
                out.push(6);
                out.put_u64(*ino);
                out.put_u64(*from);
                out.put_u64(*to);
            }
            Self::Xattr { ino, name, value } => {
                out.push(7);
                out.put_u64(*ino);
                put_bytes(out, name);
                put_bytes(out, value);
            }
            Self::NoXattr { ino, name } => {
                out.push(8);
                out.put_u64(*ino);
                put_bytes(out, name);
            }
            Self::Target { ino, target } => {
                out.push(9);
                out.put_u64(*ino);
                put_bytes(out, target);
            }
            Self::Next { ino } => {
                out.push(10);
                out.put_u64(*ino);
            }
            Self::Moved { generation } => {
                out.push(11);
                out.put_u64(*generation);
            }
            Self::Preallocate { ino, from, to } => {
                out.push(12);
                out.put_u64(*ino);
                out.put_u64(*from);
                out.put_u64(*to);
            }
        }
    }

    /// Decodes a record from the front of `reader`; `None` if the bytes are not a record.
    pub fn decode(reader: &mut Reader<'_>) -> Option<Self> {
        Some(match reader.u8()? {
            1 => Self::Inode(attributes(reader)?),
            2 => Self::Remove { ino: reader.u64()? },
            3 => Self::Name {
                dir: reader.u64()?,
                ino: reader.u64()?,
                name: bytes(reader)?,
            },
            4 => Self::Unname {
                dir: reader.u64()?,
                name: bytes(reader)?,
            },
            5 => {
                let (ino, block) = (reader.u64()?, reader.u64()?);
                let (zone, offset) = (reader.u32()?, reader.u32()?);
                let count = usize::try_from(reader.u32()?).ok()?;
                let mut sums = Reader(reader.take(count.checked_mul(4)?)?);
                let sums = std::iter::from_fn(|| sums.u32()).collect();
                Self::Extent {
                    ino,
                    block,
                    zone,
                    offset,
                    sums,
                }
            }
            6 => Self::Hole {
                ino: reader.u64()?,
                from: reader.u64()?,
                to: reader.u64()?,
            },
            7 => Self::Xattr {
                ino: reader.u64()?,
                name: bytes(reader)?,
                value: bytes(reader)?,
            },
            8 => Self::NoXattr {
                ino: reader.u64()?,
                name: bytes(reader)?,
            },
            9 => Self::Target {
                ino: reader.u64()?,
                target: bytes(reader)?,
            },
            10 => Self::Next { ino: reader.u64()? },
            11 => Self::Moved {
                generation: reader.u64()?,
            },
            12 => Self::Preallocate {
                ino: reader.u64()?,
                from: reader.u64()?,
                to: reader.u64()?,
            },
            _ => return None,
        })
    }
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.put_u32(bytes.len() as u32);
    out.extend_from_slice(bytes);
}

fn bytes(reader: &mut Reader<'_>) -> Option<Box<[u8]>> {
    let length = usize::try_from(reader.u32()?).ok()?;
    Some(reader.take(length)?.into())
}

fn attributes(reader: &mut Reader<'_>) -> Option<Attributes> {
    let ino = reader.u64()?;
    let mut number = || reader.u32();
    let (mode, uid, gid, rdev, nlink) = (number()?, number()?, number()?, number()?, number()?);
    let size = reader.u64()?;
    let mut time = || {
        let seconds = reader.u64()? as i64;
        let nanos = reader.u32().filter(|nanos| *nanos < 1_000_000_000)?;
        Some(Time { seconds, nanos })
    };
    let (atime, mtime, ctime, btime) = (time()?, time()?, time()?, time()?);
    Some(Attributes {
        ino,
        mode,
        uid,
        gid,
        rdev,
        nlink,
        size,
        atime,
        mtime,
        ctime,
        btime,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_comes_back_and_none_of_its_beginnings_does() {
        let time = Time {
            seconds: -5,
            nanos: 999_999_999,
        };
        let attributes = Attributes {
            ino: 1,
            mode: 0o100_644,
            uid: 2,
            gid: 3,
            rdev: 4,
            nlink: 5,
            size: 6,
            atime: time,
            mtime: time,
            ctime: time,
            btime: time,
        };
        let (ino, name) = (9, Box::from(*b"name"));
        let records = [
            Record::Inode(attributes),
            Record::Remove { ino },
            Record::Name {
                dir: 1,
                name: Box::from(*b"n"),
                ino,
            },
            Record::Unname { dir: 1, name },
            Record::Extent {
                ino,
                block: 1,
                zone: 2,
                offset: 3,
                sums: Box::from([4, 5]),
            },
            Record::Hole {
                ino,
                from: 1,
                to: 2,
            },
            Record::Xattr {
                ino,
                name: Box::from(*b"user.a"),
                value: Box::from(*b""),
            },
            Record::NoXattr {
                ino,
                name: Box::from(*b"user.a"),
            },
            Record::Target {
                ino,
                target: Box::from(*b"/x"),
            },
            Record::Next { ino },
            Record::Moved { generation: 3 },
            Record::Preallocate {
                ino,
                from: 4,
                to: 6,
            },
        ];
        for record in records {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            let mut reader = Reader(&bytes);
            assert_eq!(Record::decode(&mut reader), Some(record.clone()));
            assert!(reader.0.is_empty());
            for end in 0..bytes.len() {
                assert_eq!(Record::decode(&mut Reader(&bytes[..end])), None);
            }
        }
    }
}
