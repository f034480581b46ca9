//! The page-mapped flash drive against the closed forms of cleaning (yardsticks), and its manners.

mod cleaning;
mod latencies;

use drive_model::flash::ManagementShape;
use drive_model::{
    Failure, FlashDrive, FlashProfile, Lba, Model, Random, Request, RequestKind, Time,
};

/// A drive of one die with erase blocks of `per_block` blocks, of which some are kept free.
fn drive(superblocks: u32, per_block: u32, utilisation: f64) -> FlashDrive {
    const KEPT_FREE: u32 = 2;
    let mut profile = FlashProfile::named("ssd-15gb").unwrap();
    let flash = &mut profile.flash;
    (flash.channels, flash.dies_per_channel, flash.planes) = (1, 1, 1);
    (flash.page_bytes, flash.pages_per_program) = (4096, 1);
    flash.programs_per_block = per_block;
    let usable = f64::from((superblocks - KEPT_FREE) * per_block);
    profile.management = ManagementShape::PageMapped {
        capacity_bytes: (usable * utilisation) as u64 * 4096,
        superblocks,
    };
    profile.drive().unwrap()
}
