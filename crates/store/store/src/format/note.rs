//! Notes in the write-ahead log about the data of a batch, for the replay.

use super::blob::{checksum_kind, decode_checksums};
use codec::{Put, Reader};
use object::{ChecksumBlock, ChecksumKind, Fragment, MAX_STORED};
use zone::{ZoneAddress, ZoneId};

const VERSION: u8 = 1;

/// Note of a batch, found only in the write-ahead log: its number, a batch that was acknowledged before it was made,
/// and the data that must have reached the drive for the batch to count.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct BatchNote {
    pub number: u64,
    pub acknowledged: u64,
    pub pieces: Vec<Piece>,
}

/// A run of new bytes in one zone, with a checksum for each checksum block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    pub at: ZoneAddress,
    pub length: u32,
    pub checksum_kind: ChecksumKind,
    pub checksum_block: ChecksumBlock,
    pub checksums: Vec<u32>,
}

impl Piece {
    pub fn fragment(&self) -> Fragment {
        let (at, length) = (Some(self.at), self.length);
        Fragment { at, length }
    }
}

impl BatchNote {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION, 0, 0, 0];
        out.put_u64(self.number);
        out.put_u64(self.acknowledged);
        for piece in &self.pieces {
            out.put_u32(piece.at.zone.0);
            out.put_u64(piece.at.offset);
            out.put_u32(piece.length);
            let shift = piece.checksum_block.shift();
            out.extend_from_slice(&[piece.checksum_kind as u8, shift, 0, 0]);
            piece.checksums.iter().for_each(|sum| out.put_u32(*sum));
        }
        out
    }

    pub fn decode(value: &[u8]) -> Option<Self> {
        let mut r = Reader(value);
        if r.take(4)? != [VERSION, 0, 0, 0] {
            return None;
        }
        let (number, acknowledged) = (r.u64()?, r.u64()?);
        let mut pieces = Vec::new();
        while !r.0.is_empty() {
            let at = ZoneAddress::new(ZoneId(r.u32()?), r.u64()?);
            let length = r.u32()?;
            let checksum_kind = checksum_kind(r.u8()?)?;
            let checksum_block = ChecksumBlock::from_shift(r.u8()?)?;
            if !(1..=MAX_STORED).contains(&length) || r.u16()? != 0 {
                return None;
            }
            let checksums = decode_checksums(&mut r, checksum_kind, checksum_block, length)?;
            pieces.push(Piece {
                at,
                length,
                checksum_kind,
                checksum_block,
                checksums,
            });
        }
        Some(Self {
            number,
            acknowledged,
            pieces,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_note_survives_the_round_trip() {
        let at = ZoneAddress::new(ZoneId(1), 4096);
        let pieces = vec![Piece {
            at,
            length: 70_000,
            checksum_kind: ChecksumKind::Crc32c,
            checksum_block: ChecksumBlock::DEFAULT,
            checksums: vec![1, 2],
        }];
        let n = BatchNote {
            number: 4,
            acknowledged: 3,
            pieces,
        };
        assert_eq!(BatchNote::decode(&n.encode()), Some(n));
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_do_not(mut value in proptest::collection::vec(any::<u8>(), 20..120)) {
            value[..4].copy_from_slice(&[VERSION, 0, 0, 0]);
            if let Some(note) = BatchNote::decode(&value) {
                prop_assert_eq!(note.encode(), value);
            }
        }
    }
}
