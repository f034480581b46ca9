//! Memory for the bytes that one reader has read ahead, out of a budget that all readers of a mount share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most bytes that all readers of a mount may hold together.
pub(crate) const BUDGET: u64 = 32 << 20;

/// A range of a file's bytes, valid as long as the file's count of truncations is `truncates`.
pub(crate) struct Window {
    truncates: u32,
    start: u64,
    bytes: Vec<u8>,
    /// Remaining bytes of the shared budget, without those of this window.
    left: Arc<AtomicU64>,
}

impl Window {
    pub fn new(left: Arc<AtomicU64>) -> Self {
        let (truncates, start, bytes) = (0, 0, Vec::new());
        Self {
            truncates,
            start,
            bytes,
            left,
        }
    }

    /// Fills `target` from `offset` on if the window holds all of it; otherwise false. A window that has been read to
    /// its end is released.
    pub fn serve(&mut self, truncates: u32, offset: u64, target: &mut [u8]) -> bool {
        let Some(from) = offset
            .checked_sub(self.start)
            .filter(|_| truncates == self.truncates)
        else {
            return false;
        };
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let Some(found) = from
            .checked_add(target.len())
            .and_then(|to| self.bytes.get(from..to))
        else {
            return false;
        };
        target.copy_from_slice(found);
        if from + target.len() == self.bytes.len() {
            self.clear();
        }
        true
    }

    /// Fills the window with `length` bytes from `start` on by calling `read`; false if that fails, or if the budget is
    /// too small. The earlier bytes are released in any case.
    pub fn fill(
        &mut self,
        truncates: u32,
        start: u64,
        length: u64,
        read: impl FnOnce(&mut [u8]) -> bool,
    ) -> bool {
        let (had, take) = (self.bytes.len() as u64, Ordering::AcqRel);
        let swap = |left: u64| left.saturating_add(had).checked_sub(length);
        if self
            .left
            .fetch_update(take, Ordering::Acquire, swap)
            .is_err()
        {
            self.clear();
            return false;
        }
        (self.truncates, self.start) = (truncates, start);
        self.bytes.resize(length as usize, 0);
        let done = read(&mut self.bytes);
        if !done {
            self.clear();
        }
        done
    }

    /// Releases all bytes.
    pub fn clear(&mut self) {
        self.left
            .fetch_add(self.bytes.len() as u64, Ordering::AcqRel);
        self.bytes = Vec::new();
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serves_what_it_has_and_gives_its_budget_back() {
        let left = Arc::new(AtomicU64::new(100));
        let now = || left.load(Ordering::Acquire);
        let (mut window, mut other) = (Window::new(left.clone()), Window::new(left.clone()));
        let count = |bytes: &mut [u8]| {
            bytes.iter_mut().zip(10..).for_each(|(b, i)| *b = i);
            true
        };
        assert!(window.fill(3, 10, 60, count));
        assert!(!other.fill(0, 0, 41, count));
        assert!(other.fill(0, 0, 40, count));
        assert_eq!(now(), 0);
        // One that is filled again needs no more than the difference.
        assert!(window.fill(3, 10, 55, count));
        assert_eq!(now(), 5);
        let mut target = [0; 4];
        assert!(window.serve(3, 20, &mut target));
        assert_eq!(target, [20, 21, 22, 23]);
        assert!(!window.serve(4, 20, &mut target));
        assert!(!window.serve(3, 9, &mut target));
        assert!(!window.serve(3, 62, &mut target));
        assert!(window.serve(3, 61, &mut target));
        assert_eq!(now(), 60);
        assert!(!window.fill(3, 0, 10, |_| false));
        drop(other);
        assert_eq!(now(), 100);
    }
}
