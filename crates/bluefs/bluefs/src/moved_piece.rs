//! Compares the copy of a piece with the checksum of the original.

use crate::node::Piece;
use crc_fast::{CrcAlgorithm, checksum_combine};

/// Whether the moved bytes match the checksum of the piece; true if it has none.
pub(crate) fn is_copy_of(piece: &Piece, moved: &[Piece]) -> bool {
    let whole = moved.iter().fold(0, |sum, p| {
        let (a, b) = (u64::from(sum), u64::from(p.checksum));
        checksum_combine(CrcAlgorithm::Crc32Iscsi, a, b, p.length) as u32
    });
    piece.checksum == 0 || piece.checksum == whole
}

/// Bytes that do not match their checksum are moved as they are; their new checksums are changed so that the damage is
/// still detected.
pub(crate) fn keep_damage_known(piece: &Piece, moved: &mut [Piece]) {
    if !is_copy_of(piece, moved) {
        tracing::warn!(at = %piece.at, expected = piece.checksum, "damaged data was moved");
        for piece in moved {
            piece.checksum = (!piece.checksum).max(1);
        }
    }
}
