//! How many random requests a model simulates in a second of the machine's, one at a time.
//!
//! `cargo run --release -p drive-model --example rate`

use drive_model::profile::names;
use drive_model::{Lba, Profile, Request, Time};
use std::time::Instant;

const REQUESTS: u64 = 2_000_000;

fn main() {
    println!("{:16} {:>12} {:>12}", "profile", "reads/s", "writes/s");
    for name in names() {
        let rates = [false, true].map(|writes| {
            let Some(mut drive) = Profile::named(name).ok().and_then(|p| p.drive(1).ok()) else {
                return 0.0;
            };
            drive.set_volatile_cache(false);
            let (mut state, mut now) = (0x9E37_79B9_7F4A_7C15u64, Time::START);
            // Writes that would fill the persistent cache are not what is asked for here.
            let count = if writes { REQUESTS / 100 } else { REQUESTS };
            let began = Instant::now();
            for _ in 0..count {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                let lba = Lba(state % drive.blocks());
                let request = if writes {
                    Request::write(lba, 1)
                } else {
                    Request::read(lba, 1)
                };
                now = drive.submit(request, now).at;
            }
            count as f64 / began.elapsed().as_secs_f64()
        });
        println!("{name:16} {:>12.0} {:>12.0}", rates[0], rates[1]);
    }
}
