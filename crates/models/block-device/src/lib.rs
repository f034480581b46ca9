//! Block devices: requests with their data, when they are done, and what they damage.
//!
//! [`BlockDevice`] is the trait. [`Simulated`] is a model in virtual time and [`Lane`] one at wall-clock pace, each
//! with [`Data`] in memory, in a [`SparseFile`] or nowhere; [`host::HostDevice`] is a device or file of the host.
//! Zoned drives have a trait of their own (`device::ZonedDevice`).

pub mod block_device;
mod data;
pub mod host;
mod paced;
mod simulated;
mod sparse_file;

pub use block_device::{BlockDevice, DeviceError, Done, Payload};
pub use data::{Data, Memory, NoData};
pub use paced::{Lane, PacedDevice};
pub use simulated::Simulated;
pub use sparse_file::{DataError, SparseFile};
