//! Page-aligned buffers for direct I/O.
//!
//! A caller's bytes are rarely aligned, so they are copied through such a buffer. A few buffers are kept,
//! because every command needs one.

use runtime::sync::Mutex;

/// Alignment in bytes, which suffices for every block size.
pub(crate) const ALIGNMENT: usize = 4096;
/// Most unused buffers that are kept.
const KEPT: usize = 16;

/// Whether direct I/O accepts `bytes` without a copy.
pub(crate) fn is_aligned(bytes: &[u8]) -> bool {
    bytes.as_ptr().align_offset(ALIGNMENT) == 0
}

/// A pool of buffers of one length.
#[derive(Debug)]
pub(crate) struct Buffers {
    length: usize,
    free: Mutex<Vec<Vec<u8>>>,
}

impl Buffers {
    /// An empty pool of buffers of `length` bytes.
    pub fn new(length: usize) -> Self {
        Self {
            length,
            free: Mutex::default(),
        }
    }

    /// Calls `use_it` with a buffer, which holds arbitrary bytes.
    pub fn with<R>(&self, use_it: impl FnOnce(&mut [u8]) -> R) -> R {
        let kept = self.free.lock().pop();
        // One alignment longer than needed, so that an aligned buffer of the length fits in.
        let mut bytes = kept.unwrap_or_else(|| vec![0; self.length + ALIGNMENT]);
        let start = bytes.as_ptr().align_offset(ALIGNMENT);
        let result = use_it(&mut bytes[start..start + self.length]);
        let mut free = self.free.lock();
        if free.len() < KEPT {
            free.push(bytes);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_used_again() {
        let buffers = Buffers::new(8192);
        let first = buffers.with(|bytes| {
            assert!(is_aligned(bytes));
            assert!(!is_aligned(&bytes[512..]));
            assert_eq!(bytes.len(), 8192);
            bytes.as_ptr()
        });
        buffers.with(|bytes| {
            assert_eq!(bytes.as_ptr(), first);
            buffers.with(|other| assert!(is_aligned(other) && other.as_ptr() != first));
        });
    }
}
