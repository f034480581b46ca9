//! Objects without a database: what the segment summaries in data zones say is gathered, and the objects of it
//! are put into another store (docs/format/store.md, "Segment summary").
//!
//! Into another store, the drive is only read; in place, the rows are written to a new database on the drive itself, and
//! point to where the data is (`in_place`). An older version of an object may be found where the newest was in no summary yet; its
//! bytes are compared with their checksums like any others.

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
mod unplaced;

pub use copy::SalvageOptions;
pub use lost::Lost;
pub use plan::{InPlaceOptions, Plan, Unplaced};
pub use report::{DamagedObject, SalvageReport};

use device::ZonedDevice;
use found::Found;
use report::Scanned;
use std::sync::Arc;
use zone::ZoneAddress;

/// What the data zones of a drive say of the store on it.
pub struct Salvage {
    device: Arc<dyn ZonedDevice>,
    found: Found,
    scanned: Scanned,
    /// Where the summaries are that count, and their bytes.
    summaries: Vec<(ZoneAddress, u32)>,
}
