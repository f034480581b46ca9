//! Caveat-Scriptor (thesis of 2014 at Carnegie Mellon, chapters 3 to 5): a shingled drive that takes writes anywhere and
//! says how far they damage what lies behind them, five allocators that keep live blocks out of that range, and how much
//! more drive than data they need when they age. Simulations: blocks have no bytes.

mod aging;
mod drive;
mod free_list;
mod volume;

pub use aging::{Aged, Aging, Sizes, SizesError, Step, Workload};
pub use drive::{CaveatDrive, CaveatError, Parameters};
pub use free_list::{Fit, FreeList};
pub use volume::{Run, Volume};
