//! Tests whether a drive keeps flushed data over a loss of power.
//!
//! The test writes a sequence of commands that is derived from a seed ([`Round`]), and logs the number of each
//! completed flush outside the drive. When the power is back, everything up to the last logged flush must be there;
//! of later commands, each zone may have a prefix, torn at a block (the contract that `docs/lab.md` and SAFETY.md
//! state, and that ZBC and ZNS drives give).

mod check;
mod content;
mod log;
mod round;
mod write;

pub use check::{Kept, ZoneFault, check};
pub use log::{LogError, Logged, Rounds};
pub use round::{Round, RoundError, Step, Steps};
pub use write::write;
