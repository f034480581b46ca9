//! Many reads of a file at once, by io_uring.
//!
//! Where the host has none, or not for us, they are done one after the other. A ring is used by one
//! caller at a time; what has been handed to the kernel is waited for before a buffer is given
//! back.

use super::host;
use io_uring::{IoUring, opcode, types};
use parking_lot::Mutex;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

/// Reads that one ring has on their way at once.
const ENTRIES: u32 = 32;
/// Fewer reads are not worth it.
const MANY: usize = 3;
/// Rings that are kept for the next caller.
const KEPT: usize = 8;

/// A range of the file and where its bytes go.
type Place<'a> = (u64, &'a mut [u8]);

#[derive(Default)]
pub(super) struct Rings {
    idle: Mutex<Vec<IoUring>>,
    /// The host would make none.
    none: AtomicBool,
}

impl std::fmt::Debug for Rings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rings").finish_non_exhaustive()
    }
}

impl Rings {
    /// Fills all buffers; an error comes with the place that it belongs to.
    pub fn read(&self, file: &File, reads: &mut [Place<'_>]) -> Result<(), (u64, io::Error)> {
        if reads.len() >= MANY
            && let Some(mut ring) = self.take()
        {
            for batch in reads.chunks_mut(ENTRIES as usize) {
                if !read_batch(&mut ring, file, batch)? {
                    self.none.store(true, Ordering::Relaxed);
                    return one_by_one(file, reads);
                }
            }
            let mut idle = self.idle.lock();
            if idle.len() < KEPT {
                idle.push(ring);
            }
            return Ok(());
        }
        one_by_one(file, reads)
    }

    fn take(&self) -> Option<IoUring> {
        if self.none.load(Ordering::Relaxed) {
            return None;
        }
        if let Some(ring) = self.idle.lock().pop() {
            return Some(ring);
        }
        let made = IoUring::new(ENTRIES);
        self.none.fetch_or(made.is_err(), Ordering::Relaxed);
        made.ok()
    }
}

/// Hands a batch over and waits for all of it; false if the kernel would not have it, with nothing
/// on its way any more. What came back short or failed is read again, the plain way.
fn read_batch(
    ring: &mut IoUring,
    file: &File,
    batch: &mut [Place<'_>],
) -> Result<bool, (u64, io::Error)> {
    let mut waiting = 0;
    let mut got = vec![0; batch.len()];
    let mut refused = false;
    for (index, (at, buffer)) in batch.iter_mut().enumerate() {
        // What the host has in memory costs less without a ring.
        got[index] = host::read_at_hand(file, *at, buffer);
        if got[index] == buffer.len() {
            continue;
        }
        let (at, buffer) = (*at + got[index] as u64, &mut buffer[got[index]..]);
        let length = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
        let read = opcode::Read::new(types::Fd(file.as_raw_fd()), buffer.as_mut_ptr(), length);
        let entry = read.offset(at).build().user_data(index as u64);
        // SAFETY: file and buffer are borrowed until this function returns, which it does only
        // when every entry that the kernel has taken was answered.
        match unsafe { ring.submission().push(&entry) } {
            Ok(()) => waiting += 1,
            Err(_) => refused = true,
        }
    }
    while waiting > 0 {
        let asked = ring.submit_and_wait(waiting);
        for answer in ring.completion() {
            waiting -= 1;
            if let Some(got) = got.get_mut(answer.user_data() as usize) {
                *got += usize::try_from(answer.result()).unwrap_or(0);
            }
        }
        let kept_back = ring.submission().len();
        if asked.is_err_and(|error| error.kind() != io::ErrorKind::Interrupted)
            && kept_back > 0
            && kept_back == waiting
        {
            // The entries that it has not taken go with the ring.
            return Ok(false);
        }
    }
    if refused {
        return Ok(false);
    }
    for ((at, buffer), got) in batch.iter_mut().zip(got) {
        if let Some(rest) = buffer.get_mut(got..).filter(|rest| !rest.is_empty()) {
            read_one(file, *at + got as u64, rest)?;
        }
    }
    Ok(true)
}

fn one_by_one(file: &File, reads: &mut [Place<'_>]) -> Result<(), (u64, io::Error)> {
    reads
        .iter_mut()
        .try_for_each(|(at, buffer)| read_one(file, *at, buffer))
}

fn read_one(file: &File, at: u64, buffer: &mut [u8]) -> Result<(), (u64, io::Error)> {
    file.read_exact_at(buffer, at).map_err(|error| (at, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_all_buffers_with_and_without_rings_and_names_the_place_that_failed() {
        let file = tempfile::tempfile().unwrap();
        let content: Vec<u8> = (0..1 << 20).map(|i: u32| (i / 7) as u8).collect();
        file.write_all_at(&content, 0).unwrap();
        for none in [false, true] {
            let rings = Rings::default();
            rings.none.store(none, Ordering::Relaxed);
            for count in [0, 1, 2, 3, 31, 32, 33, 100] {
                let mut buffers: Vec<Vec<u8>> = (0..count).map(|i| vec![0; i * 97]).collect();
                let places = buffers.iter_mut().enumerate();
                let mut places: Vec<Place<'_>> = places
                    .map(|(i, b)| ((i * 7919) as u64, &mut b[..]))
                    .collect();
                rings.read(&file, &mut places).unwrap();
                for (i, buffer) in buffers.iter().enumerate() {
                    assert_eq!(buffer[..], content[i * 7919..][..i * 97], "{i} of {count}");
                }
            }
            let end = content.len() as u64;
            let mut buffers = [[0; 10]; 4];
            let places = [0, 5, end - 5, 20];
            let mut places: Vec<Place<'_>> = places
                .into_iter()
                .zip(&mut buffers)
                .map(|(at, b)| (at, &mut b[..]))
                .collect();
            let (at, error) = rings.read(&file, &mut places).unwrap_err();
            assert!((end - 5..=end).contains(&at));
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        }
    }
}
