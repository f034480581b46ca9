//! The vocabulary of zoned storage: addresses, geometry, conditions and errors. Nothing here does I/O.
//!
//! Terms follow ZBC/ZAC (INCITS 536 / 549) and the NVMe Zoned Namespace Command Set. All other crates use these
//! types, so that no bare `u64` address crosses an interface.

mod address;
mod bytes;
mod condition;
mod error;
mod geometry;
pub mod shell;

pub use address::{ByteOffset, ZoneAddress, ZoneId};
pub use bytes::{Bytes, SizeError, count};
pub use condition::{ZoneCommand, ZoneCondition, ZoneDescriptor};
pub use error::{ZoneError, ZoneResult, is_full};
pub use geometry::{Geometry, GeometryError, ZoneKind};
