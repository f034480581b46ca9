//! Write pointers of zones that prefer sequential writes after a power cut: a lost write takes back only its own blocks,
//! and only where no block after them is on the medium.

use super::*;
use drive_model::{AnyProfile, Completion, Random, Span, state};

fn aware(volatile_cache: bool) -> ZonedDisk {
    let mut disk = disk("ha-smr-8tb");
    disk.set_volatile_cache(volatile_cache);
    disk
}

/// Condition and write pointer in blocks.
fn zone_of(disk: &dyn Model, zone: u64) -> (ZoneCondition, u64) {
    let report = disk.zones().unwrap().report(ZoneId(zone as u32), 1)[0];
    (report.condition, report.write_pointer / 4096)
}

fn done(disk: &mut ZonedDisk, request: Request, now: Time) -> Time {
    let done = disk.submit(request, now);
    assert_eq!(done.result, Ok(()), "{request:?}");
    done.at
}

#[test]
fn a_lost_overwrite_leaves_the_pointer() {
    let zone = start(1_000);
    let mut disk = aware(true);
    let now = done(&mut disk, Request::write(zone, 256), Time::START);
    let now = done(&mut disk, Request::flush(), now);
    let now = done(&mut disk, Request::write(zone.plus(100), 8), now);
    assert_eq!(disk.power_cut(now), []);
    assert_eq!(zone_of(&disk, 1_000), (ZoneCondition::Closed, 256));
}

#[test]
fn a_full_zone_stays_full() {
    let zone = start(1_000);
    let mut disk = aware(true);
    let last = Request::write(zone.plus(ZONE - 1), 1);
    let now = done(&mut disk, last, Time::START);
    let now = done(&mut disk, Request::flush(), now);
    let now = done(&mut disk, Request::write(zone.plus(100), 8), now);
    disk.power_cut(now);
    assert_eq!(zone_of(&disk, 1_000), (ZoneCondition::Full, ZONE));
}

#[test]
fn a_lost_write_over_a_boundary_counts_in_neither_zone() {
    let mut disk = aware(true);
    let now = done(&mut disk, Request::write(start(1_001), 2), Time::START);
    let now = done(&mut disk, Request::flush(), now);
    let over = Request::write(Lba(start(1_001).0 - 5), 10);
    let now = done(&mut disk, over, now);
    disk.power_cut(now);
    // Neither the gap before the write nor its blocks were ever on the medium.
    assert_eq!(zone_of(&disk, 1_000), (ZoneCondition::Empty, 0));
    assert_eq!(zone_of(&disk, 1_001), (ZoneCondition::Closed, 2));
}

/// A large write is still on its way into the volatile cache when a small one after it is answered as durable.
#[test]
fn a_durable_write_keeps_the_pointer_after_itself() {
    let zone = start(1_000);
    let mut disk = aware(true);
    let large = disk.enqueue(Request::write(zone, 1_500), Time::START);
    let through = Request {
        operation: RequestKind::WriteThrough,
        ..Request::write(zone.plus(1_500), 1)
    };
    let at = done(&mut disk, through, Time::START);
    let lost = disk.power_cut(at);
    assert!(lost.iter().all(|done| done.tag == large), "{lost:?}");
    assert_eq!(zone_of(&disk, 1_000), (ZoneCondition::Closed, 1_501));
}

#[test]
fn a_finish_is_lost_with_a_write_before_it() {
    let finish = |zone| Request::on_zone(RequestKind::FinishZone, start(zone));
    for flushed in [false, true] {
        let mut disk = aware(true);
        let mut now = done(&mut disk, Request::write(start(1_000), 8), Time::START);
        if flushed {
            now = done(&mut disk, Request::flush(), now);
        }
        now = done(&mut disk, finish(1_000), now);
        now = done(&mut disk, finish(1_001), now);
        disk.power_cut(now);
        let expected = if flushed {
            (ZoneCondition::Full, ZONE)
        } else {
            (ZoneCondition::Empty, 0)
        };
        assert_eq!(zone_of(&disk, 1_000), expected);
        assert_eq!(zone_of(&disk, 1_001), (ZoneCondition::Full, ZONE));
    }
}

#[test]
fn a_reset_is_not_undone_by_older_writes() {
    let mut disk = aware(true);
    let now = done(&mut disk, Request::write(start(1_000), 64), Time::START);
    let reset = Request::on_zone(RequestKind::ResetZone, start(1_000));
    let now = done(&mut disk, reset, now);
    let now = done(&mut disk, Request::write(start(1_000), 8), now);
    disk.power_cut(now);
    assert_eq!(zone_of(&disk, 1_000), (ZoneCondition::Empty, 0));
}

