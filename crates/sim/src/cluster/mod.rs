//! A cluster in virtual time: proxies, nodes with a network, drives that take as long as the models of
//! drives do, and cleaners that decide as those of the store do (`zone-alloc`).
//!
//! Objects have no names. Which drives have the replicas of one follows from its partition; where it lies on
//! a drive is any live place there. Under a load that treats all objects alike, which is the only one that is
//! simulated, that is what a table of all objects would give.

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
