//! Commands that fail, zones that break, bytes that change, and a drive that is full.

mod broken_zones;
mod changed_bytes;
mod commands;
mod full;
mod unreadable;

use crate::common::{Seen, seen};
use device::changed::Change;
use device::{MemoryDrive, ZonedDevice};
use runtime::Runtime;
use smrfs::{Error, FileSystem, MkfsOptions, MountOptions, NewInode, ROOT};
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use zone::{ByteOffset, ZoneCommand, ZoneError, ZoneResult};

fn new_file() -> NewInode {
    NewInode {
        mode: libc::S_IFREG | 0o644,
        uid: 0,
        gid: 0,
        rdev: 0,
    }
}

fn mkfs(device: &Arc<MemoryDrive>, options: &MkfsOptions) -> Runtime {
    let runtime = Runtime::seeded(1);
    FileSystem::mkfs(device.clone(), &runtime, options).unwrap();
    runtime
}

fn mount_to(
    device: Arc<dyn ZonedDevice>,
    runtime: &Runtime,
    read_only: bool,
) -> Result<FileSystem, Error> {
    let options = MountOptions {
        read_only,
        ..MountOptions::default()
    };
    FileSystem::mount(device, runtime.clone(), options)
}

/// A file system with files of which everything is known, synced.
fn filled(device: &Arc<MemoryDrive>) -> (Runtime, Vec<(u64, Vec<u8>)>, Seen) {
    let runtime = mkfs(device, &MkfsOptions::default());
    let fs = FileSystem::mount(device.clone(), runtime.clone(), MountOptions::default()).unwrap();
    let mut files = Vec::new();
    for n in 0..12_u8 {
        let ino = fs.create(ROOT, &[b'a' + n], new_file()).unwrap().ino;
        let bytes = vec![n + 1; 10_000 + usize::from(n) * 777];
        fs.write(ino, 0, &bytes).unwrap();
        files.push((ino, bytes));
        fs.sync().unwrap();
    }
    let all = seen(&fs, []).unwrap();
    (runtime, files, all)
}

/// Reads of these blocks fail, writes succeed.
struct Unreadable([u64; 2]);

impl Change<Arc<MemoryDrive>> for Unreadable {
    fn read(&self, drive: &Arc<MemoryDrive>, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        let touched = at.0..at.0 + buffer.len() as u64;
        if self.0.iter().any(|block| touched.contains(block)) {
            return Err(ZoneError::Io {
                command: ZoneCommand::Read,
                at,
                source: Arc::new(ErrorKind::Other.into()),
            });
        }
        drive.read(at, buffer)
    }
}

/// A disk of the host that has so many bytes for what is written from now on.
struct Disk(AtomicU64);

impl Change<Arc<MemoryDrive>> for Disk {
    fn write(&self, drive: &Arc<MemoryDrive>, at: ByteOffset, data: &[u8]) -> ZoneResult<()> {
        let left = self
            .0
            .load(Ordering::Relaxed)
            .checked_sub(data.len() as u64);
        let source = || Arc::new(ErrorKind::StorageFull.into());
        let left = left.ok_or_else(|| ZoneError::Io {
            command: ZoneCommand::Write,
            at,
            source: source(),
        })?;
        self.0.store(left, Ordering::Relaxed);
        drive.write(at, data)
    }

    fn host_free_bytes(&self, _: &Arc<MemoryDrive>) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed))
    }
}
