//! Overlapping syncs: which of them wait for another, which a power cut may take back, and that a clean unmount leaves
//! nothing that could be taken for an older state.

use crate::support::{bytes, format, geometry, mount, read, write};
use device::changed::{Change, Changed};
use device::power_cut::CrashLimits;
use device::{FileDrive, MemoryDrive, PowerCut, ZonedDevice};
use runtime::sync::Mutex;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{JoinHandle, spawn};
use zeafs::{Error, Lifetime, ZeaFs};
use zone::{ByteOffset, ZoneAddress, ZoneId, ZoneResult};

/// Holds flushes of the drive as queued in `next`, and counts flushes and writes of frames.
#[derive(Default)]
struct Held {
    next: Mutex<VecDeque<Hold>>,
    flushes: AtomicU64,
    /// Writes to the first, conventional zone, where frames are.
    frames: AtomicU64,
}

/// A point in a flush at which it is held.
struct Hold {
    /// Held before the drive flushes, otherwise after it.
    before: bool,
    reached: Sender<()>,
    go_on: Receiver<()>,
}

impl Hold {
    /// A hold, with the receiver that learns when a flush has reached it, and the sender that releases the flush.
    fn new(before: bool) -> (Self, Receiver<()>, Sender<()>) {
        let ((reached, is_reached), (may_go_on, go_on)) = (channel(), channel());
        let hold = Self {
            before,
            reached,
            go_on,
        };
        (hold, is_reached, may_go_on)
    }

    fn wait(&self) {
        self.reached.send(()).unwrap();
        self.go_on.recv().unwrap();
    }
}

impl<D: ZonedDevice> Change<D> for Held {
    fn write(&self, drive: &D, at: ByteOffset, data: &[u8]) -> ZoneResult<()> {
        drive.write(at, data)?;
        if at.0 < drive.geometry().zone_size {
            self.frames.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }

    fn flush(&self, drive: &D) -> ZoneResult<()> {
        let hold = self.next.lock().pop_front();
        if let Some(hold) = hold.as_ref().filter(|hold| hold.before) {
            hold.wait();
        }
        drive.flush()?;
        self.flushes.fetch_add(1, Ordering::SeqCst);
        if let Some(hold) = hold.filter(|hold| !hold.before) {
            hold.wait();
        }
        Ok(())
    }
}

type Drive<D> = Arc<Changed<Arc<D>, Held>>;

fn drive<D: ZonedDevice>(device: Arc<D>) -> Drive<D> {
    format(&*device);
    Arc::new(Changed {
        drive: device,
        change: Held::default(),
    })
}

/// Appends to a file and syncs it, in a thread of its own.
fn sync(fs: &ZeaFs, name: &str, lifetime: Lifetime) -> JoinHandle<Result<(), Error>> {
    let (fs, name) = (fs.clone(), name.to_owned());
    spawn(move || {
        let mut writer = fs.reopen(&name)?;
        writer.set_lifetime(lifetime);
        writer.append(&bytes(9, 900))?;
        writer.sync()
    })
}

/// A sync whose flush the drive has done and not answered yet, and the sender that releases the answer.
fn held<D: ZonedDevice + 'static>(
    drive: &Drive<D>,
    fs: &ZeaFs,
) -> (JoinHandle<Result<(), Error>>, Sender<()>) {
    let (hold, is_reached, go_on) = Hold::new(false);
    drive.change.next.lock().push_back(hold);
    let first = sync(fs, "a", Lifetime::Short);
    is_reached.recv().unwrap();
    (first, go_on)
}

/// Starts a sync and returns when its frame has been written.
fn behind<D: ZonedDevice>(
    drive: &Drive<D>,
    start: impl FnOnce() -> JoinHandle<Result<(), Error>>,
) -> JoinHandle<Result<(), Error>> {
    let before = drive.change.frames.load(Ordering::SeqCst);
    let started = start();
    while drive.change.frames.load(Ordering::SeqCst) == before {
        std::thread::yield_now();
    }
    started
}

