//! The zone table: the stage of each zone, and the steps between stages, in one place.
//!
//! ```text
//! pool ⇄ Metadata (superblocks, journal, spare zone)
//! pool → Ready → Open → Holding → Freed → Resetting → Ready → Leaving → pool
//!                                         Resetting ⇄ Unreset
//! ```
//! A zone is in exactly one stage, so no two parts of the file system can use it at once. A step that its stage does
//! not allow changes nothing and returns an error with zone and stage. `set` is the only function that changes a stage;
//! it also updates the counts and the index of zones that wait for a step. A further index tells which files lie in a
//! zone.

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
