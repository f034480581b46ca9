//! Caveat-Scriptor (thesis of 2014 at Carnegie Mellon, chapters 3 to 5): a shingled drive that takes writes anywhere
//! and publishes how many of the blocks after a write it may damage. This crate has the drive as a model and with
//! data, five allocators that keep live blocks out of that range, and a simulation of how much larger than its data a
//! drive has to be when the allocators age.

mod aging;
mod bits;
mod device;
mod drive;
mod format;
mod free_list;
mod volume;

pub use aging::{Aged, Aging, Sizes, SizesError, Step, Workload};
pub use bits::Bits;
pub use device::{CaveatDevice, CaveatDeviceError, CaveatShape, is_there};
pub use drive::{CaveatDrive, CaveatError, Parameters};
pub use format::VERSION;
pub use free_list::{Fit, FreeList};
pub use volume::{Run, Volume};

/// Runs every decoder of an emulated drive, for the fuzz target: its header, and a piece of the bitmap.
#[doc(hidden)]
pub fn fuzz(bytes: &[u8]) {
    let _ = format::Header::decode(bytes);
    let _ = format::decode_piece(bytes, &mut Bits::new(1000, true), 0);
}
