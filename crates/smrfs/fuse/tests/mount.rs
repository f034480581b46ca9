//! Mounted file systems, used through the kernel. Skipped where there is no /dev/fuse that can be opened.
#![allow(clippy::unwrap_used)]

use caveat::{CaveatDevice, CaveatShape};
use device::MemoryDrive;
use runtime::Runtime;
use smrfs::{FileSystem, Medium, MkfsOptions, MountOptions};
use smrfs_fuse::{Mounted, Options};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use zone::{Geometry, ZoneKind};

fn can_mount() -> bool {
    let device = OpenOptions::new().read(true).write(true).open("/dev/fuse");
    let is_root = rustix::process::geteuid().is_root();
    if device.is_err() || !is_root {
        eprintln!("skipped: mounting needs root and /dev/fuse");
    }
    device.is_ok() && is_root
}

/// A process that is about to begin has the files that are open here, and would keep a mount busy.
static FORKING: Mutex<()> = Mutex::new(());

fn run(command: &mut Command) -> bool {
    let forking = FORKING.lock().unwrap();
    let mut child = command.spawn().unwrap();
    drop(forking);
    child.wait().unwrap().success()
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Bands,
    Caveat,
    /// The same, cleaned when it is full.
    Cleaned,
}

struct Place {
    directory: TempDir,
    medium: Medium,
    mounted: Option<Mounted>,
}

impl Place {
    fn new(zones: u32) -> Self {
        Self::of_kind(zones, Kind::Bands)
    }

    /// On bands, and on a drive that takes writes anywhere.
    fn both(zones: u32) -> [Self; 2] {
        [Self::new(zones), Self::of_kind(zones, Kind::Caveat)]
    }

    /// And on one that is cleaned.
    fn all(zones: u32) -> [Self; 3] {
        [Kind::Bands, Kind::Caveat, Kind::Cleaned].map(|kind| Self::of_kind(zones, kind))
    }

    fn of_kind(zones: u32, kind: Kind) -> Self {
        let caveat = kind != Kind::Bands;
        let geometry = Geometry {
            block_size: 4096,
            zone_size: 4 << 20,
            zone_capacity: 4 << 20,
            zone_count: zones,
            conventional_zones: if caveat { zones } else { 2 },
            conventional_parts: 1,
            sequential_kind: ZoneKind::SequentialWriteRequired,
            max_open_zones: 16,
            max_active_zones: 16,
            max_append_bytes: 0,
        };
        let drive = Arc::new(MemoryDrive::new(geometry).unwrap());
        let shape = CaveatShape {
            block_size: 4096,
            isolation_distance: 16,
            no_overlap_range: 6,
            unshingled_bytes: 8 << 20,
        };
        let medium = match caveat {
            true => Medium::Caveat(Arc::new(CaveatDevice::create(drive, &shape).unwrap())),
            false => Medium::Bands(drive),
        };
        let options = MkfsOptions {
            clean_when_full: kind == Kind::Cleaned,
            ..MkfsOptions::default()
        };
        FileSystem::mkfs_on(&medium, &Runtime::system(), &options).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let mut place = Self {
            directory,
            medium,
            mounted: None,
        };
        place.mount();
        place
    }

    fn mount(&mut self) {
        let options = MountOptions {
            buffer_bytes: 2 << 20,
            ..MountOptions::default()
        };
        let runtime = Runtime::system();
        let fs = FileSystem::mount_on(&self.medium, runtime.clone(), options).unwrap();
        let options = Options::default();
        let mounted = smrfs_fuse::mount(Arc::new(fs), &runtime, self.path(), &options).unwrap();
        self.mounted = Some(mounted);
    }

