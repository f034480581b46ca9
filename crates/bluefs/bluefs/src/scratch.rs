//! A thread's buffer for blocks that are read only to be copied from.
//!
//! It begins at a page, so that direct I/O can fill it without a copy. Allocating a buffer for every read took longer
//! than the read itself if the host had the bytes in its page cache.

use std::cell::RefCell;

const PAGE: usize = 4096;
/// Most bytes that a thread keeps: enough for 32 reads of an SST's blocks.
const KEEP: usize = 512 << 10;

/// Calls `work` with a buffer of `length` bytes of arbitrary content.
pub(crate) fn with<R>(length: usize, work: impl FnOnce(&mut [u8]) -> R) -> R {
    thread_local! {
        static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    // The buffer of a thread that is ending is gone already; such a thread may be the one that unmounts.
    let mut scratch = SCRATCH.try_with(RefCell::take).unwrap_or_default();
    if scratch.len() < length + PAGE {
        // A new buffer, because growing would copy the old bytes.
        scratch = vec![0; length + PAGE];
    }
    let start = scratch.as_ptr().align_offset(PAGE);
    let result = work(&mut scratch[start..start + length]);
    if scratch.len() <= KEEP + PAGE {
        let _ = SCRATCH.try_with(|kept| kept.replace(scratch));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_begins_at_a_page_and_is_the_same_again_unless_it_was_too_large() {
        let place = |length| {
            super::with(length, |bytes| {
                assert_eq!(
                    (bytes.len(), bytes.as_ptr().align_offset(PAGE)),
                    (length, 0)
                );
                bytes.fill(1);
                bytes.as_ptr()
            })
        };
        for length in [0, 1, 4096, 100_000, KEEP, KEEP + 1, 4 << 20, 4096] {
            place(length);
        }
        assert_eq!(place(4096), place(100));
        let kept = place(KEEP);
        assert_eq!(place(1), kept);
    }

    /// A preloaded library unmounts at the exit of its process, when the thread's own variables are gone.
    #[test]
    fn a_thread_that_ends_can_still_read() {
        struct Late(std::sync::mpsc::Sender<usize>);
        impl Drop for Late {
            fn drop(&mut self) {
                let _ = self.0.send(super::with(100, |bytes| bytes.len()));
            }
        }
        thread_local! {
            static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
        }
        let (done, is_done) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            // The later one is dropped first.
            LATE.set(Some(Late(done)));
            super::with(10, |_| ());
        });
        thread.join().unwrap();
        assert_eq!(is_done.recv(), Ok(100));
    }
}
