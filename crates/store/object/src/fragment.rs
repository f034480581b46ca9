//! A run of a blob's stored bytes in one zone.

use zone::ZoneAddress;

/// A run of a blob's stored bytes: in one zone, or released because nothing refers to it any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fragment {
    /// First byte on the drive, a multiple of the drive's block; `None`: released.
    pub at: Option<ZoneAddress>,
    /// Bytes. Whole blocks of the drive, except at the blob's end, where the drive has zeros up to the
    /// next block.
    pub length: u32,
}

impl Fragment {
    /// Bytes on the drive, the padding of the last block included.
    pub fn padded(&self, block_size: u32) -> u64 {
        u64::from(self.length).next_multiple_of(u64::from(block_size))
    }
}

/// Appends `next`; released runs grow together. What is on the drive does not, for the cleaning index and
/// the log know a run by its first byte.
pub(crate) fn push(fragments: &mut Vec<Fragment>, next: Fragment) {
    match fragments.last_mut() {
        _ if next.length == 0 => {}
        Some(last) if last.at.is_none() && next.at.is_none() => last.length += next.length,
        _ => fragments.push(next),
    }
}

/// Appends the part `from..to` of a run of `fragments`, counted from their beginning.
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
