//! A read of the drive that fails or does not return concerns its caller alone.

use crate::support::{bytes, format, geometry, read, write};
use device::MemoryDrive;
use device::faults::{Fault, Faults, Gate, Plan};
use std::io::ErrorKind;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use zeafs::{Error, ZeaFs};
use zone::ZoneCommand;

/// Timeout; only a failing test waits this long.
const FOR_EVER: Duration = Duration::from_secs(600);

/// Several chunks of a file, so that a reader of one does not keep the others.
const LARGE: usize = 80_000;

fn mounted() -> (Arc<Faults<MemoryDrive>>, ZeaFs) {
    let g = zone::Geometry {
        zone_size: 256 << 10,
        zone_capacity: 256 << 10,
        ..geometry(10, 1, 0)
    };
    let drive = Arc::new(Faults::new(MemoryDrive::new(g).unwrap()));
    format(&*drive);
    let fs = ZeaFs::mount_with(drive.clone(), runtime::Runtime::seeded(1), 5 << 20).unwrap();
    write(&fs, "a", &bytes(1, LARGE)).unwrap();
    (drive, fs)
}

fn stuck(kth: u64, gate: &Arc<Gate>) -> Plan {
    Plan::from(ZoneCommand::Read, kth, Fault::Stuck(gate.clone()))
}

/// Whether `what` comes back although the gate is closed.
fn comes_back(gate: &Gate, what: impl FnOnce() + Send) -> bool {
    let (done, is_done) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            what();
            done.send(()).unwrap();
        });
        let came_back = is_done.recv_timeout(FOR_EVER).is_ok();
        if !came_back {
            gate.release();
        }
        came_back
    })
}

/// Bad blocks stay bad: a further read would only make the drive try for as long once more.
#[test]
fn data_that_cannot_be_read_is_read_once() {
    for length in [500, LARGE] {
        let (drive, fs) = mounted();
        let (reader, gate) = (fs.open("a").unwrap(), Gate::new());
        let bad = Fault::Io(ErrorKind::Other);
        drive.add(Plan::at(ZoneCommand::Read, 1, bad));
        drive.add(stuck(2, &gate));
        let mut buffer = vec![0; length];
        let back = comes_back(&gate, || {
            let read = reader.read_at(0, &mut buffer);
            assert!(matches!(read, Err(Error::Drive(_))), "{read:?}");
        });
        assert!(back);
    }
}

/// A read that fails and whose file has changed meanwhile is repeated, and the second one is stuck too.
#[test]
fn a_stuck_read_holds_up_no_append() {
    let (drive, fs) = mounted();
    let (reader, first, second) = (fs.open("a").unwrap(), Gate::new(), Gate::new());
    for fault in [Fault::Stuck(first.clone()), Fault::Io(ErrorKind::Other)] {
        drive.add(Plan::at(ZoneCommand::Read, 1, fault));
    }
    drive.add(stuck(2, &second));
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let mut buffer = vec![0; LARGE];
            let got = reader.read_at(0, &mut buffer);
            buffer.truncate(got.unwrap());
            buffer
        });
        first.wait_until_stuck(1);
        let mut writer = fs.reopen("a").unwrap();
        writer.truncate(30_000).unwrap();
        writer.sync().unwrap();
        first.release();
        second.wait_until_stuck(1);
        let back = comes_back(&second, || {
            write(&fs, "b", b"appended").unwrap();
            assert_eq!(fs.metadata("a").unwrap().size, 30_000);
        });
        second.release();
        assert!(reading.join().unwrap() == bytes(1, LARGE)[..30_000]);
        assert!(back);
    });
}

#[test]
fn a_stuck_read_holds_up_no_other_reader_of_the_same_file() {
    let (drive, fs) = mounted();
    let (reader, gate) = (fs.open("a").unwrap(), Gate::new());
    let part = |from: usize| {
        let mut buffer = vec![0; 900];
        assert_eq!(reader.read_at(from as u64, &mut buffer).unwrap(), 900);
        assert!(buffer == bytes(1, LARGE)[from..from + 900]);
    };
    drive.add(Plan::at(ZoneCommand::Read, 1, Fault::Stuck(gate.clone())));
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| part(0));
        gate.wait_until_stuck(1);
        let back = comes_back(&gate, || part(70_000));
        gate.release();
        reading.join().unwrap();
        assert!(back);
    });
    assert_eq!(read(&fs, "a").unwrap().len(), LARGE);
}
