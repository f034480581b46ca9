//! Timed models of disks and flash drives.
//!
//! A model lives in virtual time: requests carry the moment at which they come, completions the
//! moment at which they are answered, and idle time passes when the caller says so. A run is a
//! function of configuration, seed and requests. Models keep no data, only where it would lie.

mod caveat;
mod completions;
mod disk;
mod disk_profile;
mod drive;
pub mod flash;
mod host;
pub mod layer;
pub mod mechanics;
mod model;
mod noise;
mod numbers;
mod paced;
mod pending;
pub mod profile;
mod profile_error;
mod profile_text;
mod queue;
mod random;
mod request;
mod runs;
mod saved;
pub mod state;
mod state_file;
mod statistics;
mod time;
mod timed;
pub mod workload;
mod zoned_disk;
mod zones;

pub use caveat::{CaveatParameters, CaveatScriptor, CaveatShape};
pub use disk::Disk;
pub use drive::{DiskDrive, Electronics};
pub use flash::{FlashDrive, FlashProfile};
pub use host::{answers, keep_under_way};
pub use model::Model;
pub use noise::{Noise, NoiseShape};
pub use paced::{Due, LANE_DEPTH, LaneId, Paced};
pub use profile::{AnyProfile, Class, Profile, ProfileError};
pub use queue::{QUEUE_DEPTH, Queue, Served, Waiting};
pub use random::Random;
pub use request::{BLOCK_BYTES, Completion, Failure, Lba, Pba, Refusal, Request, RequestKind, Tag};
pub use state_file::{StateFile, StateFileError};
pub use statistics::ModelStatistics;
pub use time::{Span, Time, micros};
pub use timed::{Timed, TimedError};
pub use zoned_disk::{ConventionalPlace, DiskZones, ZonedDisk};
pub use zones::Zones;
