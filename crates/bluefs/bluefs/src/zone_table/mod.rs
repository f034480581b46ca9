//! The life of each zone, in one place: what a zone is to the file system, and the steps between.
//!
//! ```text
//! pool ⇄ Metadata (superblocks, journal, spare zone)
//! pool → Ready → Open → Holding → Freed → Resetting → Ready → Leaving → pool
//!                                         Resetting ⇄ Unreset
//! ```
//! A zone is in one stage, so no two parts of the file system can have it at once. A step that its
//! stage does not allow changes nothing and is an error with zone and stage. `set` is the only place
//! that changes a stage; it keeps the counts and the index of zones that wait for something. Which files lie
//! in a zone is an index too.

mod data;
mod empty;
mod files;
mod stage;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use empty::SetAside;
pub(crate) use stage::{Content, Opened, Stage};
pub(crate) use table::ZoneTable;
