//! Removal of a run from the middle of an extent: what remains on either side.

use crate::{Content, Extent, MAX_INLINE};

/// What remains of an extent without its bytes `left..right`.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Divided {
    Into {
        left: Option<Extent>,
        /// Bytes of the old extent, from `right` on, to be copied inline: at most [`MAX_INLINE`].
        copy: Option<(u64, u64)>,
        /// Offset in the old extent, and the extent from there on.
        right: Option<(u64, Extent)>,
    },
    /// Both sides need a unit that only one can own: the blob has to become shared first.
    ShareFirst,
}

/// Divides `extent`. `left < right <= length`.
///
/// Units of a blob (checksum blocks or blocks of the drive) cannot be divided. If both sides need the same one, it
/// stays with the left side, and the right side's bytes of it are copied inline, or the blob is shared if these are too
/// many.
pub(crate) fn divide(extent: &Extent, left: u64, right: u64, block_size: u32) -> Divided {
    let length = extent.length;
    let mut copy = None;
    let mut right_from = right;
    if let Content::Own { blob, skip } = &extent.content
        && left > 0
        && right < length
    {
        if !blob.is_divisible() {
            return Divided::ShareFirst;
        }
        let unit = u64::from(blob.unit(block_size));
        let skip = u64::from(*skip);
        let unit_of = |at: u64| (skip + at) / unit;
        if unit_of(left - 1) == unit_of(right) {
            right_from = ((unit_of(right) + 1) * unit - skip).min(length);
            if right_from - right > MAX_INLINE {
                return Divided::ShareFirst;
            }
            copy = Some((right, right_from));
        }
    }
    Divided::Into {
        left: (left > 0).then(|| part(extent, 0, left, block_size)),
        copy,
        right: (right_from < length)
            .then(|| (right_from, part(extent, right_from, length, block_size))),
    }
}

/// The bytes `from..to` of an extent, `from < to <= length`, with the same part of its blob, none of which is released.
pub fn part(extent: &Extent, from: u64, to: u64, block_size: u32) -> Extent {
    // Only holes may be longer than u32, and they have nothing to skip.
    let forward = |skip: &u32| skip + from as u32;
    let content = match &extent.content {
        Content::Hole => Content::Hole,
        Content::Inline(bytes) => Content::Inline(bytes[from as usize..to as usize].to_vec()),
        Content::Own { blob, skip } if blob.is_divisible() => {
            let (blob, skip) = blob.slice(skip + from as u32, skip + to as u32, block_size);
            Content::Own { blob, skip }
        }
        Content::Own { blob, skip } => Content::Own {
            blob: blob.clone(),
            skip: forward(skip),
        },
        Content::Shared { blob, skip } => Content::Shared {
            blob: *blob,
            skip: forward(skip),
        },
    };
    Extent {
        length: to - from,
        content,
    }
}
