//! Objects without a database: what the segment summaries in data zones say is gathered, and the objects of it
//! are put into another store (docs/format/store.md, "Segment summary").
//!
//! The drive is only read. An older version of an object may be found where the newest was in no summary yet; its
//! bytes are compared with their checksums like any others.

mod copy;
mod found;
mod layers;
mod report;
mod scan;

pub use copy::SalvageOptions;
pub use report::{DamagedObject, SalvageReport};

use device::ZonedDevice;
use found::Found;
use report::Scanned;
use std::sync::Arc;

/// What the data zones of a drive say of the store on it.
pub struct Salvage {
    device: Arc<dyn ZonedDevice>,
    found: Found,
    scanned: Scanned,
}
