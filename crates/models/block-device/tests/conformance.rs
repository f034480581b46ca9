//! What every block device does: it reads back what was written, shows what was damaged, answers everything once,
//! and its time never goes back.
#![allow(clippy::unwrap_used)]

use block_device::block_device::{read, write};
use block_device::host::HostDevice;
use block_device::host::clock::WallClock;
use block_device::host::medium::Medium;
use block_device::{
    BlockDevice, Data, DeviceError, Memory, PacedDevice, Payload, Simulated, SparseFile,
};
use drive_model::profile::LayerShape;
use drive_model::{BLOCK_BYTES, CaveatShape, Failure, Lba, Model, Profile, Random, Request, Span};
use drive_model::{Time, profile};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Blocks that are used, of however many there are.
const BLOCKS: u64 = 3_000;

fn disk() -> Box<dyn Model> {
    profile::model("seagate-cmr", 1).unwrap()
}

fn caveat() -> Box<dyn Model> {
    let mut profile = Profile::named("caveat-scriptor").unwrap();
    profile.capacity_bytes = BLOCKS * BLOCK_BYTES;
    profile.layer = LayerShape::CaveatScriptor(CaveatShape {
        drive_isolation_distance: 40,
        drive_no_overlap_range: 7,
    });
    Box::new(profile.drive(1).unwrap())
}

struct Plain(File);

impl Medium for Plain {
    fn name(&self) -> String {
        "a file".into()
    }

    fn bytes(&self) -> u64 {
        BLOCKS * BLOCK_BYTES
    }

    fn read(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(buffer, at)
    }

    fn write(&self, at: u64, data: &[u8], _through: bool) -> io::Result<usize> {
        if at + data.len() as u64 > self.bytes() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0.write_at(data, at)
    }

    fn flush(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

/// A device beside what each of its blocks has to hold; nothing is what cannot be read.
struct Checked<'a> {
    device: &'a mut dyn BlockDevice,
    blocks: Vec<Option<u8>>,
    last: Time,
}

impl Checked<'_> {
    fn time_goes_on(&mut self) {
        let now = self.device.now();
        assert!(now >= self.last);
        self.last = now;
    }

    fn noted(&mut self, lba: u64, count: u64, value: u8) {
        let endangered = self.device.endangered(Lba(lba), count);
        assert!(endangered.start >= lba + count || endangered.is_empty());
        self.blocks[lba as usize..(lba + count) as usize].fill(Some(value));
        for block in endangered {
            self.blocks[block as usize] = None;
        }
    }

    fn write(&mut self, lba: u64, count: u64, value: u8) {
        self.noted(lba, count, value);
        let bytes = vec![value; (count * BLOCK_BYTES) as usize];
        write(self.device, Lba(lba), bytes).unwrap();
        self.time_goes_on();
    }

    /// Nothing may be in a cache, out of which what is damaged could still be read.
    fn flush(&mut self) {
        self.device.submit(7, Request::flush(), Payload::None);
        let done = self.device.complete(None).unwrap();
        assert!(done.token == 7 && done.result.is_ok());
    }

    fn check(&mut self, lba: u64, count: u64) {
        let found = read(self.device, Lba(lba), count as u32);
        self.time_goes_on();
        let held = &self.blocks[lba as usize..(lba + count) as usize];
        let damaged = held.iter().position(Option::is_none);
        let damaged = damaged.map(|at| Lba(lba + at as u64));
        assert_eq!(self.device.first_damaged(Lba(lba), count), damaged);
        match damaged {
            Some(first) => match found {
                Err(DeviceError::Drive(Failure::Unreadable { lba })) => assert_eq!(lba, first),
                other => panic!("{other:?}"),
            },
            None => {
                let expected = held.iter().flatten();
                let expected: Vec<u8> = expected.flat_map(|value| [*value; 4096]).collect();
                assert!(found.unwrap() == expected, "{lba} {count}");
            }
        }
    }
}

