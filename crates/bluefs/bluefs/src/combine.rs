//! Finds a piece in a pair of zones: in the copy that matches its checksum, or, if both are damaged in different
//! blocks, by choosing each block from one of the copies so that the whole matches the checksum. Two blocks that a
//! drive exchanged between the copies are such damage.

use crate::format::crc32c;
use crate::mirror::Mirror;
use crate::node::Piece;
use zone::{ZoneError, ZoneId};

/// Most differing blocks for which each choice is tried. With more, a choice of wrong blocks could match by chance.
const MOST: usize = 8;

/// The copy that matches the piece's checksum, with the piece's bytes; `None` if there is only one copy, or if none
/// matches.
pub(crate) fn right_copy(device: &dyn Mirror, piece: &Piece) -> Option<(ZoneId, Vec<u8>)> {
    let [first, other] = device.copies_of(piece.at.zone)?;
    // The caller may have read either, because another thread may have changed which one is read first.
    [other, first].into_iter().find_map(|copy| {
        let mut bytes = vec![0; device.geometry().round_up(piece.length) as usize];
        device.read_copy(copy, piece.at.offset, &mut bytes).ok()?;
        bytes.truncate(piece.length as usize);
        (crc32c(&bytes) == piece.checksum).then_some((copy, bytes))
    })
}

/// The piece's bytes; `None` if no choice of blocks matches, or more than one does.
pub(crate) fn combined(device: &dyn Mirror, piece: &Piece) -> Option<Vec<u8>> {
    let [first, other_copy] = device.copies_of(piece.at.zone)?;
    if piece.checksum == 0 || !piece.is_inside_zone(device.geometry()) {
        return None;
    }
    let block = device.geometry().block_size as usize;
    let length = piece.length as usize;
    let mut bytes = vec![0; length.next_multiple_of(block)];
    let mut others: Vec<(usize, Vec<u8>)> = Vec::new();
    for (number, target) in bytes.chunks_mut(block).enumerate() {
        let offset = piece.at.offset + (number * block) as u64;
        let mut other = vec![0; block];
        let one = device.read_copy(first, offset, target);
        match (one, device.read_copy(other_copy, offset, &mut other)) {
            (Err(ZoneError::PowerLost { .. }), _) | (Err(_), Err(_)) => return None,
            (Err(_), Ok(())) => target.copy_from_slice(&other),
            (Ok(()), Err(_)) => {}
            (Ok(()), Ok(())) if *target == other => {}
            (Ok(()), Ok(())) => others.push((number * block, other)),
        }
        if others.len() > MOST {
            return None;
        }
    }
    let checksum_of = |bytes: &[u8]| crc32c(&bytes[..length]);
    let exchange = |bytes: &mut [u8], (from, other): &mut (usize, Vec<u8>)| {
        bytes[*from..*from + block].swap_with_slice(other);
    };
    // With a crc, exchanging a block changes the same bits of the checksum, whatever the other blocks are.
    let base = checksum_of(&bytes);
    let mut changes = Vec::new();
    for other in &mut others {
        exchange(&mut bytes, other);
        changes.push(base ^ checksum_of(&bytes));
        exchange(&mut bytes, other);
    }
    let of_choice = |choice: u32| {
        let chosen = changes
            .iter()
            .enumerate()
            .filter(|(n, _)| choice >> n & 1 == 1);
        chosen.fold(base, |sum, (_, change)| sum ^ change)
    };
    let mut right =
        (0..1_u32 << others.len()).filter(|choice| of_choice(*choice) == piece.checksum);
    let choice = right.next()?;
    if right.next().is_some() {
        return None;
    }
    for (number, other) in others.iter_mut().enumerate() {
        if choice >> number & 1 == 1 {
            exchange(&mut bytes, other);
        }
    }
    bytes.truncate(length);
    (crc32c(&bytes) == piece.checksum).then_some(bytes)
}
