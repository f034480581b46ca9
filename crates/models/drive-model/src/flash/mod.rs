//! Flash memory: dies, channels, a write buffer, and above them either page-mapped translation or
//! zones.

mod array;
mod buffer;
mod controller;
mod drive;
mod page_mapped;
mod profile;
mod server;
mod zoned;

pub use array::{Array, Counts, FlashShape, Wear};
pub use controller::ControllerShape;
pub use drive::{FlashDrive, Management};
pub use page_mapped::PageMapped;
pub(crate) use profile::text;
pub use profile::{FlashProfile, ManagementShape, names};
pub use zoned::{Zoned, ZonesShape};
