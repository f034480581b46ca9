//! The format of log records: header, payload, zeros up to the block. A record names its file and its offset in the
//! file, so that a run of records needs no other metadata, and an incomplete record is the end of the run. The `run_id`
//! identifies the run: a record from an earlier life of the zone has another one. The record's own position is in it,
//! so a copy elsewhere is not valid. Its mark records what a completed flush had made durable before it was written.

use super::crc32c;
use codec::Reader;
use zone::{ZoneAddress, ZoneId};

/// First bytes of a record.
pub const MAGIC: [u8; 4] = *b"BFWR";
/// Bytes of a record's header.
pub const HEADER: usize = 84;
/// Inode of a record that belongs to no file: it ends the run before it.
pub const NO_FILE: u64 = 0;
/// Most payload bytes of one record.
pub const MAX_PAYLOAD: usize = (1 << 20) - HEADER;

/// What was certainly durable when a record was written. It stays true, wherever the record is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    /// Epoch of the journal.
    pub epoch: u64,
    /// Number of frames of that epoch that were durable, with all that they name.
    pub frames: u64,
    /// Zone offset before which all of the record's own run was durable.
    pub run: u64,
    /// The same for the other run that was written to last: its zone, and an offset in it; offset 0 if there is none.
    pub other: ZoneAddress,
    /// The id of that run.
    pub other_run_id: u32,
}

/// A record's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordHeader {
    /// Inode of the file.
    pub inode: u64,
    /// Offset of the payload in the file.
    pub file_offset: u64,
    /// Bytes of payload.
    pub length: u32,
    /// Id of the run that the record belongs to.
    pub run_id: u32,
    /// What was durable before the record was written.
    pub mark: Mark,
    /// Position to which the record was written.
    pub at: ZoneAddress,
    checksum: u32,
}

/// Encodes a record that is to be written to `at`, padded to whole blocks.
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

/// Whether this block, as the first one of another file after the last record of a log, would be taken for damage of
/// the log.
pub fn misleads(start: &[u8]) -> bool {
    codec::is_zero(start) || start.starts_with(&MAGIC)
}

/// Encodes a record of no file that is to be written to `at`, after the last record of another run. Its mark claims
/// nothing to be durable.
pub fn ends_a_log(at: ZoneAddress, run_id: u32, block_size: u32) -> Vec<u8> {
    let mark = Mark {
        epoch: 0,
        frames: 0,
        run: 0,
        other: ZoneAddress::new(at.zone, 0),
        other_run_id: run_id,
    };
    encode(at, NO_FILE, run_id, 0, mark, &[], block_size)
}

/// Decodes the header at the front of `start`; `None` if there is none. [`RecordHeader::fits`] tells whether the record
/// is whole.
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
