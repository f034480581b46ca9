//! Executes many commands in parallel by io_uring, for every drive that has a file descriptor.
//!
//! If the host does not provide io_uring, or denies it, commands are executed one after the other. A ring is
//! used by one caller at a time. All commands handed to the kernel are waited for before their buffers are
//! returned.

use io_uring::{IoUring, cqueue, opcode, squeue, types};
use runtime::sync::Mutex;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

/// Most commands in flight on one ring.
pub(crate) const AT_ONCE: usize = 32;
/// Fewer commands are not worth a ring.
const MANY: usize = 3;
/// Most idle rings that are kept.
const KEPT: usize = 8;

/// A range of a file or a device: its offset, and the buffer for its bytes.
pub(crate) type Place<'a> = (u64, &'a mut [u8]);

/// Why a range could not be read.
#[derive(Debug)]
pub(crate) struct ReadFailed {
    pub at: u64,
    pub length: u64,
    pub source: io::Error,
}

/// A pool of rings for one kind of entries.
pub(crate) struct Rings<S = squeue::Entry, C = cqueue::Entry>
where
    S: squeue::EntryMarker,
    C: cqueue::EntryMarker,
{
    idle: Mutex<Vec<IoUring<S, C>>>,
    /// Whether rings cannot be used on this host.
    none: AtomicBool,
}

impl<S: squeue::EntryMarker, C: cqueue::EntryMarker> Default for Rings<S, C> {
    fn default() -> Self {
        Self {
            idle: Mutex::default(),
            none: AtomicBool::new(false),
        }
    }
}

impl<S: squeue::EntryMarker, C: cqueue::EntryMarker> std::fmt::Debug for Rings<S, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rings")
            .field("none", &self.none)
            .finish_non_exhaustive()
    }
}

impl<S: squeue::EntryMarker, C: cqueue::EntryMarker> Rings<S, C> {
    /// Hands `entries` to the kernel, at most [`AT_ONCE`] at a time, and waits for all of them; returns their
    /// results in the same order.
    ///
    /// `None` if there are too few entries, or rings cannot be used. Then some entries may have been executed,
    /// and none is in flight.
    ///
    /// # Safety
    /// What the entries refer to is there, and the caller's alone, until this returns.
    pub unsafe fn run(&self, entries: &mut [S]) -> Option<Vec<i32>> {
        if entries.len() < MANY {
            return None;
        }
        let mut ring = self.take()?;
        let mut answers = vec![0; entries.len()];
        let batches = entries.chunks_mut(AT_ONCE).zip(answers.chunks_mut(AT_ONCE));
        for (batch, answers) in batches {
            // SAFETY: as the caller says.
            if let Err(error) = unsafe { run_batch(&mut ring, batch, answers) } {
                self.refused(&error);
                return None;
            }
        }
        let mut idle = self.idle.lock();
        if idle.len() < KEPT {
            idle.push(ring);
        }
        Some(answers)
    }

    /// Disables rings for good.
    pub fn give_up(&self) {
        self.none.store(true, Ordering::Relaxed);
    }

    /// Disables rings if the kernel has none, none of this kind, or denies them. Anything else (want of descriptors or of
    /// memory) may be over soon.
    fn refused(&self, error: &io::Error) {
        if let Some(libc::ENOSYS | libc::EINVAL | libc::EPERM) = error.raw_os_error() {
            self.give_up();
        }
    }

    fn take(&self) -> Option<IoUring<S, C>> {
        if self.none.load(Ordering::Relaxed) {
            return None;
        }
        if let Some(ring) = self.idle.lock().pop() {
            return Some(ring);
        }
        let made = IoUring::builder().build(AT_ONCE as u32);
        made.inspect_err(|error| self.refused(error)).ok()
    }
}

