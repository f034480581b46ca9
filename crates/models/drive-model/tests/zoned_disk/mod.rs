//! Host-managed and host-aware disks.

mod host_aware;
mod host_managed;
mod power_cuts;
mod preferred_power_cuts;

use drive_model::{Failure, Lba, Model, Profile, Refusal, Request, RequestKind, Time, ZonedDisk};
use zone::{ZoneCondition, ZoneId};

const ZONE: u64 = 256 << 8;

fn disk(name: &str) -> ZonedDisk {
    let mut disk = Profile::named(name).unwrap().zoned(1).unwrap();
    disk.set_volatile_cache(false);
    disk
}

fn start(zone: u64) -> Lba {
    Lba(zone * ZONE)
}

/// Requests with `depth` of them under way: MiB a second.
fn rate(
    depth: usize,
    disk: &mut ZonedDisk,
    begin: Time,
    requests: impl Iterator<Item = Request>,
) -> (f64, Time) {
    let mut requests = requests.peekable();
    let mut blocks = 0;
    let mut enqueue = |disk: &mut ZonedDisk, now| {
        if let Some(request) = requests.next() {
            blocks += u64::from(request.blocks);
            disk.enqueue(request, now);
        }
    };
    (0..depth).for_each(|_| enqueue(disk, begin));
    let mut end = begin;
    while let Some(done) = disk.next_completion() {
        assert_eq!(done.result, Ok(()));
        end = done.at;
        enqueue(disk, end);
    }
    (blocks as f64 / 256.0 / end.since(begin).seconds(), end)
}

fn pieces(from: Lba, zones: u64) -> impl Iterator<Item = (Lba, u32)> {
    (0..zones * ZONE / 256).map(move |n| (from.plus(n * 256), 256))
}