    fn remount(&mut self) {
        let _nobody_forks = FORKING.lock().unwrap();
        self.mounted.take().unwrap().unmount().unwrap();
        self.mount();
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn at(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    fn assert_clean(&self) {
        let fs = self.mounted.as_ref().unwrap().fs();
        fs.sync().unwrap();
        let findings = fs.check(true);
        assert!(findings.errors.is_empty(), "{:?}", findings.details);
    }
}

#[test]
fn a_tree_is_copied_and_is_the_same_behind_a_remount() {
    if !can_mount() {
        return;
    }
    for mut place in Place::both(32) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut copy = Command::new("cp");
        assert!(run(copy.arg("-a").arg(source).arg(place.at("tree"))));
        for _ in 0..2 {
            let mut compare = Command::new("diff");
            assert!(run(compare.arg("-r").arg(source).arg(place.at("tree"))));
            place.remount();
        }
        fs::remove_dir_all(place.at("tree")).unwrap();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
        place.assert_clean();
    }
}

#[test]
fn names_and_links_are_those_of_posix() {
    if !can_mount() {
        return;
    }
    for mut place in Place::all(16) {
        let (a, b, d) = (place.at("a"), place.at("b"), place.at("d"));
        fs::write(&a, "one").unwrap();
        fs::hard_link(&a, &b).unwrap();
        assert_eq!(fs::metadata(&b).unwrap().nlink(), 2);
        fs::write(&b, "two").unwrap();
        assert_eq!(fs::read(&a).unwrap(), b"two");
        fs::create_dir(&d).unwrap();
        fs::rename(&a, d.join("a")).unwrap();
        assert_eq!(fs::metadata(&a).unwrap_err().kind(), ErrorKind::NotFound);
        // Onto a directory that is not empty.
        let e = place.at("e");
        fs::create_dir(&e).unwrap();
        assert_eq!(
            fs::rename(&e, &d).unwrap_err().kind(),
            ErrorKind::DirectoryNotEmpty
        );
        fs::rename(&d, &e).unwrap();
        assert_eq!(fs::read(e.join("a")).unwrap(), b"two");
        symlink("e/a", place.at("link")).unwrap();
        assert_eq!(fs::read(place.at("link")).unwrap(), b"two");
        fs::set_permissions(&b, fs::Permissions::from_mode(0o640)).unwrap();
        place.remount();
        let seen = fs::metadata(e.join("a")).unwrap();
        assert_eq!((seen.nlink(), seen.mode() & 0o7777), (2, 0o640));
        assert_eq!(fs::read_link(place.at("link")).unwrap(), Path::new("e/a"));
        assert_eq!(fs::metadata(place.path()).unwrap().nlink(), 3);
        place.assert_clean();
    }
}

#[test]
fn a_file_without_a_name_lives_until_it_is_closed() {
    if !can_mount() {
        return;
    }
    let place = Place::new(16);
    let path = place.at("file");
    let mut file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)
        .unwrap();
    file.write_all(&vec![7; 3 << 20]).unwrap();
    fs::remove_file(&path).unwrap();
    file.sync_all().unwrap();
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, vec![7; 3 << 20]);
    let fs = Arc::clone(place.mounted.as_ref().unwrap().fs());
    assert_eq!(fs.space().inodes, 2);
    drop(file);
    // The kernel says so when it likes.
    while fs.space().inodes > 1 {
        runtime::thread::yield_now();
    }
    assert_eq!(fs.space().used_bytes, 0);
}

#[test]
fn large_directories_are_listed_while_they_change() {
    if !can_mount() {
        return;
    }
    let place = Place::new(16);
    for n in 0..3_000 {
        File::create(place.at(&format!("{n}"))).unwrap();
    }
    let mut count = 0;
    for entry in fs::read_dir(place.path()).unwrap() {
        // Removing what was listed takes nothing else away.
        fs::remove_file(entry.unwrap().path()).unwrap();
        count += 1;
    }
    assert_eq!(count, 3_000);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn space_is_counted_and_a_full_mount_can_be_emptied() {
    if !can_mount() {
        return;
    }
    for place in Place::both(16) {
        let free = || rustix::fs::statvfs(place.path()).unwrap();
        let before = free();
        let block = vec![3; 1 << 20];
        let mut count = 0;
        loop {
            match fs::write(place.at(&format!("{count}")), &block) {
                Ok(()) => count += 1,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::StorageFull);
                    break;
                }
            }
        }
        assert!(count >= 30, "{count}");
        assert!(free().f_bfree * 4096 < 1 << 20);
        for n in 0..=count {
            let _ = fs::remove_file(place.at(&format!("{n}")));
        }
        // The kernel says when it likes that a file was closed, and a removed one has its space until then.
        while free().f_bfree != before.f_bfree {
            runtime::thread::yield_now();
        }
        fs::write(place.at("again"), &block).unwrap();
        place.assert_clean();
    }
}

#[test]
fn preallocated_space_is_there_on_a_full_mount() {
    if !can_mount() {
        return;
    }
    for mut place in Place::both(16) {
        let path = place.at("wanted");
        let size = 4 << 20;
        let file = File::create(&path).unwrap();
        // As posix_fallocate does; the C library writes nothing then.
        let none = rustix::fs::FallocateFlags::empty();
        let before = rustix::fs::statvfs(place.path()).unwrap();
        rustix::fs::fallocate(&file, none, 0, size).unwrap();
        let after = rustix::fs::statvfs(place.path()).unwrap();
        assert_eq!(before.f_bfree - after.f_bfree, size / 4096);
        let seen = file.metadata().unwrap();
        assert_eq!((seen.len(), seen.blocks()), (size, size / 512));
        let device = place.mounted.as_ref().unwrap().fs().space();
        assert_eq!((device.preallocated_bytes, device.device_bytes), (size, 0));
        let block = vec![3; 1 << 20];
        let mut count = 0;
        while fs::write(place.at(&format!("{count}")), &block).is_ok() {
            count += 1;
        }
        drop(file);
        place.remount();
        let file = File::options().write(true).open(&path).unwrap();
        for n in (0..size / 65_536).rev() {
            file.write_all_at(&block[..65_536], n * 65_536).unwrap();
        }
        file.sync_all().unwrap();
        assert!(fs::read(&path).unwrap().iter().all(|byte| *byte == 3));
        // Zeros that have space, and what is not for such a file system.
        let zero = rustix::fs::FallocateFlags::ZERO_RANGE;
        rustix::fs::fallocate(&file, zero, 0, size / 2).unwrap();
        assert_eq!(fs::read(&path).unwrap()[..2 << 20], vec![0; 2 << 20]);
        assert_eq!(file.metadata().unwrap().blocks(), size / 512);
        let collapse = rustix::fs::FallocateFlags::COLLAPSE_RANGE;
        let refused = rustix::fs::fallocate(&file, collapse, 0, 4096);
        assert_eq!(refused, Err(rustix::io::Errno::OPNOTSUPP));
        place.assert_clean();
    }
}

