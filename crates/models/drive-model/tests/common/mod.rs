//! What several tests of drives need.
#![allow(dead_code, clippy::unwrap_used)]

use drive_model::{Completion, DiskDrive, Lba, Profile, Random, Request, Time};

/// A disk as the main document measured it unless it says otherwise (section 2.4.2).
pub fn drive(name: &str) -> DiskDrive {
    let mut drive = Profile::named(name).unwrap().drive(1).unwrap();
    drive.set_volatile_cache(false);
    drive.set_look_ahead(false);
    drive
}

pub fn end(completions: &[Completion]) -> Time {
    completions.iter().map(|c| c.at).max().unwrap()
}

/// Random single-block writes across the drive.
pub fn random_writes(random: &mut Random, blocks: u64, count: u64) -> Vec<Request> {
    (0..count)
        .map(|_| Request::write(Lba(random.below(blocks)), 1))
        .collect()
}
