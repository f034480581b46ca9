//! Reads cut into parts that direct I/O takes: none longer than a request, each at an aligned
//! address. So a long read is several requests under way at once, and many short ones are one
//! batch.

use super::aligned::{ALIGNMENT, Buffers, is_aligned};
use crate::rings::{AT_ONCE, Place};

/// No part is longer, however much the device would take: a read of 2 MiB is to be eight.
const MOST_BYTES: usize = 256 << 10;
/// What `buffers` has to hold for several parts to be under way at once.
pub(crate) const BATCH_BYTES: usize = 1 << 20;

/// Reads all of `places` by `read`, which is handed the parts in batches. Parts of buffers that
/// are not aligned go by way of one from `buffers`, which holds at least one request.
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
    while parts.peek().is_some() {
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

    /// The byte at a place of the device.
    fn byte(at: u64) -> u8 {
        (at / 512 * 7) as u8
    }

    #[test]
    fn every_part_is_aligned_and_no_longer_than_a_request_and_every_byte_arrives() {
        for request in [4096, 128 << 10, 512 << 10] {
            let buffers = Buffers::new(BATCH_BYTES.max(request));
            for lengths in [&[512][..], &[2 << 20, 4096, 512], &[16 << 10; 100], &[]] {
                for shift in [0, 16] {
                    let mut memory: Vec<Vec<u8>> = lengths
                        .iter()
                        .map(|length| vec![0; length + 4096 + shift])
                        .collect();
                    let mut places = Vec::new();
                    let mut at = 1 << 30;
                    for (bytes, length) in memory.iter_mut().zip(lengths) {
                        let start = bytes.as_ptr().align_offset(ALIGNMENT) % 4096 + shift;
                        places.push((at, &mut bytes[start..start + length]));
                        at += 3 << 20;
                    }
                    let mut batches = 0;
                    let done = super::read(&buffers, request, places, |batch| {
                        assert!((1..=AT_ONCE).contains(&batch.len()));
                        for (at, part) in batch {
                            assert!(is_aligned(part) && part.len() <= request.min(MOST_BYTES));
                            part.fill_with({
                                let mut at = *at;
                                move || {
                                    at += 1;
                                    byte(at - 1)
                                }
                            });
                        }
                        batches += 1;
                        Ok::<_, ()>(())
                    });
                    assert_eq!(done, Ok(()));
                    // Not one after the other.
                    assert!(
                        batches
                            <= 2 * lengths
                                .iter()
                                .sum::<usize>()
                                .div_ceil(request.min(32 << 10))
                                .div_ceil(4)
                    );
                    let mut at: u64 = 1 << 30;
                    for (bytes, length) in memory.iter().zip(lengths) {
                        let start = bytes.as_ptr().align_offset(ALIGNMENT) % 4096 + shift;
                        let found = &bytes[start..start + length];
                        assert!((at..).zip(found).all(|(at, found)| byte(at) == *found));
                        at += 3 << 20;
                    }
                }
            }
        }
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
