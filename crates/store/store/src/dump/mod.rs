//! Decodes every record of the database into words, for people who investigate damage.

mod fields;
mod walk;

pub use walk::{Dump, Dumped, RecordKind};
