//! The format of the journal's frames.
//!
//! A frame is a header and operations, padded with zeros to whole blocks. Frames of one epoch are numbered from 0
//! without gaps, and each contains the checksum of the one before it; the first frame that is not as expected is the
//! end of the journal. Each also records how many of them were durable before it was written, so that damage before it
//! is not taken for the end.

use super::crc32c;
use super::operation::JournalOperation;
use codec::Reader;

/// First bytes of a frame.
pub const MAGIC: [u8; 4] = *b"BFJL";
/// Bytes of a frame's header.
pub const HEADER: usize = 40;
/// Most bytes of operations in one frame.
pub const MAX_PAYLOAD: usize = 256 << 10;

/// The fields by which a frame is recognized as the next one of its journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The journal's epoch.
    pub epoch: u64,
    /// The frame's number, from 0.
    pub sequence: u64,
    /// The checksum of the frame before it; 0 for the first.
    pub previous: u32,
}

/// A frame's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameHeader {
    /// Identity of the frame.
    pub place: Place,
    /// Bytes of operations after the header.
    pub length: usize,
    /// Number of frames of the epoch that were durable, with all that they name and with the superblock that names the
    /// epoch, before this frame was written; 0 while none was known to be.
    pub durable: u64,
    checksum: u32,
}

/// Result of decoding a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DecodedFrame {
    /// The operations, and the checksum that the next frame has to contain.
    Whole(Vec<JournalOperation>, u32),
    /// Incomplete: the checksum is wrong.
    Torn,
    /// The checksum is right, but an operation is unknown.
    Unknown,
}

/// Encodes a frame of encoded operations, padded to whole blocks; returns it with its checksum. `durable` is
/// [`FrameHeader::durable`].
pub fn encode_frame(place: Place, durable: u64, payload: &[u8], block_size: u32) -> (Vec<u8>, u32) {
    let length = (HEADER + payload.len()).next_multiple_of(block_size as usize);
    let mut out = Vec::with_capacity(length);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&[0; 4]); // checksum, below
    out.extend_from_slice(&place.epoch.to_le_bytes());
    out.extend_from_slice(&place.sequence.to_le_bytes());
    out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    out.extend_from_slice(&place.previous.to_le_bytes());
    out.extend_from_slice(&durable.to_le_bytes());
    out.extend_from_slice(payload);
    let sum = crc32c(&out[8..]);
    out[4..8].copy_from_slice(&sum.to_le_bytes());
    out.resize(length, 0);
    (out, sum)
}

/// Decodes the header at the front of `start`; `None` if there is none. [`FrameHeader::fits`] tells whether the frame
/// is whole.
pub fn decode_header(start: &[u8]) -> Option<FrameHeader> {
    let mut b = Reader(start);
    if b.take(4)? != MAGIC {
        return None;
    }
    let checksum = b.u32()?;
    let (epoch, sequence, length, previous) = (b.u64()?, b.u64()?, b.u32()? as usize, b.u32()?);
    let place = Place {
        epoch,
        sequence,
        previous,
    };
    let durable = b.u64()?;
    (length <= MAX_PAYLOAD).then_some(FrameHeader {
        place,
        length,
        durable,
        checksum,
    })
}

impl FrameHeader {
    /// Bytes of header and operations.
    pub fn frame_length(&self) -> usize {
        HEADER + self.length
    }

    /// Whether `frame`, which begins with this header, is whole and matches its checksum.
    pub fn fits(&self, frame: &[u8]) -> bool {
        frame
            .get(8..self.frame_length())
            .is_some_and(|b| crc32c(b) == self.checksum)
    }
}

