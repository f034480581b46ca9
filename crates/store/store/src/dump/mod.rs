//! Every record of the database in words, for people who look for what is wrong with it.

mod fields;
mod walk;

pub use walk::{Dump, Dumped, RecordKind};