/// Hands a batch to the kernel and waits for all of it; fails if the kernel refused it. In either case none is
/// in flight afterwards.
///
/// # Safety
/// As [`Rings::run`].
unsafe fn run_batch<S: squeue::EntryMarker, C: cqueue::EntryMarker>(
    ring: &mut IoUring<S, C>,
    batch: &mut [S],
    answers: &mut [i32],
) -> io::Result<()> {
    for (index, entry) in batch.iter_mut().enumerate() {
        entry.set_user_data(index as u64);
    }
    // SAFETY: what the entries refer to outlives this call, which returns only when every one that
    // the kernel has taken was answered.
    if unsafe { ring.submission().push_multiple(batch) }.is_err() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut waiting = batch.len();
    while waiting > 0 {
        let asked = ring.submit_and_wait(waiting);
        for answer in ring.completion() {
            waiting -= 1;
            let answer: cqueue::Entry = answer.into();
            if let Some(place) = answers.get_mut(answer.user_data() as usize) {
                *place = answer.result();
            }
        }
        let kept_back = ring.submission().len();
        if let Err(error) = asked
            && error.kind() != io::ErrorKind::Interrupted
            && kept_back > 0
            && kept_back == waiting
        {
            // Entries that the kernel has not taken are dropped with the ring.
            return Err(error);
        }
    }
    Ok(())
}

impl Rings {
    /// Fills all buffers from `file`. The rest of a short or failed read is read by a system call.
    pub fn read(&self, file: &File, reads: &mut [Place<'_>]) -> Result<(), ReadFailed> {
        let entry = |(at, buffer): &mut Place<'_>| {
            let length = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
            let fd = types::Fd(file.as_raw_fd());
            let read = opcode::Read::new(fd, buffer.as_mut_ptr(), length);
            read.offset(*at).build()
        };
        let mut entries: Vec<_> = reads.iter_mut().map(entry).collect();
        // SAFETY: file and buffers are borrowed for as long as this function runs.
        let got = unsafe { self.run(&mut entries) }.unwrap_or_else(|| vec![0; reads.len()]);
        for ((at, buffer), got) in reads.iter_mut().zip(got) {
            let got = usize::try_from(got).unwrap_or(0);
            let rest = buffer.get_mut(got..).filter(|rest| !rest.is_empty());
            if let Some(rest) = rest {
                let at = *at + got as u64;
                file.read_exact_at(rest, at).map_err(|source| ReadFailed {
                    at,
                    length: rest.len() as u64,
                    source,
                })?;
            }
        }
        Ok(())
    }
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
            let failed = rings.read(&file, &mut places).unwrap_err();
            assert!((end - 5..=end).contains(&failed.at));
            assert_eq!(failed.at + failed.length, end + 5);
            assert_eq!(failed.source.kind(), io::ErrorKind::UnexpectedEof);
        }
    }

    #[test]
    fn rings_are_disabled_only_where_there_are_none() {
        for (errno, none) in [
            (libc::EMFILE, false),
            (libc::ENOMEM, false),
            (libc::ENOSYS, true),
            (libc::EINVAL, true),
            (libc::EPERM, true),
        ] {
            let rings = Rings::<squeue::Entry>::default();
            rings.refused(&io::Error::from_raw_os_error(errno));
            assert_eq!(rings.none.load(Ordering::Relaxed), none, "{errno}");
        }
    }

    #[test]
    fn a_ring_is_used_again_and_few_commands_need_none() {
        let rings = Rings::<squeue::Entry>::default();
        let mut entries = vec![opcode::Nop::new().build(); 70];
        // SAFETY: they refer to nothing.
        let (few, all) = unsafe { (rings.run(&mut entries[..2]), rings.run(&mut entries)) };
        assert_eq!(
            (few, rings.idle.lock().len()),
            (None, usize::from(all.is_some()))
        );
        if let Some(answers) = all {
            assert_eq!(answers, [0; 70]);
        }
        rings.give_up();
        // SAFETY: as above.
        assert_eq!(unsafe { rings.run(&mut entries) }, None);
    }
}