/// Decodes the operations of a frame; `frame` is header and payload without padding.
pub fn decode_frame(frame: &[u8]) -> DecodedFrame {
    let header = decode_header(frame).filter(|h| h.frame_length() == frame.len() && h.fits(frame));
    let Some(header) = header else {
        return DecodedFrame::Torn;
    };
    let mut b = Reader(&frame[HEADER..]);
    let mut operations = Vec::new();
    while !b.0.is_empty() {
        match JournalOperation::decode(&mut b) {
            Some(operation) => operations.push(operation),
            None => return DecodedFrame::Unknown,
        }
    }
    DecodedFrame::Whole(operations, header.checksum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::operation::{ExtentEntry, Kind};
    use proptest::prelude::*;
    use zone::{ZoneAddress, ZoneId};

    fn samples() -> Vec<JournalOperation> {
        let at = ZoneAddress::new(ZoneId(3), 8192);
        let extents = vec![
            ExtentEntry {
                file_offset: 1,
                at,
                length: 5,
                checksum: 7
            };
            2
        ];
        let (from, to) = ("/a".to_owned(), "/b".to_owned());
        vec![
            JournalOperation::MakeDirectory { path: from.clone() },
            JournalOperation::RemoveDirectory { path: from.clone() },
            JournalOperation::Create {
                inode: 1,
                kind: Kind::Log,
                modified_micros: 2,
                path: to.clone(),
            },
            JournalOperation::Link {
                inode: 1,
                path: to.clone(),
            },
            JournalOperation::Unlink { path: to.clone() },
            JournalOperation::Rename { from, to },
            JournalOperation::Extend {
                inode: 4,
                modified_micros: 5,
                extents: extents.clone(),
            },
            JournalOperation::Move { inode: 4, extents },
            JournalOperation::Truncate {
                inode: 4,
                modified_micros: 5,
                size: 6,
            },
            JournalOperation::Take { zone: ZoneId(6) },
            JournalOperation::Give { zone: ZoneId(7) },
            JournalOperation::LogSegment {
                inode: 1,
                file_offset: 2,
                offset: 3,
                end: u64::MAX,
                zone: ZoneId(9),
                run_id: 11,
            },
            JournalOperation::LogTruncate { inode: 1, size: 2 },
            JournalOperation::NextZone { zone: ZoneId(8) },
            JournalOperation::NextInode { inode: 99 },
            JournalOperation::WrittenEnd { at, run_id: 12 },
        ]
    }

    const PLACE: Place = Place {
        epoch: 3,
        sequence: 4,
        previous: 5,
    };

    #[test]
    fn decoding_inverts_encoding() {
        let mut payload = Vec::new();
        samples().iter().for_each(|op| op.encode(&mut payload));
        let (frame, sum) = encode_frame(PLACE, 2, &payload, 512);
        assert!(frame.len().is_multiple_of(512));
        let header = decode_header(&frame).unwrap();
        assert_eq!((header.place, header.durable), (PLACE, 2));
        assert_eq!(header.length, payload.len());
        assert_eq!(
            decode_frame(&frame[..HEADER + payload.len()]),
            DecodedFrame::Whole(samples(), sum)
        );
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let mut payload = Vec::new();
        samples()[2].encode(&mut payload);
        let (frame, _) = encode_frame(PLACE, 2, &payload, 512);
        for at in 0..HEADER + payload.len() {
            let mut bad = frame[..HEADER + payload.len()].to_vec();
            bad[at] ^= 1;
            assert_eq!(decode_frame(&bad), DecodedFrame::Torn, "byte {at}");
        }
    }

    #[test]
    fn what_is_whole_and_not_known_is_told_from_what_is_torn() {
        let (frame, _) = encode_frame(PLACE, 2, &[0xee, 1, 2], 512);
        assert_eq!(decode_frame(&frame[..HEADER + 3]), DecodedFrame::Unknown);
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_do_not(
            head in 1u8..18,
            rest in proptest::collection::vec(any::<u8>(), 0..150),
        ) {
            let mut payload = vec![head];
            payload.extend(rest);
            let _ = decode_frame(&payload);
            let (frame, _) = encode_frame(PLACE, 2, &payload, 512);
            if let DecodedFrame::Whole(operations, _) = decode_frame(&frame[..HEADER + payload.len()]) {
                let mut again = Vec::new();
                operations.iter().for_each(|op| op.encode(&mut again));
                prop_assert_eq!(&again, &payload);
            }
            let _ = decode_header(&payload).map(|h| h.fits(&payload));
        }
    }
}
