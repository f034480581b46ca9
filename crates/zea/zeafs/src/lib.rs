//! ZEAFS: files on ZEA extents, with a flat name space (Manzanares et al., "ZEA, A Data Management Approach for SMR",
//! section 5).
//!
//! Names and the map from files to extents are a log of frames after a checkpoint, in a conventional zone, or
//! in two sequential ones if there is none (`format`). A commit writes the changes since the last one as a
//! frame after the extents that it names, and flushes both. A mount leaves out a last frame whose extents a
//! power cut has lost. So a crash leaves the file system as of a commit: all that was synced, and everything
//! before it.

mod area;
mod arrived;
mod clean;
mod commit;
mod directories;
mod error;
mod examine;
mod file_map;
pub mod format;
mod fs;
mod head;
mod host_room;
mod inner;
mod mount;
mod newest;
mod reader;
mod replayed;
mod shared;
mod space;
mod streams;
mod writer;

pub use directories::{Directories, Entry, is_taken_for_whole};
pub use error::{Error, Result};
pub use examine::{Examined, ExaminedFile};
pub use fs::{Metadata, Usage, ZeaFs};
pub use reader::Reader;
pub use streams::Lifetime;
pub use writer::{WRITE_BUFFER, Writer};