fn conforms(device: &mut dyn BlockDevice, fresh: Option<u8>) {
    assert!(device.blocks() >= BLOCKS);
    let mut checked = Checked {
        last: device.now(),
        device,
        blocks: vec![fresh; BLOCKS as usize],
    };
    written_blocks_are_read_and_others_are_damaged(&mut checked);
    everything_is_answered_once(&mut checked);
    parts_of_blocks_are_read(&mut checked);
    what_cannot_be_done_is_an_error(&mut checked);
    for lba in (0..BLOCKS).step_by(50) {
        checked.check(lba, 50);
    }
}

fn written_blocks_are_read_and_others_are_damaged(checked: &mut Checked<'_>) {
    let mut random = Random::new(3);
    for value in 0..=200 {
        let lba = random.below(BLOCKS - 20);
        checked.write(lba, random.below(20) + 1, value);
        let lba = random.below(BLOCKS - 20);
        checked.flush();
        checked.check(lba, random.below(20) + 1);
    }
    let (before, span) = (checked.device.now(), Span::from_micros(10.0));
    checked.device.idle(span);
    assert!(checked.device.now().since(before) >= span);
    for lba in 0..BLOCKS {
        checked.check(lba, 1);
    }
}

fn everything_is_answered_once(checked: &mut Checked<'_>) {
    for token in 0..16 {
        let lba = token * 100;
        checked.noted(lba, 2, token as u8);
        let payload = Payload::write(vec![token as u8; 2 * BLOCK_BYTES as usize]);
        checked
            .device
            .submit(token, Request::write(Lba(lba), 2), payload);
    }
    let mut seen = [false; 16];
    let mut last = Time::START;
    for _ in 0..16 {
        let done = checked.device.complete(None).unwrap();
        assert!(done.result.is_ok() && done.submitted <= done.at);
        assert!(done.at <= checked.device.now());
        last = last.max(done.at);
        assert_eq!(done.request.lba, Lba(done.token * 100));
        assert!(!std::mem::replace(&mut seen[done.token as usize], true));
    }
    // And nothing else is.
    let patience = Some(Span::from_micros(10.0));
    assert!(checked.device.complete(patience).is_none());
    checked.time_goes_on();
    checked.flush();
    (0..16).for_each(|n| checked.check(n * 100, 2));
}

fn parts_of_blocks_are_read(checked: &mut Checked<'_>) {
    checked.write(100, 1, 1);
    checked.write(101, 1, 2);
    let part = Payload::Read {
        skip: 4_000,
        length: 100,
    };
    checked.device.submit(0, Request::read(Lba(100), 2), part);
    let found = checked.device.complete(None).unwrap().bytes;
    assert_eq!(found, [[1; 96].as_slice(), &[2; 4]].concat());
}

fn what_cannot_be_done_is_an_error(checked: &mut Checked<'_>) {
    let behind = Lba(checked.device.blocks() - 1);
    let bytes = vec![9; 2 * BLOCK_BYTES as usize];
    assert!(write(checked.device, behind, bytes).is_err());
    let read = read(checked.device, behind, 2);
    assert!(read.is_err());
}

#[test]
fn a_simulated_disk_with_data_in_memory() {
    conforms(&mut Simulated::new(disk(), Memory::default()), Some(0));
}

#[test]
fn a_simulated_disk_with_data_in_a_file() {
    let model = disk();
    let file = SparseFile::unnamed(model.blocks() * BLOCK_BYTES).unwrap();
    conforms(&mut Simulated::new(model, file), Some(0));
}

#[test]
fn a_simulated_disk_that_damages() {
    conforms(&mut Simulated::new(caveat(), Memory::default()), None);
}

#[test]
fn a_disk_at_the_walls_pace() {
    for (model, fresh) in [(disk(), Some(0)), (caveat(), None)] {
        let clock = runtime::Runtime::system();
        let device = PacedDevice::new(model, Time::START, 20_000.0, Memory::default(), clock);
        let lane = device.lane();
        conforms(&mut &lane, fresh);
    }
}

#[test]
fn a_file_of_the_host() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(BLOCKS * BLOCK_BYTES).unwrap();
    let (medium, clock) = (Arc::new(Plain(file)), Arc::new(WallClock::default()));
    conforms(&mut HostDevice::new(medium, clock), Some(0));
}

/// A device that was trimmed: whatever is read is zeros.
#[derive(Default)]
struct Trimmed(Memory);

