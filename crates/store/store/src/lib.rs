//! Objects on a zoned drive: transactional, checksummed, with a cleaner under the user's control.
//!
//! Data goes to zones through streams; metadata is in RocksDB on BlueFS on the same drive. A put passes
//! [`Store::writer`] → `extent_writer` → `stream` → the drive, then [`Store::commit`] → `staging` → the key-value
//! store's log, which one flush makes durable together with the data. The formats are in `docs/format/store.md`.

/// The target of the spans that show what a request waits for. Without a subscriber they cost nothing.
pub(crate) const TRACE: &str = "trace";

mod answers;
mod blob_reader;
mod checksum;
mod cleaner;
mod cleaner_controls;
mod cleaner_status;
mod cleaning;
mod cleaning_job;
mod clone_operations;
mod cluster_turn;
mod collection_operations;
mod commit;
mod compression;
mod copied_rows;
mod copied_until;
mod data_cache;
mod database;
mod dump;
mod error;
mod extent_reader;
mod extent_writer;
mod format;
mod found;
mod freelist;
mod fsck;
mod gains;
mod grade;
mod hash_prefix;
mod health;
mod health_look;
mod holds;
mod host_space;
mod info;
mod inner;
mod known_damage;
mod lifetimes;
mod limits;
mod logged;
mod losses;
mod met;
mod metadata_damage;
mod mkfs;
mod moment;
mod moment_watch;
mod mount;
mod moving;
mod name;
mod numbers;
mod object_list;
mod object_path;
mod object_state;
mod omap;
mod omap_operations;
mod omap_reader;
mod open_maps;
mod opened;
mod operations;
mod options;
mod owners;
mod past_damage;
mod pending;
mod pieces;
mod recent;
mod recovery;
mod repair;
mod requests;
mod reservation;
mod retired;
mod revision;
mod rows;
mod salvage;
mod scrub;
mod scrub_controls;
mod scrubber;
mod space;
mod staging;
mod step;
mod store;
mod stream;
mod streams;
mod stripes;
mod summaries;
mod summary_writer;
#[cfg(test)]
mod test_drive;
mod transaction;
mod uncopied;
mod unreset;
mod unsynced;
mod watchdog;
mod words;
mod written;
mod zone_failures;
mod zones_at_mount;

pub use cleaner::CleanerChange;
pub use cleaner_status::{CleanerStatus, Reason, ZoneInHand};
pub use cleaning_job::{CleaningJob, CleaningReport, CleaningStep, CleaningWork};
pub use cluster_turn::{ClusterTurn, MAX_SECONDS as MAX_CLUSTER_TURN_SECONDS, TooLong};
pub use compression::{Compression, CompressionMode};
pub use database::LISTED_NAME;
pub use dump::{Dump, Dumped, RecordKind};
pub use error::{Error, Result};
pub use extent_reader::{ObjectAt, ObjectReader, Taken};
pub use extent_writer::ObjectWriter;
pub use format::FORMAT_VERSION;
pub use fsck::FsckReport;
pub use grade::{Grade, Wear};
pub use hash_prefix::{HashPrefix, HashSource, Hashed};
pub use health::{Health, MetadataZone, Waiting, ZoneAtRisk};
pub use health_look::HealthLook;
pub use info::{Caches, CollectionInfo, ObjectInfo, Statfs, ZoneUse};
pub use losses::Loss;
pub use mkfs::{Made, OneCopy};
pub use moment::Moment;
pub use moment_watch::MomentWatch;
pub use name::Name;
pub use object::{ChecksumBlock, ChecksumKind, Codec};
pub use object_list::Listed;
pub use object_path::ObjectPath;
pub use options::{DataOptions, MkfsOptions, MountOptions, WriteHints};
pub use pending::Pending;
pub use repair::{GivenUp, RepairReport, RepairStep};
pub use salvage::{
    DamagedObject, InPlaceOptions, Lost, Plan, Salvage, SalvageOptions, SalvageReport, Unplaced,
};
pub use scrubber::{ScrubPlan, ScrubStatus};
pub use step::{Attributes, Condition, Omap};
pub use store::Store;
pub use transaction::Transaction;
pub use written::Written;
pub use zone_alloc::{FreeZones, Hours, Pace, Watermarks};
pub use zone_failures::SetAside;

/// Every decoder of the store's records, for the fuzz target.
#[doc(hidden)]
pub fn fuzz(bytes: &[u8]) {
    format::fuzz(bytes);
}
