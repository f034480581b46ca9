//! Splits reads into parts that direct I/O accepts: at most one request long, at an aligned address. So a long
//! read becomes several requests in flight at once, and many short ones become one batch.

use super::aligned::{ALIGNMENT, Buffers, is_aligned};
use crate::rings::{AT_ONCE, Place};

/// Most bytes of a part, even if the device accepts more: a read of 2 MiB is to become eight parts.
const MOST_BYTES: usize = 256 << 10;
/// Length of `buffers` at which several unaligned parts can be in flight at once.
pub(crate) const BATCH_BYTES: usize = 1 << 20;

/// Reads all of `places` by calling `read` with batches of parts. Unaligned parts are read into one of
/// `buffers`, which holds at least one request, and copied.
pub(crate) fn read<'a, E>(
    buffers: &Buffers,
    request_bytes: usize,
    places: impl IntoIterator<Item = Place<'a>>,
    mut read: impl FnMut(&mut [Place<'_>]) -> Result<(), E>,
) -> Result<(), E> {
    let most = request_bytes.min(MOST_BYTES);
    let parts = |(at, buffer): Place<'a>| {
        let starts = (at..).step_by(most);
        starts.zip(buffer.chunks_mut(most))
    };
    let mut parts = places.into_iter().flat_map(parts).peekable();
    while let Some((_, first)) = parts.peek() {
        if is_aligned(first) {
            // Without a buffer: with more readers than buffers are kept, each would be allocated and zeroed for nothing.
            let mut batch = Vec::new();
            while batch.len() < AT_ONCE
                && let Some(part) = parts.next_if(|(_, target)| is_aligned(target))
            {
                batch.push(part);
            }
            read(&mut batch)?;
            continue;
        }
        buffers.with(|buffer| {
            let mut targets = Vec::new();
            let mut batch: Vec<Place<'_>> = Vec::new();
            let mut free = &mut buffer[..];
            while batch.len() < AT_ONCE
                && let Some((at, target)) = parts.next_if(|(_, target)| {
                    is_aligned(target) || target.len().next_multiple_of(ALIGNMENT) <= free.len()
                })
            {
                if is_aligned(target) {
                    batch.push((at, target));
                    continue;
                }
                let taken = target.len().next_multiple_of(ALIGNMENT);
                let (mine, rest) = std::mem::take(&mut free).split_at_mut(taken);
                batch.push((at, &mut mine[..target.len()]));
                targets.push(target);
                free = rest;
            }
            read(&mut batch)?;
            let mut from = 0;
            for target in targets {
                target.copy_from_slice(&buffer[from..from + target.len()]);
                from += target.len().next_multiple_of(ALIGNMENT);
            }
            Ok(())
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The content of the device at byte `at`.
    fn byte(at: u64) -> u8 {
        (at / 512 * 7) as u8
    }

    /// Reads ranges of `lengths` bytes to addresses that are `off` bytes after an aligned one, and compares the
    /// data; returns the number of batches.
    fn batches(request: usize, lengths: &[usize], off: usize) -> usize {
        let buffers = Buffers::new(BATCH_BYTES.max(request));
        let memory = lengths
            .iter()
            .map(|length| vec![0; length + ALIGNMENT + off]);
        let mut memory: Vec<Vec<u8>> = memory.collect();
        let targets = memory.iter_mut().zip(lengths).map(|(bytes, length)| {
            let start = bytes.as_ptr().align_offset(ALIGNMENT) + off;
            &mut bytes[start..start + length]
        });
        let mut targets: Vec<&mut [u8]> = targets.collect();
        let starts = (1 << 30..).step_by(3 << 20);
        let places = starts.clone().zip(targets.iter_mut().map(|t| &mut **t));
        let mut batches = 0;
        let done = super::read(&buffers, request, places, |batch| {
            assert!((1..=AT_ONCE).contains(&batch.len()));
            for (at, part) in batch {
                assert!(is_aligned(part) && part.len() <= request.min(MOST_BYTES));
                (*at..)
                    .zip(part.iter_mut())
                    .for_each(|(at, b)| *b = byte(at));
            }
            batches += 1;
            Ok::<_, ()>(())
        });
        assert_eq!(done, Ok(()));
        for (start, target) in starts.zip(targets) {
            assert!((start..).zip(target).all(|(at, found)| byte(at) == *found));
        }
        batches
    }

    #[test]
    fn parts_are_aligned_and_no_longer_than_a_request_and_as_many_as_fit_are_a_batch() {
        let request = 512 << 10;
        assert_eq!(batches(request, &[], 0), 0);
        for off in [0, 16] {
            assert_eq!(batches(request, &[512], off), 1);
            assert_eq!(batches(request, &[16 << 10; 100], off), 4);
            assert_eq!(batches(4096, &[128 << 10; 3], off), 3);
        }
        // 2 MiB are eight parts; if they are copied, four are in flight at once.
        assert_eq!(batches(request, &[2 << 20, 4096, 512], 0), 1);
        assert_eq!(batches(request, &[2 << 20, 4096, 512], 16), 3);
    }

    #[test]
    fn a_batch_that_fails_is_the_last() {
        let buffers = Buffers::new(BATCH_BYTES);
        let mut bytes = vec![0; 4 << 20];
        let mut asked = 0;
        let done = super::read(&buffers, 4096, [(0, &mut bytes[..])], |_| {
            asked += 1;
            if asked == 2 { Err("no") } else { Ok(()) }
        });
        assert_eq!((done, asked), (Err("no"), 2));
    }
}
