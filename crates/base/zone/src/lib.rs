//! The words of zoned storage, and nothing that does I/O.
//!
//! Terms follow ZBC/ZAC (INCITS 536 / 549) and the NVMe Zoned Namespace Command Set. Every other
//! crate speaks of zones with these types, so that a bare `u64` never has to be guessed at.

mod address;
mod bytes;
mod condition;
mod error;
mod geometry;

pub use address::{ByteOffset, ZoneAddress, ZoneId};
pub use bytes::{Bytes, SizeError, count};
pub use condition::{ZoneCommand, ZoneCondition, ZoneDescriptor};
pub use error::{ZoneError, ZoneResult};
pub use geometry::{Geometry, GeometryError, ZoneKind};
