//! Caveat-Scriptor: what a write damages, beside a bitmap.

use drive_model::layer::Translation;
use drive_model::profile::LayerShape;
use drive_model::{
    CaveatParameters, CaveatShape, DiskDrive, Failure, Lba, Profile, Random, Request, Span, Time,
};
use proptest::prelude::*;

const BLOCKS: u64 = 4_000;

fn drive(shape: CaveatShape) -> DiskDrive {
    let mut profile = Profile::named("caveat-scriptor").unwrap();
    profile.capacity_bytes = BLOCKS * 4096;
    profile.layer = LayerShape::CaveatScriptor(shape);
    profile.drive(1).unwrap()
}

fn shape(drive_isolation_distance: u64, drive_no_overlap_range: u64) -> CaveatShape {
    CaveatShape {
        drive_isolation_distance,
        drive_no_overlap_range,
    }
}

/// A sector after the other, as the thesis has it.
struct Bitmap {
    shape: CaveatShape,
    readable: Vec<bool>,
}

impl Bitmap {
    fn write(&mut self, i: u64, j: u64) {
        let last = self.readable.len() as u64 - 1;
        (i..=j).for_each(|sector| self.readable[sector as usize] = true);
        let first = (i + 1 + self.shape.drive_no_overlap_range).max(j + 1);
        for sector in first..=(j + self.shape.drive_isolation_distance).min(last) {
            self.readable[sector as usize] = false;
        }
    }

    fn read(&self, i: u64, j: u64) -> Result<(), Failure> {
        let damaged = (i..=j).find(|sector| !self.readable[*sector as usize]);
        damaged.map_or(Ok(()), |sector| {
            Err(Failure::Unreadable { lba: Lba(sector) })
        })
    }
}

fn end(first: u64, count: u32) -> u64 {
    (first + u64::from(count)).min(BLOCKS)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_disk_damages_what_the_bitmap_says(
        did in 0u64..300,
        dnor_part in 0.0..=1.0f64,
        cache in any::<bool>(),
        steps in prop::collection::vec((any::<bool>(), 0..BLOCKS, 1u32..200), 1..120),
    ) {
        let shape = shape(did, (did as f64 * dnor_part) as u64);
        let mut drive = drive(shape);
        drive.set_volatile_cache(cache);
        let mut bitmap = Bitmap { shape, readable: vec![false; BLOCKS as usize] };
        let mut now = Time::START;
        for (writes, first, count) in steps {
            let count = (end(first, count) - first) as u32;
            let last = first + u64::from(count) - 1;
            let request = if writes {
                bitmap.write(first, last);
                Request::write(Lba(first), count)
            } else {
                Request::read(Lba(first), count)
            };
            let completion = drive.submit(request, now);
            now = completion.at;
            if !writes {
                // Out of the cache it may still be read; on the medium the order decides.
                now = drive.submit(Request::flush(), now).at;
                let again = drive.submit(request, now);
                prop_assert_eq!(again.result, bitmap.read(first, last));
                now = again.at;
            }
        }
        for sector in 0..BLOCKS {
            let read = drive.submit(Request::read(Lba(sector), 1), now + Span::from_seconds(60.0));
            prop_assert_eq!(read.result, bitmap.read(sector, sector));
            now = read.at;
        }
    }
}

#[test]
fn the_host_is_told_the_four_parameters() {
    let drive = Profile::named("caveat-scriptor").unwrap().drive(1).unwrap();
    let Translation::CaveatScriptor(layer) = drive.translation() else {
        panic!("another layer");
    };
    let expected = CaveatParameters {
        disk_bytes: drive.blocks() * 4096,
        sector_bytes: 4096,
        shape: shape(512, 222),
    };
    assert_eq!(layer.parameters(), expected);
    let mut profile = Profile::named("caveat-scriptor").unwrap();
    profile.layer = LayerShape::CaveatScriptor(shape(5, 6));
    assert!(profile.drive(1).is_err());
}

/// Section 4.3.1: runs of DNOR sectors with DID sectors between them can be written in any order.
#[test]
fn sectors_far_enough_apart_are_not_shingled() {
    let shape = shape(100, 20);
    let mut drive = drive(shape);
    let runs = BLOCKS / 120;
    let mut random = Random::new(5);
    let mut now = Time::START;
    let all: Vec<u64> = (0..runs * 20).map(|n| n / 20 * 120 + n % 20).collect();
    for sector in all.iter().chain(
        &random
            .shuffled(all.len() as u64)
            .into_iter()
            .map(|n| all[n as usize])
            .collect::<Vec<_>>(),
    ) {
        now = drive.submit(Request::write(Lba(*sector), 1), now).at;
    }
    for sector in all {
        let read = drive.submit(Request::read(Lba(sector), 1), now);
        assert_eq!(read.result, Ok(()), "{sector}");
        now = read.at;
    }
}

/// Writes that wait together are done in the order in which they came, or the later one would be lost.
#[test]
fn a_queue_keeps_the_order_of_writes() {
    let mut drive = drive(shape(100, 0));
    drive.enqueue(Request::write(Lba(1_000), 200), Time::START);
    drive.enqueue(Request::write(Lba(1_200), 1), Time::START);
    drive.enqueue(Request::write(Lba(1_201), 1), Time::START);
    let flush = drive.submit(Request::flush(), Time::START);
    let read = drive.submit(Request::read(Lba(1_000), 202), flush.at);
    assert_eq!(read.result, Ok(()));
    let damaged = drive.submit(Request::read(Lba(1_202), 1), read.at);
    assert_eq!(damaged.result, Err(Failure::Unreadable { lba: Lba(1_202) }));
    // Nothing moves for what cannot be read.
    assert!(damaged.latency().millis() < 0.2);
}

#[test]
fn a_write_that_was_cut_off_is_damaged_with_what_it_endangered() {
    let mut drive = drive(shape(50, 10));
    drive.set_volatile_cache(false);
    let before = drive.submit(Request::write(Lba(0), 400), Time::START);
    drive.enqueue(Request::write(Lba(100), 20), before.at);
    let cut = before.at + Span::from_millis(1.0);
    let lost = drive.power_cut(cut);
    assert_eq!(lost.len(), 1);
    let mut now = cut;
    for sector in 0..400 {
        let read = drive.submit(Request::read(Lba(sector), 1), now);
        let damaged = (100..170).contains(&sector);
        assert_eq!(read.result.is_err(), damaged, "{sector}");
        now = read.at;
    }
}

#[test]
fn the_arm_can_be_seen() {
    let mut drive = Profile::named("caveat-scriptor").unwrap().drive(1).unwrap();
    drive.set_volatile_cache(false);
    let first = drive.submit(Request::write(Lba(0), 1), Time::START);
    let outside = drive.arm();
    let last = Lba(drive.blocks() - 1);
    drive.submit(Request::write(last, 1), first.at);
    assert_ne!(drive.arm(), outside);
}
