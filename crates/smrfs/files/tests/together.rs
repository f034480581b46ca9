//! Small files that are synced together go to the drive together: one command takes as long for all of them as for one.

use crate::common::{Kind, assert_clean};
use device::MemoryDrive;
use device::trace::{Event, Trace};
use runtime::Runtime;
use smrfs::{FileSystem, Fit, MkfsOptions, MountOptions, NewInode, ROOT};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use zone::ZoneCommand;

#[test]
fn small_files_are_written_by_few_commands() {
    let caveat = Kind::Caveat {
        distance: 3,
        range: 1,
        cleaned: false,
    };
    let fits = [
        Fit::Best,
        Fit::First,
        Fit::Next,
        Fit::LastAccessed,
        Fit::Worst,
    ];
    let cases = fits.map(|fit| (caveat, fit)).into_iter();
    for (kind, fit) in cases.chain([(Kind::Bands(4), Fit::First)]) {
        let writes = Arc::new(AtomicU64::new(0));
        let counter = writes.clone();
        let count = move |event: &Event| {
            let is_write = event.command == ZoneCommand::Write;
            counter.fetch_add(is_write.into(), Ordering::Relaxed);
        };
        let memory = MemoryDrive::new(kind.geometry(40)).unwrap();
        let medium = kind.medium(Arc::new(Trace::new(memory, Arc::new(count))), None);
        let runtime = Runtime::seeded(1);
        FileSystem::mkfs_on(&medium, &runtime, &MkfsOptions::default()).unwrap();
        let options = MountOptions {
            fit,
            ..MountOptions::default()
        };
        let fs = FileSystem::mount_on(&medium, runtime.clone(), options).unwrap();
        let new = NewInode {
            mode: libc::S_IFREG | 0o644,
            uid: 0,
            gid: 0,
            rdev: 0,
        };
        let name = |n: usize| n.to_string().into_bytes();
        let bytes = |n: usize| vec![n as u8; 1 + n * 300 % 20_000];
        for n in 0..100 {
            let ino = fs.create(ROOT, &name(n), new).unwrap().ino;
            fs.write(ino, 0, &bytes(n)).unwrap();
            // A hole is no reason for another command.
            fs.write(ino, 100_000, &[1]).unwrap();
        }
        let before = writes.load(Ordering::Relaxed);
        fs.sync().unwrap();
        // About 1.2 MiB, in zones of 256 KiB, and the journal.
        let few = writes.load(Ordering::Relaxed) - before;
        assert!(few <= 10, "{kind:?}, {fit:?}: {few} writes");
        drop(fs);
        let fs = FileSystem::mount_on(&medium, runtime, options).unwrap();
        for n in 0..100 {
            let ino = fs.lookup(ROOT, &name(n)).unwrap().ino;
            let mut found = vec![0; 20_000];
            fs.read(ino, 0, &mut found).unwrap();
            assert!(found.starts_with(&bytes(n)), "{kind:?}, {fit:?}: {n}");
        }
        assert_clean(&fs);
    }
}
