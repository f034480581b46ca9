//! Buffers that direct I/O takes: their address is a multiple of a page.
//!
//! A caller's bytes are rarely aligned, so they go through one of these. A few are kept, as every
//! command needs one.

use runtime::sync::Mutex;

/// Enough for every block size there is.
pub(crate) const ALIGNMENT: usize = 4096;
/// How many unused buffers are kept.
const KEPT: usize = 16;

/// Whether `bytes` may be given to direct I/O as they are.
pub(crate) fn is_aligned(bytes: &[u8]) -> bool {
    bytes.as_ptr().align_offset(ALIGNMENT) == 0
}

/// Buffers of one length.
#[derive(Debug)]
pub(crate) struct Buffers {
    length: usize,
    free: Mutex<Vec<Vec<u8>>>,
}

impl Buffers {
    /// Buffers of `length` bytes.
    pub fn new(length: usize) -> Self {
        Self {
            length,
            free: Mutex::default(),
        }
    }

    /// Calls `use_it` with a buffer, which holds arbitrary bytes.
    pub fn with<R>(&self, use_it: impl FnOnce(&mut [u8]) -> R) -> R {
        let kept = self.free.lock().pop();
        // Longer than needed, so that an aligned part of the length lies somewhere in it.
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