/// A stream goes to its bands without the journal: the write pointer is where the head had come to, also in a write that
/// goes on in the next band, and what lies before it can be read.
#[test]
fn a_power_cut_tears_a_streamed_write() {
    const BLOCKS: u32 = 15_000;
    let zone = start(1_000);
    let fresh = aware(true);
    let end = {
        let mut disk = fresh.clone();
        disk.enqueue(Request::write(zone, BLOCKS), Time::START);
        disk.idle_until(Time::from_nanos(1_000_000_000));
        assert!(disk.statistics().cleaning.streamed_bands > 0);
        disk.drive().busy_until().nanos()
    };
    let (mut torn, mut before) = (0, 0);
    for n in 0..=40 {
        let cut = Time::from_nanos(end * n / 40);
        let mut disk = fresh.clone();
        disk.enqueue(Request::write(zone, BLOCKS), Time::START);
        disk.power_cut(cut);
        let (_, pointer) = zone_of(&disk, 1_000);
        assert!(pointer >= before, "{pointer} after {before}");
        before = pointer;
        torn += u32::from(pointer > 0 && pointer < BLOCKS.into());
        if pointer > 0 {
            let read = Request::read(zone, pointer as u32 + 1_000);
            assert_eq!(disk.submit(read, cut).result, Ok(()), "{pointer}");
        }
        let next = Request::write(zone.plus(pointer), 8);
        assert_eq!(disk.submit(next, cut).result, Ok(()));
    }
    assert_eq!(before, u64::from(BLOCKS));
    assert!(torn > 20, "{torn}");
}

#[test]
fn a_saved_drive_loses_what_the_drive_itself_would() {
    let profile = AnyProfile::named("ha-smr-8tb").unwrap();
    let mut model = profile.model(1).unwrap();
    let mut now = model
        .submit(Request::write(start(1_000), 16), Time::START)
        .at;
    now = model.submit(Request::flush(), now).at;
    for (zone, first) in [(1_000, 4), (1_000, 40), (1_001, 9)] {
        now = model
            .submit(Request::write(start(zone).plus(first), 8), now)
            .at;
    }
    let bytes = state::save(&profile, &*model, now).unwrap();
    let (mut loaded, _) = state::load(&profile, &bytes).unwrap();
    loaded.power_cut(now);
    assert_eq!(zone_of(&*loaded, 1_000), (ZoneCondition::Closed, 16));
    assert_eq!(zone_of(&*loaded, 1_001), (ZoneCondition::Empty, 0));
}

/// A write that the host knows of.
struct Known {
    zone: u64,
    first: u64,
    blocks: u64,
    /// Whether the host knows that it is on the medium.
    durable: bool,
}

struct Host {
    random: Random,
    disk: ZonedDisk,
    now: Time,
    writes: Vec<Known>,
}

impl Host {
    fn wait(&mut self, request: Request) -> Completion {
        let done = self.disk.submit(request, self.now);
        assert_eq!(done.result, Ok(()), "{request:?}");
        self.now = self.now.max(done.at);
        done
    }

    fn write(&mut self, volatile_cache: bool) {
        let zone = 1_000 + self.random.below(3);
        let first = match self.random.below(3) {
            0 => zone_of(&self.disk, zone).1.min(ZONE - 3_000),
            _ => self.random.below(3_000),
        };
        let blocks = [1, 8, 300, 2_500][self.random.below(4) as usize];
        let mut request = Request::write(start(zone).plus(first), blocks as u32);
        let through = self.random.below(4) == 0;
        if through {
            request.operation = RequestKind::WriteThrough;
        }
        let waits = self.random.below(2) == 0;
        if waits {
            self.wait(request);
        } else {
            self.disk.enqueue(request, self.now);
        }
        self.writes.push(Known {
            zone,
            first,
            blocks,
            durable: waits && (through || !volatile_cache),
        });
    }

    fn step(&mut self, volatile_cache: bool) {
        match self.random.below(20) {
            0 => {
                self.wait(Request::flush());
                self.writes
                    .iter_mut()
                    .for_each(|known| known.durable = true);
            }
            1 => {
                let zone = 1_000 + self.random.below(3);
                let reset = Request::on_zone(RequestKind::ResetZone, start(zone));
                self.wait(reset);
                self.writes.retain(|known| known.zone != zone);
            }
            2..5 => {
                self.now += Span::from_millis(self.random.below(60) as f64);
                self.disk.idle_until(self.now);
            }
            _ => self.write(volatile_cache),
        }
    }
}

/// Whatever a host does: what it knows to be durable stays before the write pointer, which is where it was known to be or
/// in a write that may have come so far.
#[test]
fn no_pointer_is_before_a_durable_block_or_after_a_lost_one() {
    for seed in 0..60 {
        let volatile_cache = seed % 3 > 0;
        let mut host = Host {
            random: Random::new(seed),
            disk: aware(volatile_cache),
            now: Time::START,
            writes: Vec::new(),
        };
        for cut in 0..4 {
            for _ in 0..host.random.below(40) {
                host.step(volatile_cache);
            }
            host.now += Span::from_millis(host.random.below(40) as f64);
            host.disk.power_cut(host.now);
            for zone in 1_000..1_003 {
                let (_, pointer) = zone_of(&host.disk, zone);
                let own = || host.writes.iter().filter(|known| known.zone == zone);
                let ends = own().filter(|known| known.durable);
                let durable = ends.map(|known| known.first + known.blocks).max();
                let least = durable.unwrap_or(0);
                let in_one =
                    |known: &Known| pointer > known.first && pointer <= known.first + known.blocks;
                assert!(
                    pointer == least || pointer > least && own().any(in_one),
                    "seed {seed}, cut {cut}, zone {zone}: {pointer}, durable {least}"
                );
            }
            // What is before the pointers now is durable.
            host.writes = (1_000..1_003)
                .map(|zone| Known {
                    zone,
                    first: 0,
                    blocks: zone_of(&host.disk, zone).1,
                    durable: true,
                })
                .collect();
        }
    }
}
