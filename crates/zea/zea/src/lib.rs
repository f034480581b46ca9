//! ZEA, the zone-based extent allocator (Manzanares et al., "ZEA, A Data Management Approach for SMR").
//!
//! One [`Instance`] is one zone. [`Instance::put`] appends an extent and after it a block of metadata: its
//! logical address, its length, its checksum, and pointers to the metadata of the extents before.
//! [`Instance::get`] reads exactly one extent. [`Backward`] and [`Forward`] find all extents and the order of
//! their puts. No other state is kept: the consumer decides which extents are dead and when a zone is reset,
//! with the help of [`garbage`].

mod backward;
mod check;
mod error;
mod extent_at;
pub mod format;
mod forward;
pub mod garbage;
mod instance;
mod placed;
mod reading;
mod sequence;
mod sharing;
mod tail;

pub use backward::Backward;
pub use check::{Checked, Gap, check};
pub use error::{Error, Result};
pub use extent_at::extent_at;
pub use forward::Forward;
pub use instance::{Instance, Options};
pub use placed::{LogicalAddress, Placed};
pub use reading::is_there;
pub use sequence::Sequence;
pub use sharing::Sharing;
