//! All that a process takes from its host: time, random numbers, threads, locks, memory, a socket's path, open and locked files.
//!
//! All code below the programs (`cli`, `serve`) takes these from here, so that the same code runs on real
//! threads, under shuttle (feature `schedules`), or in a simulation that repeats from its seed. `scripts/seam`
//! finds code that bypasses this crate.

mod clock;
mod descriptor;
mod handle;
mod hash;
mod locked_file;
mod memory;
mod random;
#[cfg(feature = "schedules")]
pub mod schedules;
mod socket;
pub mod sync;
pub mod thread;

pub use clock::{Clock, SimulatedClock, SystemClock};
pub use descriptor::descriptor;
pub use handle::Runtime;
pub use hash::{HashMap, HashSet, KeyedHash, NumberHash};
pub use locked_file::LockedFile;
pub use memory::memory_bytes;
pub use socket::SocketFile;