impl Medium for Trimmed {
    fn name(&self) -> String {
        "a trimmed device".into()
    }

    fn bytes(&self) -> u64 {
        BLOCKS * BLOCK_BYTES
    }

    fn read(&self, _at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        buffer.fill(0);
        Ok(buffer.len())
    }

    fn write(&self, at: u64, data: &[u8], _through: bool) -> io::Result<usize> {
        self.0.write(at, data)?;
        Ok(data.len())
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

/// A drive that compresses or keeps no zeros would answer other writes faster.
#[test]
fn a_write_without_data_cannot_be_compressed_whatever_was_before_it() {
    let medium = Arc::new(Trimmed::default());
    let mut device = HostDevice::new(medium.clone(), Arc::new(WallClock::default()));
    let mut found = vec![0; 8 * BLOCK_BYTES as usize];
    read(&mut device, Lba(0), 8).unwrap();
    for round in 0..2 {
        device.submit(0, Request::write(Lba(0), 8), Payload::None);
        assert!(device.complete(None).unwrap().result.is_ok());
        medium.0.read(0, &mut found).unwrap();
        let words: BTreeSet<&[u8]> = found.chunks(8).collect();
        assert_eq!(words.len(), found.len() / 8, "{round}");
        write(&mut device, Lba(0), vec![1; found.len()]).unwrap();
    }
}

/// What a model writes in part stays around it, as a client of the network block device may ask.
#[test]
fn a_model_takes_parts_of_blocks() {
    let mut device = Simulated::new(disk(), Memory::default());
    write(&mut device, Lba(5), vec![1; 8192]).unwrap();
    let part = Payload::Write {
        skip: 4_090,
        bytes: vec![2; 10],
    };
    device.submit(0, Request::write(Lba(5), 2), part);
    assert!(device.complete(None).unwrap().result.is_ok());
    device.submit(0, Request::trim(Lba(6), 0), Payload::None);
    device.complete(None);
    let found = read(&mut device, Lba(5), 2).unwrap();
    assert!(found[..4_090].iter().all(|byte| *byte == 1));
    assert_eq!(found[4_090..4_101], [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1]);
    device.submit(0, Request::trim(Lba(6), 1), Payload::None);
    device.complete(None);
    assert_eq!(read(&mut device, Lba(6), 1).unwrap(), [0; 4096]);
}

/// Data of which the host loses some once, as it does with a file: the next sync succeeds.
#[derive(Default)]
struct LosesOnce {
    data: Memory,
    has_lost: AtomicBool,
}

impl Data for LosesOnce {
    fn read(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.data.read(at, buffer)
    }

    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.data.write(at, bytes)
    }

    fn discard(&self, at: u64, length: u64) -> io::Result<()> {
        self.data.discard(at, length)
    }

    fn sync(&self) -> io::Result<()> {
        match self.has_lost.swap(true, Ordering::SeqCst) {
            true => Ok(()),
            false => Err(io::ErrorKind::StorageFull.into()),
        }
    }
}

/// One client's write is told that data was lost, which may be another's data as well.
#[test]
fn after_a_failed_sync_no_lane_is_told_that_anything_is_durable() {
    let (data, clock) = (LosesOnce::default(), runtime::Runtime::system());
    let device = PacedDevice::new(disk(), Time::START, 20_000.0, data, clock);
    let (one, other) = (device.lane(), device.lane());
    write(&mut &other, Lba(1), vec![7; 4096]).unwrap();
    let through = Request {
        operation: drive_model::RequestKind::WriteThrough,
        ..Request::write(Lba(2), 1)
    };
    for (lane, request) in [(&one, through), (&other, Request::flush()), (&one, through)] {
        let mut lane = lane;
        lane.submit(0, request, Payload::None);
        match lane.complete(None).unwrap().result {
            Err(DeviceError::Host(error)) => assert_eq!(error.kind(), io::ErrorKind::StorageFull),
            other => panic!("{request:?}: {other:?}"),
        }
    }
    write(&mut &one, Lba(1), vec![8; 4096]).unwrap();
    assert_eq!(read(&mut &other, Lba(1), 1).unwrap(), [8; 4096]);
}
