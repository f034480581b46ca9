//! Experiments: what papers and data sheets printed, measured again on models of the same drives.
//!
//! An experiment keeps the expected numbers and their tolerances apart from the measurement; a table compares them.
//! Runs with the same seed and scale give the same table.

mod block_interface_tax;
mod cache_place;
mod caveat_tables;
mod cleaning_policies;
mod cleaning_time;
mod cliff;
mod cluster;
mod drive_type;
mod expected;
mod experiment;
mod ext4_lazy;
mod ext4_postmark;
pub mod file_loads;
mod filled_store;
mod guest_replay;
mod guest_trace;
mod host;
mod kernel_files;
mod leveldb_trace;
mod lsm;
mod object_creation;
mod persistent_cache;
mod registry;
mod reliability;
mod skylight_tables;
mod smrfs_bed;
mod smrfs_cleaning;
mod smrfs_figures;
mod smrfs_load;
mod store_capacity;
mod store_cleaning;
mod store_latency;
mod table;
mod translation_layers;
mod zea;
mod zea_leveldb;
mod zn540;
mod zone_structure;

pub use expected::{Expected, Origin, Tolerance};
pub use experiment::{Experiment, Outcome, Run, Scale, Stopped};
pub use registry::{ALL, Listed, Unknown, chosen, find, listed};
pub use table::{Row, Table};
