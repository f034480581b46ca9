//! A cluster in virtual time: proxies, nodes with a network, drives that take as long as the models of
//! drives do, and cleaners that decide as those of the store do (`zone-alloc`).
//!
//! Objects have no names. The partition of an object determines its drives; its place on a drive is drawn from the
//! live places there. The simulated loads treat all objects alike, so a table of all objects would give the same.

mod calibration;
mod cleaner;
mod coordinator;
mod disk;
mod drive;
mod events;
mod fleet;
mod groups;
mod job;
mod latencies;
mod link;
mod model_disk;
mod network;
mod rebuild;
mod report;
mod request;
mod ring;
mod run;
mod scenario;
mod served_disk;
mod service;
mod shifts;
mod simulation;
mod slots;
mod space;
mod translation;
mod turns;
mod zone_slots;

pub use calibration::{Sizes, Times, calibrate};
pub use cleaner::piece_bytes;
pub use fleet::Fleet;
pub use groups::Groups;
pub use latencies::{Latencies, Percentiles};
pub use model_disk::BackEnd;
pub use report::{Cleaned, Rebuilt, Report};
pub use scenario::{
    Coordination, Disks, Impossible, Layout, Load, Lost, Redundancy, Scenario, Until,
};
pub use served_disk::Calibrated;
pub use service::Service;
pub use simulation::Simulation;
pub use translation::Translation;
pub use turns::{AtOnce, Ending, Rules, Table, Told, Turn, decide};