#[test]
fn others_go_on_during_a_flush_and_share_the_next() {
    let drive = drive(Arc::new(MemoryDrive::new(geometry(10, 1, 0)).unwrap()));
    let fs = mount(drive.clone()).unwrap();
    for name in ["a", "b", "c"] {
        write(&fs, name, &bytes(1, 500)).unwrap();
    }
    let (first, go_on) = held(&drive, &fs);
    let flushes = drive.change.flushes.load(Ordering::SeqCst);
    // None of these operations waits for the held flush.
    assert_eq!(read(&fs, "b").unwrap(), bytes(1, 500));
    let mut writer = fs.create("d").unwrap();
    writer.append(&bytes(2, 5000)).unwrap();
    writer.close().unwrap();
    fs.rename("d", "e").unwrap();
    assert_eq!(read(&fs, "e").unwrap(), bytes(2, 5000));
    let others = ["b", "c"].map(|name| behind(&drive, || sync(&fs, name, Lifetime::Long)));
    // A sync holds the file system's lock from its frame until it knows which flush it waits for.
    assert_eq!(fs.list("").len(), 4);
    assert!(!first.is_finished() && others.iter().all(|other| !other.is_finished()));
    go_on.send(()).unwrap();
    for sync in others.into_iter().chain([first]) {
        sync.join().unwrap().unwrap();
    }
    assert_eq!(drive.change.flushes.load(Ordering::SeqCst), flushes + 1);
}

/// Frames are written while the flush of an earlier one is held; then the power is cut.
#[test]
fn the_power_takes_frames_that_overlap() {
    for removes in [false, true] {
        let power = Arc::new(PowerCut::new(geometry(10, 1, 0)).unwrap());
        let drive = drive(power.clone());
        let fs = mount(drive.clone()).unwrap();
        for name in ["a", "b", "c"] {
            write(&fs, name, &bytes(1, 500)).unwrap();
        }
        let (first, go_on) = held(&drive, &fs);
        let second = behind(&drive, || sync(&fs, "b", Lifetime::Long));
        let third = behind(&drive, || match removes {
            false => sync(&fs, "c", Lifetime::Short),
            true => {
                fs.delete("b").unwrap();
                let fs = fs.clone();
                spawn(move || fs.sync_metadata())
            }
        });
        let mut seen = BTreeSet::new();
        let limits = CrashLimits {
            max_states: 400,
            max_choices_per_zone: 12,
            seed: 1,
        };
        for state in power.crash_states(limits) {
            let fs = mount(Arc::new(power.image(&state))).unwrap();
            let size = |name| fs.metadata(name).map_or(0, |metadata| metadata.size);
            for name in fs.list("") {
                read(&fs, &name).unwrap_or_else(|e| panic!("{name}: {e}, left {state:?}"));
            }
            seen.insert(["a", "b", "c"].map(size));
        }
        // The first sync is durable, and of the others a prefix may be.
        let expected = match removes {
            false => [[1400, 500, 500], [1400, 1400, 500], [1400, 1400, 1400]],
            true => [[1400, 500, 500], [1400, 1400, 500], [1400, 0, 500]],
        };
        assert_eq!(seen, BTreeSet::from(expected), "removes: {removes}");
        go_on.send(()).unwrap();
        for sync in [first, second, third] {
            sync.join().unwrap().unwrap();
        }
    }
}

/// A zone is reset only after a flush of the frame that frees it. A sync that completes earlier does not reset it.
#[test]
fn a_zone_is_reset_behind_the_flush_of_the_frame_that_gives_it_up() {
    let power = Arc::new(PowerCut::new(geometry(10, 1, 0)).unwrap());
    let drive = drive(power.clone());
    let fs = mount(drive.clone()).unwrap();
    let large = bytes(3, 40_000);
    write(&fs, "a", &bytes(1, 500)).unwrap();
    write(&fs, "large", &large).unwrap();
    let (first, go_on) = held(&drive, &fs);
    let second = behind(&drive, || {
        fs.delete("large").unwrap();
        let fs = fs.clone();
        spawn(move || fs.sync_metadata())
    });
    let (hold, is_reached, then_go_on) = Hold::new(true);
    drive.change.next.lock().push_back(hold);
    go_on.send(()).unwrap();
    first.join().unwrap().unwrap();
    is_reached.recv().unwrap();
    for state in power.crash_states(CrashLimits::default()) {
        let fs = mount(Arc::new(power.image(&state))).unwrap();
        match read(&fs, "large") {
            Err(Error::NotFound { .. }) => {}
            found => assert!(found.unwrap() == large, "left {state:?}"),
        }
    }
    then_go_on.send(()).unwrap();
    second.join().unwrap().unwrap();
}

