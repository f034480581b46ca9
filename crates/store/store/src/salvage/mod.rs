//! Restores objects without a database: the segment summaries in data zones are gathered, and the objects that they
//! describe are put into another store (docs/format/store.md, "Segment summary").
//!
//! With another store, the drive is only read. In place, the rows are written to a new database on the drive itself,
//! and point to where the data is (`in_place`). An older version of an object may be found if the newest was in no
//! summary yet; its bytes are verified like any others.

mod copy;
mod found;
mod in_place;
mod index;
mod layers;
mod lost;
mod parts;
mod plan;
mod planning;
mod rehearsal;
mod report;
mod scan;
#[cfg(test)]
mod tests;
mod unplaced;

pub use copy::SalvageOptions;
pub use lost::Lost;
pub use plan::{InPlaceOptions, Plan, Unplaced};
pub use report::{DamagedObject, SalvageReport};

use crate::format::summary::Summary;
use device::ZonedDevice;
use found::Found;
use report::Scanned;
use std::sync::Arc;
use zone::ZoneAddress;

/// The highest number of a map, omap, blob or summary, and of a collection, that a summary has.
pub(crate) fn highest_in(summary: Summary) -> (u64, u32) {
    let mut found = Found::default();
    found.add(summary);
    found.highest()
}

/// The rows that segment summaries on a drive have of the store on it.
pub struct Salvage {
    device: Arc<dyn ZonedDevice>,
    found: Found,
    scanned: Scanned,
    /// Places of this store's summaries, and their bytes without padding.
    summaries: Vec<(ZoneAddress, u32)>,
}
