//! Writes to a file through a memory mapping, without a system call for each write.
//!
//! Writing to a mapped page without a disk block allocates one, and if the disk is full the process is killed
//! (`SIGBUS`). So a stretch is mapped only after its blocks were allocated, and only on file systems that write
//! in place: copy-on-write may need a block at any time. The kernel reads a page that it has dropped from the disk
//! again, and kills the process if that fails. So a stretch is locked in memory. All other writes use system calls,
//! which return errors.

use rustix::fs::{FallocateFlags, fallocate, fstatfs};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;

/// Bytes that are allocated and mapped at once.
const STRETCH: usize = 256 << 10;
/// Magic numbers of tmpfs and ext4. ext2 and ext3 have the same one as ext4 but do not support allocation in
/// advance. XFS shares blocks between copies of a file (`cp` makes such ones), so it counts as copy-on-write.
const IN_PLACE: [i64; 2] = [0x0102_1994, 0xef53];

#[derive(Debug)]
pub(super) struct MappedFile {
    file: File,
    is_in_place: bool,
    stretches: Vec<Stretch>,
}

#[derive(Debug)]
enum Stretch {
    Untried,
    Mapped(Mapping),
    /// Written by system calls.
    Refused,
}

impl MappedFile {
    pub fn new(file: File) -> Self {
        let is_in_place = fstatfs(&file).is_ok_and(|found| IN_PLACE.contains(&found.f_type));
        Self {
            file,
            is_in_place,
            stretches: Vec::new(),
        }
    }

    /// The file, to be written by system calls.
    pub const fn plain(&self) -> &File {
        &self.file
    }

    /// As [`FileExt::write_all_at`] does.
    pub fn write_all_at(&mut self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            let within = (offset % STRETCH as u64) as usize;
            let (part, rest) = bytes.split_at(bytes.len().min(STRETCH - within));
            match self.stretch(offset / STRETCH as u64) {
                Some(mapping) => mapping.write(within, part),
                None => self.file.write_all_at(part, offset)?,
            }
            (bytes, offset) = (rest, offset + part.len() as u64);
        }
        Ok(())
    }

    fn stretch(&mut self, index: u64) -> Option<&mut Mapping> {
        if !self.is_in_place {
            return None;
        }
        let at = index as usize;
        if self.stretches.len() <= at {
            self.stretches.resize_with(at + 1, || Stretch::Untried);
        }
        let stretch = &mut self.stretches[at];
        if matches!(stretch, Stretch::Untried) {
            let mapping = Mapping::new(&self.file, index * STRETCH as u64);
            *stretch = mapping.map_or(Stretch::Refused, Stretch::Mapped);
        }
        match stretch {
            Stretch::Mapped(mapping) => Some(mapping),
            _ => None,
        }
    }
}

/// A mapped stretch of a file. It is never read, so it does not matter if other processes write to it.
#[derive(Debug)]
struct Mapping(NonNull<u8>);

// SAFETY: the memory is this value's own, and is written to by whoever has it exclusively.
unsafe impl Send for Mapping {}

impl Mapping {
    /// `None` if the host has no room for the stretch, or does not lock it: locked memory of a process is limited
    /// (`RLIMIT_MEMLOCK`).
    fn new(file: &File, offset: u64) -> Option<Self> {
        fallocate(file, FallocateFlags::empty(), offset, STRETCH as u64).ok()?;
        let offset = libc::off_t::try_from(offset).ok()?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses the address, so nothing that is in use is mapped over.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                STRETCH,
                access,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                offset,
            )
        };
        if at == libc::MAP_FAILED {
            return None;
        }
        let mapping = NonNull::new(at.cast()).map(Self)?;
        // SAFETY: what was mapped above, all of it.
        let locked = unsafe { libc::mlock(at, STRETCH) };
        (locked == 0).then_some(mapping)
    }

    fn write(&mut self, within: usize, bytes: &[u8]) {
        let room = STRETCH.checked_sub(within);
        assert!(
            room.is_some_and(|room| bytes.len() <= room),
            "a stretch's end"
        );
        // SAFETY: it ends in the mapping, which is ours alone in this process; `bytes` is not of it.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0.add(within).as_ptr(), bytes.len());
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length, and nobody has the address any more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), STRETCH) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mapped_stays_in_memory() {
        let file = tempfile::tempfile().unwrap();
        // A host may have no room, limit what is locked, or not list it.
        if let Some(mapping) = Mapping::new(&file, 0)
            && let Ok(listed) = std::fs::read_to_string("/proc/self/smaps")
        {
            let start = format!("{:x}-", mapping.0.as_ptr().addr());
            let mut lines = listed.lines().skip_while(|line| !line.starts_with(&start));
            let flags = lines.find(|line| line.starts_with("VmFlags:")).unwrap();
            assert!(flags.split_whitespace().any(|flag| flag == "lo"), "{flags}");
        }
    }
}
