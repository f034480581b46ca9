//! The ways in which blocks are damaged: flipped and zeroed, and replaced by other blocks.

use super::*;

impl Past {
    pub(super) fn flip_and_zero(&self, seen: &mut Seen) {
        for at in &self.blocks {
            let good = block(&self.device, *at);
            let begins = [&b"BFJL"[..], b"BFWR", b"ZSBL"]
                .iter()
                .any(|m| good.starts_with(m));
            let all_fields = &[0, 5, 9, 17, 25, 29, 33, 41, 49, 57, 65, 69, 73, 81, 300];
            let bytes: &[usize] = if begins { all_fields } else { &[9] };
            for &byte in bytes {
                let mut bad = good.clone();
                bad[byte] ^= 1 << (byte % 8);
                self.examine(&format!("{at} byte {byte}"), &[(*at, bad)], seen);
            }
            self.examine(&format!("{at} zeroed"), &[(*at, vec![0; BLOCK])], seen);
        }
    }

    /// Replaces each block by others, of logs, of the journal and of SSTs alike, exchanges them, and puts earlier
    /// contents back.
    pub(super) fn misplace(&self, seed: u64, seen: &mut Seen) {
        let mut random = seed + 2 * support::seed();
        for (index, at) in self.blocks.iter().enumerate() {
            let good = block(&self.device, *at);
            let neighbour = self.blocks.get(index + 1).copied();
            let others = (0..4).map(|_| {
                random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                self.blocks[(random >> 33) as usize % self.blocks.len()]
            });
            for other in neighbour.into_iter().chain(others) {
                let bytes = block(&self.device, other);
                if bytes == good {
                    continue;
                }
                let copied = [(*at, bytes.clone())];
                self.examine(&format!("{other} copied over {at}"), &copied, seen);
                // Without the superblock of an epoch, only the epoch's second frame proves that it existed.
                if [&good, &bytes].iter().any(|b| b.starts_with(b"ZSBL")) {
                    continue;
                }
                let swapped = [(*at, bytes), (other, good.clone())];
                self.examine(&format!("{at} and {other} swapped"), &swapped, seen);
            }
            let mut earlier: Vec<_> = self.snapshots.iter().map(|s| block(s, *at)).collect();
            earlier.dedup();
            for bytes in earlier.into_iter().filter(|bytes| *bytes != good) {
                self.examine(&format!("{at} as it was"), &[(*at, bytes)], seen);
            }
        }
    }
}
