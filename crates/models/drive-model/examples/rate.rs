//! How many random requests a model simulates in a second of the machine's, one at a time. Drives
//! with zones are written to in order.
//!
//! `cargo run --release -p drive-model --example rate`

use drive_model::{
    FlashProfile, Lba, Model, Profile, ProfileError, Request, Time, flash, profile::names,
};
use std::time::Instant;

const REQUESTS: u64 = 2_000_000;

/// Blocks of the zone size and the zone capacity; 1 where any block can be written.
type Zones = (u64, u64);

fn disk(name: &str) -> Result<(Box<dyn Model>, Zones), ProfileError> {
    let mut drive = Profile::named(name)?.drive(1)?;
    drive.set_volatile_cache(false);
    Ok((Box::new(drive), (1, 1)))
}

fn solid_state(name: &str) -> Result<(Box<dyn Model>, Zones), ProfileError> {
    let drive = FlashProfile::named(name)?.drive()?;
    let geometry = drive.zones().map(|zones| zones.geometry());
    let zones = geometry.map_or((1, 1), |g| (g.zone_size >> 12, g.zone_capacity >> 12));
    Ok((Box::new(drive), zones))
}

fn rate(drive: &mut dyn Model, zones: Zones, count: u64, writes: bool) -> f64 {
    let (mut state, mut now) = (0x9E37_79B9_7F4A_7C15u64, Time::START);
    let began = Instant::now();
    for n in 0..count {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let random = Lba(state % drive.blocks());
        let request = match zones {
            (size, capacity) if writes && size > 1 => {
                Request::write(Lba(n / capacity * size + n % capacity), 1)
            }
            _ if writes => Request::write(random, 1),
            _ => Request::read(random, 1),
        };
        now = drive.submit(request, now).at;
    }
    count as f64 / began.elapsed().as_secs_f64()
}

fn main() -> Result<(), ProfileError> {
    println!("{:16} {:>12} {:>12}", "profile", "reads/s", "writes/s");
    let disks = names().into_iter().map(|name| (name, false));
    let others = flash::names().into_iter().map(|name| (name, true));
    for (name, is_flash) in disks.chain(others) {
        let make = if is_flash { solid_state } else { disk };
        let (mut drive, zones) = make(name)?;
        // Writes that would fill a disk's persistent cache are not what is asked for here; those that
        // flash has to clean for are.
        let writes = if is_flash {
            REQUESTS * 5
        } else {
            REQUESTS / 100
        };
        let written = rate(&mut *drive, zones, writes, true);
        // Of flash, only what was written takes a read; of disks it would be in the cache.
        if !is_flash {
            drive = make(name)?.0;
        }
        let read = rate(&mut *drive, zones, REQUESTS, false);
        println!("{name:16} {read:>12.0} {written:>12.0}");
    }
    Ok(())
}
