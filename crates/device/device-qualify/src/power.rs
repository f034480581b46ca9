//! Whether a drive keeps what it has flushed when its power goes.
//!
//! The test writes a sequence of commands that follows from a seed ([`Round`]), and notes each flush that the drive has
//! answered, somewhere else. When the power has gone and come back, the sequence up to the last noted flush must be
//! there; of what was sent after it, each zone may have a prefix, torn at a block (the contract that
//! `docs/lab.md` and SAFETY.md state, and that ZBC and ZNS drives give).

mod check;
mod content;
mod log;
mod round;
mod write;

pub use check::{Kept, ZoneFault, check};
pub use log::{LogError, Logged, Rounds};
pub use round::{Round, RoundError, Step, Steps};
pub use write::write;
