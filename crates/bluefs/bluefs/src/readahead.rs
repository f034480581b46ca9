//! Decides when to read ahead, and how much: a pure function of the reads before.
//!
//! A reader that continues where it stopped, a few times, gets windows that double up to 2 MiB, in memory of its own.
//! Other reads are not extended.

/// Sequential reads before anything is read ahead.
const STREAK: u32 = 4;
/// Most bytes that two sequential reads may leave out between them.
const GAP: u64 = 16 << 10;
const FIRST_WINDOW: u64 = 64 << 10;
pub(crate) const MAX_WINDOW: u64 = 2 << 20;
/// Requests of at least so many bytes get no read-ahead: the caller does its own.
const LARGE: u64 = 256 << 10;

/// What is known of a reader's reads so far.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Sequence {
    /// Offset after the last read.
    next: u64,
    /// Number of sequential reads.
    streak: u32,
    /// Bytes that were read ahead last.
    window: u64,
}

impl Sequence {
    /// The state after a read of `length` bytes at `offset`.
    pub fn after(self, offset: u64, length: u64) -> Self {
        let next = offset.saturating_add(length);
        if (self.next..=self.next.saturating_add(GAP)).contains(&offset) {
            let streak = self.streak.saturating_add(1);
            Self {
                next,
                streak,
                ..self
            }
        } else {
            let (streak, window) = (0, 0);
            Self {
                next,
                streak,
                window,
            }
        }
    }

    /// Whether bytes read ahead may still be of use.
    pub fn goes_on(self) -> bool {
        self.streak > 0
    }

    /// Bytes to read if `length` bytes are requested and are not in memory: more than `length`, or 0 for no read-ahead.
    pub fn window(self, length: u64) -> u64 {
        if self.streak < STREAK || length >= LARGE {
            return 0;
        }
        let window = (self.window * 2).clamp(FIRST_WINDOW, MAX_WINDOW);
        window.max(2 * length)
    }

    /// The state after a read-ahead of `window` bytes.
    pub fn ahead(self, window: u64) -> Self {
        Self { window, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows for reads of 4 KiB at these offsets, none of which is in memory.
    fn windows(offsets: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut sequence = Sequence::default();
        let read = |offset| {
            sequence = sequence.after(offset, 4096);
            let window = sequence.window(4096);
            if window > 0 {
                sequence = sequence.ahead(window);
            }
            window
        };
        offsets.into_iter().map(read).collect()
    }

    #[test]
    fn reads_in_order_get_windows_that_double_up_to_a_limit() {
        let got = windows((0..12).map(|i| i * 4096));
        let kib = |n: u64| n << 10;
        let all = [0, 0, 0, 64, 128, 256, 512, 1024, 2048, 2048, 2048, 2048].map(kib);
        assert_eq!(got, all);
    }

    #[test]
    fn random_and_backward_reads_get_none() {
        assert!(
            windows((0..100).map(|i| i * 7919 % 100 * 65536))
                .iter()
                .all(|w| *w == 0)
        );
        assert!(
            windows((0..100).rev().map(|i| i * 4096))
                .iter()
                .all(|w| *w == 0)
        );
        assert!(windows(std::iter::repeat_n(0, 100)).iter().all(|w| *w == 0));
    }

    #[test]
    fn small_gaps_do_not_break_the_order_and_jumps_begin_anew() {
        assert!(
            windows((0..10).map(|i| i * (4096 + GAP)))
                .iter()
                .skip(4)
                .all(|w| *w > 0)
        );
        assert!(
            windows((0..10).map(|i| i * (4097 + GAP)))
                .iter()
                .all(|w| *w == 0)
        );
        let jump = windows((0..8).map(|i| i * 4096).chain([1 << 30, (1 << 30) + 4096]));
        assert!(jump[7] > 0);
        assert_eq!(jump[8..], [0, 0]);
    }

    #[test]
    fn large_reads_get_none_and_numbers_do_not_overflow() {
        let sequence = (0..8).fold(Sequence::default(), |s, i| s.after(i * LARGE, LARGE));
        assert_eq!(sequence.window(LARGE), 0);
        assert_eq!(sequence.window(100_000), 200_000);
        let last = Sequence::default()
            .after(u64::MAX - 1, 4096)
            .after(u64::MAX, 1);
        assert!(last.goes_on());
    }
}
