//! All integration tests of `store` in one program: each test binary would link RocksDB and every crate below again.

// Tests may panic: a failed `unwrap` is a failed test.
#![allow(clippy::unwrap_used)]

mod bug_catalogue;
mod busy;
mod cleaner_pace;
mod cleaning;
mod cleaning_jobs;
mod clones;
mod cluster_turn;
mod common;
mod copies;
mod crash;
mod damage;
mod data_cache;
mod declared;
mod drain;
mod dropped;
mod dump;
mod engines;
mod erasure_overwrite;
mod fault_histories;
mod faults;
mod few_active;
mod hash_listing;
mod hashed;
mod host_space;
mod listed_names;
mod lockstep;
mod lost_zones;
mod metadata_full;
mod metadata_grows;
mod model;
mod moments;
mod mount_reads;
mod objects;
mod omap;
mod readable;
mod repair;
mod retired;
mod salvage;
mod salvage_in_place;
mod same_transaction;
mod scrub;
mod set_back;
mod simulation;
mod space;
mod stuck;
mod summaries;
mod uncopied;
mod unreset;
mod versions;
mod written_as;
mod zoned_back_ends;
