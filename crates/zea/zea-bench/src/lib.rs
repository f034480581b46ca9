//! What ZEA costs beside the plain drive, in the time that the drive's clock shows: figure 2 of the paper.
//!
//! Drives and clock come from outside ([`Bed`]), so the same loops run on models in virtual time and on drives of
//! the host.

mod bed;
mod filling;
mod start_up;
mod transfers;

pub use bed::{Bed, Error};
pub use start_up::{StartUp, start_ups};
pub use transfers::{Transfer, Work, transfers};