/// Any block that an unmount leaves may be damaged, and any area lost: files are as last written, or the drive is
/// refused.
#[test]
fn what_was_unmounted_is_never_older() {
    let device = Arc::new(MemoryDrive::new(geometry(10, 1, 0)).unwrap());
    format(&*device);
    for turn in 0..3 {
        let fs = mount(device.clone()).unwrap();
        write(&fs, "a", &bytes(turn, 500)).unwrap();
        fs.unmount().unwrap();
    }
    let mut refused = 0;
    let mut look = |from: u64, length: u64, damage: &dyn Fn(&mut [u8])| {
        let image = device.snapshot();
        image.decay(ZoneAddress::new(ZoneId(0), from), length as usize, damage);
        match mount(Arc::new(image)) {
            Err(Error::Corrupt { .. }) => refused += 1,
            mounted => assert_eq!(read(&mounted.unwrap(), "a").unwrap(), bytes(2, 500)),
        }
        refused
    };
    // After the two copies of the head, one block each.
    let (heads, middle, end) = (1 << 10, 16 << 10, 32 << 10);
    for block in (heads..end).step_by(512) {
        look(block, 512, &|block| block[90] ^= 1);
        look(block, 512, &|block| block.fill(0));
    }
    let before = look(heads, 512, &|_| ());
    // Each area as a whole, and the rest of each area from any block on.
    for (start, end) in [(heads, middle), (middle, end)] {
        assert_eq!(look(start, end - start, &|area| area.fill(0)), before);
        for from in (start..end).step_by(512) {
            look(from, end - from, &|area| area.fill(0));
        }
    }
}

/// Damaged bytes below a write pointer had been written, so the sync counts, and a reader gets an error.
#[test]
fn damage_in_the_last_sync_is_no_sync_that_was_cut() {
    let device = Arc::new(MemoryDrive::new(geometry(10, 1, 0)).unwrap());
    format(&*device);
    let fs = mount(device.clone()).unwrap();
    write(&fs, "a", &bytes(1, 500)).unwrap();
    // After the two labels of the first sequential zone.
    device.decay(ZoneAddress::new(ZoneId(1), 2 * 512), 512, |block| {
        block[7] ^= 1
    });
    let fs = mount(device).unwrap();
    assert_eq!(fs.list(""), ["a"]);
    assert!(matches!(read(&fs, "a"), Err(Error::Corrupt { .. })));
}

/// A drive file, of which the host may lose any block. `gone` was synced and removed; the last sync appends to `kept`
/// and removes `gone` for good, after which the zone of `gone` is reset. Returns where the last bytes of `kept`, and
/// those of the last frame, are in the file.
fn ends_with_a_reset(
    path: &std::path::Path,
    conventional_zones: u32,
) -> (Arc<FileDrive>, Option<u64>, Option<u64>) {
    let g = geometry(10, conventional_zones, 0);
    let device = Arc::new(FileDrive::create(path, &g, "test").unwrap());
    format(&*device);
    let fs = mount(device.clone()).unwrap();
    for n in 0..6 {
        write(&fs, "gone", &bytes(n, 9000)).unwrap();
    }
    let mut log = fs.create("kept").unwrap();
    log.set_lifetime(Lifetime::Long);
    log.append(&bytes(7, 3000)).unwrap();
    log.sync().unwrap();
    fs.delete("gone").unwrap();
    log.append(b"the last bytes of all").unwrap();
    log.sync().unwrap();
    let raw = std::fs::read(path).unwrap();
    let last = |what: &[u8]| raw.windows(what.len()).rposition(|found| found == what);
    let last = |what| last(what).map(|at| at as u64);
    (device, last(b"the last bytes of all"), last(b"gone"))
}

fn spoil(path: &std::path::Path, at: u64) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(b"~", at).unwrap();
}

/// A zone is reset only after the sync that freed its last byte. So damage to data of that sync is not taken for a torn
/// sync, and never brings back the file that it removed.
#[test]
fn a_reset_tells_that_the_sync_before_it_was_whole() {
    for conventional_zones in [0, 1] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.zoned");
        let (device, data, _) = ends_with_a_reset(&path, conventional_zones);
        spoil(&path, data.unwrap());
        let fs = mount(device).unwrap();
        assert_eq!(fs.list(""), ["kept"]);
        assert!(matches!(read(&fs, "kept"), Err(Error::Corrupt { .. })));
        let reader = fs.open("kept").unwrap();
        let mut begin = vec![0; 3000];
        assert_eq!(reader.read_at(0, &mut begin).unwrap(), 3000);
        assert!(begin == bytes(7, 3000));
    }
}

/// The same with damage to the frame of that sync: the frame had been written, so the mount is refused instead of using
/// an older state.
#[test]
fn a_damaged_frame_for_which_a_zone_was_reset_is_not_torn() {
    for conventional_zones in [0, 1] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.zoned");
        let (device, _, frame) = ends_with_a_reset(&path, conventional_zones);
        spoil(&path, frame.unwrap());
        let refused = mount(device).unwrap_err();
        assert!(matches!(refused, Error::Corrupt { .. }), "{refused}");
    }
}
