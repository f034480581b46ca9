//! A run of a blob's stored bytes in one zone.

use zone::ZoneAddress;

/// A run of a blob's stored bytes: in one zone, or released because nothing refers to it any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fragment {
    /// First byte on the drive, a multiple of the drive's block; `None`: released.
    pub at: Option<ZoneAddress>,
    /// Number of bytes. Whole blocks of the drive, except at the blob's end, where the drive has zeros up to the next
    /// block.
    pub length: u32,
}

impl Fragment {
    /// Bytes that it takes on the drive, with the padding of the last block.
    pub fn padded(&self, block_size: u32) -> u64 {
        u64::from(self.length).next_multiple_of(u64::from(block_size))
    }
}

/// Appends `next`; adjacent released runs are joined. Runs on the drive are not, because the cleaning index and the log
/// identify a run by its first byte.
pub(crate) fn push(fragments: &mut Vec<Fragment>, next: Fragment) {
    match fragments.last_mut() {
        _ if next.length == 0 => {}
        Some(last) if last.at.is_none() && next.at.is_none() => last.length += next.length,
        _ => fragments.push(next),
    }
}

/// Appends the bytes `from..to` of a run of `fragments`, counted from their start.
pub(crate) fn push_part(into: &mut Vec<Fragment>, fragments: &[Fragment], from: u32, to: u32) {
    let mut begins = 0;
    for fragment in fragments {
        let ends = begins + fragment.length;
        let (low, high) = (from.max(begins), to.min(ends));
        if low < high {
            let at = fragment
                .at
                .map(|at| ZoneAddress::new(at.zone, at.offset + u64::from(low - begins)));
            let length = high - low;
            push(into, Fragment { at, length });
        }
        begins = ends;
    }
}