#[test]
fn two_are_mounted_at_once() {
    if !can_mount() {
        return;
    }
    let [one, other] = Place::both(16);
    fs::write(one.at("file"), "one").unwrap();
    fs::write(other.at("file"), "other").unwrap();
    assert_eq!(fs::read(one.at("file")).unwrap(), b"one");
    assert_eq!(fs::read(other.at("file")).unwrap(), b"other");
    let moved = fs::rename(one.at("file"), other.at("moved"));
    assert_eq!(moved.unwrap_err().kind(), ErrorKind::CrossesDevices);
}

/// What a mount that has ended finds at its directory is somebody else's.
#[test]
fn a_mount_that_is_gone_unmounts_no_other() {
    if !can_mount() {
        return;
    }
    // Unmounting waits for a file that a process to be has open for a short time only.
    let _nobody_forks = FORKING.lock().unwrap();
    let (mut first, second) = (Place::new(16), Place::new(16));
    let at = first.directory.path().to_owned();
    smrfs_fuse::unmount(&at).unwrap();
    let options = Options {
        source: "other".to_owned(),
        ..Options::default()
    };
    let fs = second.mounted.as_ref().unwrap().fs().clone();
    let other = smrfs_fuse::mount(fs, &Runtime::system(), &at, &options).unwrap();
    let gone = first.mounted.take().unwrap();
    gone.place().unmount().unwrap_err();
    gone.wait().unwrap();
    fs::write(at.join("here"), b"").unwrap();
    assert!(second.directory.path().join("here").exists());
    other.unmount().unwrap();
    assert!(!at.join("here").exists());
}

/// Fills a drive and removes every other file, so that no free extent has room for more than its footer.
fn leave_holes(place: &Place) {
    let name = |n: usize| place.at(&format!("fill{n}"));
    let mut count = 0;
    while fs::write(name(count), vec![9; 32 << 10]).is_ok() {
        count += 1;
        if count % 64 == 0 {
            File::open(place.path()).unwrap().sync_all().unwrap();
        }
    }
    for n in (0..=count).step_by(2) {
        fs::remove_file(name(n)).unwrap();
    }
    File::open(place.path()).unwrap().sync_all().unwrap();
}

