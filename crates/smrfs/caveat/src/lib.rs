//! Caveat-Scriptor (thesis of 2014 at Carnegie Mellon, chapters 3 to 5): a shingled drive that takes writes anywhere and
//! says how far they damage what lies behind them, as a model and with bytes; five allocators that keep live blocks out of
//! that range; and, as a simulation, how much more drive than data they need when they age.

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

/// Every decoder of an emulated drive, for the fuzz target: its header, and a piece of the bitmap.
#[doc(hidden)]
pub fn fuzz(bytes: &[u8]) {
    let _ = format::Header::decode(bytes);
    let _ = format::decode_piece(bytes, &mut Bits::new(1000, true), 0);
}
