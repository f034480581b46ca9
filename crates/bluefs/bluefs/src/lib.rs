//! BlueFS: a file system for LSM trees on a zoned drive (main document § 5.4; CMU-PDL-19-102).
//!
//! Two rings of superblocks, at the two ends of the drive, point to a journal, which holds all metadata and is
//! replayed at mount; where it is wanted, journal and files are in two copies (`mirror`). Logs are self-describing records in zones of their own; SSTs lie in
//! whole zones or share zones with files of the same expected lifetime. Formats:
//! `docs/format/bluefs.md`.

mod alone;
mod begin;
mod cache;
mod check;
mod chunk;
mod cleaner;
mod combine;
mod commit;
mod compact;
mod contents;
mod durable;
mod epochs;
mod error;
mod evacuate;
mod failing;
mod flusher;
pub mod format;
mod forward;
mod frames_behind;
mod fs;
mod handle;
mod info;
mod journal;
mod left_behind;
mod level;
mod look;
mod loss;
mod marks;
mod metadata_copies;
mod mirror;
mod mkfs;
mod mount;
mod move_log;
mod moved_piece;
mod namespace;
mod node;
mod observe;
mod open_zones;
mod options;
mod paths;
mod read_drive;
mod read_later;
mod read_through;
mod read_together;
mod readahead;
mod readahead_window;
mod reader;
mod ready;
mod reclaim;
mod repair;
mod replay;
mod ring;
mod salvage;
mod scan;
#[cfg(all(test, feature = "schedules"))]
mod schedules;
mod scratch;
mod shared;
mod shared_writer;
mod slot;
mod snapshot;
mod stale;
mod state;
mod statistics;
mod supply;
mod tenants;
mod truncate;
pub mod unsynced;
mod wake;
mod witness;
mod writer;
mod zone_failures;
mod zone_table;

pub use check::CheckReport;
pub use contents::Contents;
pub use error::{Error, Result};
pub use failing::DamagedFile;
pub use format::FORMAT_VERSION;
pub use format::superblock::{Role, Superblock as SuperblockInfo};
pub use fs::BlueFs;
pub use info::{FileExtent, Metadata, Usage, ZonePurpose};
pub use loss::Loss;
pub use observe::{Observation, ObservedZone, ZoneContent};
pub use options::{Cleaning, FormatOptions, Lifetime, MountOptions};
pub use read_later::PendingRead;
pub use reader::Reader;
pub use repair::Scrubbed;
pub use shared_writer::SharedWriter;
pub use statistics::FsStatistics;
pub use tenants::{LEAST_ZONES, SEQUENTIAL_ZONES, zones_for};
pub use writer::Writer;
