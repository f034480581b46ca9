//! Reads of a damaged copy while another thread makes the other copy the one that is read first.

use super::*;
use device::ZonedDevice;
use device::faults::{Fault, Faults, Gate, Plan};
use zone::{ZoneCommand, ZoneCondition};

const SST: &str = "/old.sst";
const LOG: &str = "/000001.log";

fn content() -> Vec<u8> {
    (0..5000_u32).map(|i| (i * i % 251) as u8).collect()
}

/// A file in a zone that is mostly dead, and a closed log.
fn two_copies() -> (Arc<Faults<MemoryDrive>>, BlueFs) {
    let drive = MemoryDrive::new(geometry(60, 0, 0)).unwrap();
    format_copies(&drive, Role::Alone, 2);
    let device = Arc::new(Faults::new(drive));
    let fs = mount(device.clone()).unwrap();
    support::put(&fs, SST, &content());
    support::put(&fs, "/gone.sst", &[2; 30_000]);
    support::put(&fs, LOG, &content());
    fs.delete("/gone.sst").unwrap();
    fs.sync_metadata().unwrap();
    (device, fs)
}

fn place_of(fs: &BlueFs, path: &str) -> ZoneAddress {
    fs.extents(path).unwrap()[0].at
}

/// Runs `meanwhile` while `what` is at its first read of the first copy in `zone`.
fn held_up<T: Send>(
    device: &Faults<MemoryDrive>,
    zone: ZoneId,
    what: impl FnOnce() -> T + Send,
    meanwhile: impl FnOnce(),
) -> T {
    let gate = Gate::new();
    let stuck = Fault::Stuck(gate.clone());
    device.add(Plan::at(ZoneCommand::Read, 1, stuck).in_zone(zone));
    std::thread::scope(|scope| {
        let what = scope.spawn(what);
        gate.wait_until_stuck(1);
        meanwhile();
        gate.release();
        what.join().unwrap()
    })
}

type What = fn(&BlueFs);

/// With more damaged blocks than can be put together from both copies.
#[test]
fn what_one_copy_has_is_found_although_another_reader_turns_to_it_meanwhile() {
    let whats: [(&str, What); 4] = [
        ("a read", |fs| assert!(read(fs, SST).unwrap() == content())),
        ("a move", |fs| assert!(fs.clean_ahead().unwrap())),
        ("a scrub", |fs| {
            let scrubbed = fs.scrub(&mut |_| true).unwrap().unwrap();
            assert!(scrubbed.lost.is_empty(), "{scrubbed:?}");
        }),
        ("a check", |fs| {
            let report = fs.check(true).unwrap();
            assert!(report.has_copies(), "{:?}", report.details);
        }),
    ];
    for (name, what) in whats {
        println!("{name}");
        let (device, fs) = two_copies();
        let at = place_of(&fs, SST);
        device.inner().decay(at, 9 * BLOCK, |bytes| {
            bytes.iter_mut().for_each(|b| *b ^= 1)
        });
        let turn = || assert!(read(&fs, SST).unwrap() == content());
        held_up(&device, at.zone, || what(&fs), turn);
        assert!(read(&fs, SST).unwrap() == content());
        let is_moved = place_of(&fs, SST).zone != at.zone;
        assert_eq!(is_moved, ["a move", "a scrub"].contains(&name));
        fs.sync_metadata().unwrap();
        drop(fs);
        let fs = mount(device).unwrap();
        assert!(read(&fs, SST).unwrap() == content());
    }
}

#[test]
fn a_record_that_one_copy_has_is_found_although_a_scrub_turns_to_it_meanwhile() {
    let (device, fs) = two_copies();
    let ZoneAddress { zone, offset } = place_of(&fs, LOG);
    let whole = fs.open(LOG).unwrap().verify().unwrap();
    let begin = ZoneAddress::new(zone, offset - offset % BLOCK as u64);
    device.inner().decay(begin, BLOCK, |bytes| bytes[0] ^= 1);
    let scrub = || {
        let scrubbed = fs.scrub(&mut |_| true).unwrap().unwrap();
        assert!(scrubbed.lost.is_empty() && scrubbed.repaired == 1);
    };
    let verify = || fs.open(LOG).unwrap().verify();
    let found = held_up(&device, zone, verify, scrub);
    assert_eq!(found.unwrap(), whole);
}

/// The copy finds zeros, which are no damage to the data that the zone gets next.
#[test]
fn a_pair_that_was_reset_during_a_move_does_not_count_as_damaged() {
    let (device, fs) = two_copies();
    let ZoneAddress { zone, .. } = place_of(&fs, SST);
    let delete = || {
        fs.delete(SST).unwrap();
        fs.sync_metadata().unwrap();
        let told = device.report_zone(zone).unwrap();
        assert_eq!(told.condition, ZoneCondition::Empty);
    };
    held_up(&device, zone, || fs.clean_ahead().unwrap(), delete);
    assert_eq!(fs.usage().damaged_copies, 0);
    support::assert_clean(&fs);
}
