//! A record of a log file: header, payload, zeros up to the block. It names its file and its
//! place in it, so that a run of records needs no other metadata and a torn one is the end. The run_id
//! is that of the run: a record that an earlier life of the zone left behind has another. It names
//! its place on the drive, so that a copy of it elsewhere is no record. Its mark says what a completed
//! flush had made durable before it was written.

use super::crc32c;
use codec::Reader;
use zone::{ZoneAddress, ZoneId};

/// First bytes of a record.
pub const MAGIC: [u8; 4] = *b"BFWR";
/// Bytes of a record's header.
pub const HEADER: usize = 84;
/// Most payload bytes of one record.
pub const MAX_PAYLOAD: usize = (1 << 20) - HEADER;

/// What was durable for certain when a record was written. True for ever, wherever it is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    /// Epoch of the journal.
    pub epoch: u64,
    /// Frames of that epoch, and all that they name.
    pub frames: u64,
    /// Of the run that the record belongs to all in front of this offset in its zone.
    pub run: u64,
    /// Of another run all in front of this place, offset 0 if there is none: the one that was
    /// written to last.
    pub other: ZoneAddress,
    /// The id of the other run.
    pub other_run_id: u32,
}

/// A record's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordHeader {
    /// The file.
    pub inode: u64,
    /// Where the payload begins in it.
    pub file_offset: u64,
    /// Bytes of payload.
    pub length: u32,
    /// Of the run of records that it belongs to.
    pub run_id: u32,
    /// What was durable before.
    pub mark: Mark,
    /// Where it was written to.
    pub at: ZoneAddress,
    checksum: u32,
}

/// A whole record that is to be written to `at`, padded to blocks.
pub fn encode(
    at: ZoneAddress,
    inode: u64,
    run_id: u32,
    file_offset: u64,
    mark: Mark,
    payload: &[u8],
    block_size: u32,
) -> Vec<u8> {
    let total = (HEADER + payload.len()).next_multiple_of(block_size as usize);
    let mut out = Vec::with_capacity(total);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&[0; 4]); // checksum, below
    out.extend_from_slice(&inode.to_le_bytes());
    out.extend_from_slice(&file_offset.to_le_bytes());
    out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    out.extend_from_slice(&run_id.to_le_bytes());
    for number in [mark.epoch, mark.frames, mark.run, mark.other.offset] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(&mark.other.zone.0.to_le_bytes());
    out.extend_from_slice(&mark.other_run_id.to_le_bytes());
    out.extend_from_slice(&at.offset.to_le_bytes());
    out.extend_from_slice(&at.zone.0.to_le_bytes());
    out.extend_from_slice(payload);
    let sum = crc32c(&out[8..]);
    out[4..8].copy_from_slice(&sum.to_le_bytes());
    out.resize(total, 0);
    out
}

/// The header at the front of `start`; whether the record is whole is for [`RecordHeader::fits`].
pub fn decode_header(start: &[u8]) -> Option<RecordHeader> {
    let mut b = Reader(start);
    if b.take(4)? != MAGIC {
        return None;
    }
    let checksum = b.u32()?;
    let (inode, file_offset, length, run_id) = (b.u64()?, b.u64()?, b.u32()?, b.u32()?);
    let (epoch, frames, run, other) = (b.u64()?, b.u64()?, b.u64()?, b.u64()?);
    let mark = Mark {
        epoch,
        frames,
        run,
        other: ZoneAddress::new(ZoneId(b.u32()?), other),
        other_run_id: b.u32()?,
    };
    let offset = b.u64()?;
    let at = ZoneAddress::new(ZoneId(b.u32()?), offset);
    (length as usize <= MAX_PAYLOAD).then_some(RecordHeader {
        inode,
        file_offset,
        length,
        run_id,
        mark,
        at,
        checksum,
    })
}

impl RecordHeader {
    /// Bytes of header and payload.
    pub fn record_length(&self) -> usize {
        HEADER + self.length as usize
    }

    /// Whether `record`, which begins with this header, is whole and matches its checksum.
    pub fn fits(&self, record: &[u8]) -> bool {
        record
            .get(8..self.record_length())
            .is_some_and(|b| crc32c(b) == self.checksum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const AT: ZoneAddress = ZoneAddress::new(ZoneId(7), 8 * 512);
    const MARK: Mark = Mark {
        epoch: 1,
        frames: 2,
        run: 3,
        other: ZoneAddress::new(ZoneId(4), 5),
        other_run_id: 6,
    };

    proptest! {
        #[test]
        fn decoding_inverts_encoding(
            inode: u64, run_id: u32, file_offset: u64, epoch: u64, frames: u64, other_run_id: u32,
            payload in proptest::collection::vec(any::<u8>(), 0..1000),
        ) {
            let other = ZoneAddress::new(ZoneId(run_id), file_offset);
            let mark = Mark { epoch, frames, run: inode, other, other_run_id };
            let record = encode(AT, inode, run_id, file_offset, mark, &payload, 512);
            let header = decode_header(&record).unwrap();
            prop_assert_eq!((header.mark, header.at), (mark, AT));
            prop_assert_eq!((header.inode, header.run_id, header.file_offset), (inode, run_id, file_offset));
            prop_assert!(header.fits(&record));
            prop_assert_eq!(&record[HEADER..header.record_length()], &payload[..]);
        }

        #[test]
        fn a_record_torn_at_any_byte_does_not_fit(cut in 0usize..700) {
            let record = encode(AT, 1, 9, 2, MARK, &[0xab; 660], 4096);
            let mut torn = record.clone();
            torn[cut..].fill(0);
            if torn != record {
                prop_assert!(decode_header(&torn).is_none_or(|h| !h.fits(&torn)));
            }
        }

        #[test]
        fn any_bytes_decode_or_do_not(mut bytes in proptest::collection::vec(any::<u8>(), 4..120)) {
            bytes[..4].copy_from_slice(&MAGIC);
            if let Some(header) = decode_header(&bytes) {
                let _ = header.fits(&bytes);
            }
        }
    }
}
