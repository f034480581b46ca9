//! Measures the overhead of ZEA over the plain drive, in the time of the drive's clock: figure 2 of the paper.
//!
//! The caller provides drives and clock ([`Bed`]), so the same loops run on drive models in virtual time and on
//! real drives.

mod bed;
mod filling;
mod start_up;
mod transfers;

pub use bed::{Bed, Error};
pub use start_up::{StartUp, start_ups};
pub use transfers::{Transfer, Work, transfers};