/// Turns of a random history: some, or as many as `SMRFS_TURNS` says.
fn turns() -> usize {
    let asked = std::env::var("SMRFS_TURNS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(1_500)
}

/// As fsx does: random reads, writes, truncates, holes and mapped accesses of one file, beside a copy in memory.
#[test]
fn a_file_is_what_was_written_however_it_is_accessed() {
    if !can_mount() {
        return;
    }
    for mut place in Place::all(24) {
        let is_cleaned = place.mounted.as_ref().unwrap().fs().shape().is_cleaned;
        if is_cleaned {
            leave_holes(&place);
            // What the holes have no room for.
            fs::write(place.at("large"), vec![8; 16 << 20]).unwrap();
        }
        let mut cleaned = 0;
        let mut random = fastrand::Rng::with_seed(11);
        let path = place.at("file");
        let mut model: Vec<u8> = Vec::new();
        File::create(&path).unwrap();
        for turn in 0..turns() {
            if turn % 300 == 299 {
                cleaned += place.mounted.as_ref().unwrap().fs().counts().cleaned_zones;
                place.remount();
            }
            let file = File::options().read(true).write(true).open(&path).unwrap();
            let offset = random.usize(0..300_000);
            let length = random.usize(1..60_000);
            match random.u8(0..10) {
                0..3 => {
                    let mut data = vec![0; length];
                    random.fill(&mut data);
                    file.write_all_at(&data, offset as u64).unwrap();
                    model.resize(model.len().max(offset + length), 0);
                    model[offset..offset + length].copy_from_slice(&data);
                }
                3 => {
                    file.set_len(offset as u64).unwrap();
                    model.resize(offset, 0);
                }
                4 => {
                    let flags = rustix::fs::FallocateFlags::PUNCH_HOLE
                        | rustix::fs::FallocateFlags::KEEP_SIZE;
                    rustix::fs::fallocate(&file, flags, offset as u64, length as u64).unwrap();
                    let end = (offset + length).min(model.len());
                    if let Some(part) = model.get_mut(offset..end) {
                        part.fill(0);
                    }
                }
                5 if !model.is_empty() => {
                    // Through a shared mapping.
                    let size = model.len();
                    let protection = rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE;
                    let (shared, at) = (rustix::mm::MapFlags::SHARED, std::ptr::null_mut());
                    // SAFETY: a new mapping of a file that keeps its size while it is there.
                    let bytes = unsafe {
                        let start =
                            rustix::mm::mmap(at, size, protection, shared, &file, 0).unwrap();
                        std::slice::from_raw_parts_mut(start.cast::<u8>(), size)
                    };
                    assert!(*bytes == *model, "turn {turn}");
                    let from = random.usize(0..size);
                    let to = size.min(from + length);
                    random.fill(&mut bytes[from..to]);
                    model[from..to].copy_from_slice(&bytes[from..to]);
                    // SAFETY: nobody uses the mapping any more.
                    unsafe {
                        let start = bytes.as_mut_ptr().cast();
                        rustix::mm::msync(start, size, rustix::mm::MsyncFlags::SYNC).unwrap();
                        rustix::mm::munmap(start, size).unwrap();
                    }
                }
                6 => file.sync_all().unwrap(),
                _ => {
                    let mut data = vec![0; length];
                    let count = file.read_at(&mut data, offset as u64).unwrap();
                    let end = (offset + length).min(model.len());
                    let expected = model.get(offset..end).unwrap_or_default();
                    // A read gives what is there at once.
                    assert!(data[..count] == *expected, "turn {turn}");
                }
            }
            assert_eq!(file.metadata().unwrap().len(), model.len() as u64);
        }
        assert!(fs::read(&path).unwrap() == model);
        assert!(!is_cleaned || cleaned > 0, "nothing was cleaned");
        place.assert_clean();
    }
}

#[test]
fn a_mount_tells_of_itself() {
    if !can_mount() {
        return;
    }
    for place in Place::both(16) {
        fs::write(place.at("file"), "one").unwrap();
        let mut bytes = vec![0; 1 << 16];
        let length =
            rustix::fs::getxattr(place.at("file"), smrfs_fuse::STATUS, &mut bytes).unwrap();
        let status: smrfs::Status = serde_json::from_slice(&bytes[..length]).unwrap();
        assert_eq!(status.is_caveat, place.medium.is_caveat());
        assert_eq!((status.space.inodes, status.space.written_bytes), (2, 3));
        // It is nobody's to set, and no program copies it.
        let set = rustix::fs::setxattr(
            place.at("file"),
            smrfs_fuse::STATUS,
            b"1",
            rustix::fs::XattrFlags::empty(),
        );
        assert_eq!(set, Err(rustix::io::Errno::OPNOTSUPP));
        assert_eq!(
            rustix::fs::listxattr(place.at("file"), &mut bytes[..]),
            Ok(0)
        );
    }
}

/// Detached, a mount is nowhere to be seen, and is there for whoever has a file in it open. It ends with the last of them.
#[test]
fn open_files_outlive_a_mount_that_is_detached() {
    if !can_mount() {
        return;
    }
    for mut place in Place::all(24) {
        let options = || {
            OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .clone()
        };
        let path = place.at("file");
        let file = options().open(&path).unwrap();
        let removed = options().open(place.at("removed")).unwrap();
        fs::remove_file(place.at("removed")).unwrap();
        file.write_all_at(&[1; 300_000], 0).unwrap();
        smrfs_fuse::unmount(place.path()).unwrap();
        assert!(!path.exists());
        for (n, file) in [&file, &removed].into_iter().enumerate() {
            file.write_all_at(&[2; 5000], 299_000).unwrap();
            file.sync_all().unwrap();
            let mut end = vec![0; 5000];
            file.read_exact_at(&mut end, 299_000).unwrap();
            assert_eq!(end, [2; 5000], "{n}");
        }
        file.write_all_at(&[3; 7], 10).unwrap();
        let mounted = place.mounted.take().unwrap();
        drop((file, removed));
        mounted.wait().unwrap();
        place.mount();
        let mut expected = [vec![1; 299_000], vec![2; 5000]].concat();
        expected[10..17].fill(3);
        assert!(fs::read(&path).unwrap() == expected);
        let names = fs::read_dir(place.path()).unwrap();
        assert_eq!(names.count(), 1);
    }
}
