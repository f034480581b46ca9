//! Versions of objects: what a bucket keeps, and how a change of an object keeps it.
//!
//! The current version lies in the bucket under its key, whether or not the bucket keeps versions, so that requests
//! for no other version find it at once. Earlier versions and delete markers lie in a collection beside the bucket,
//! `.versions/BUCKET`. A version that becomes an earlier one, or the current one again, is renamed: no data moves, in
//! the same transaction as the change that causes it. A key without a current version has a delete marker as the
//! newest of the others.

mod change;
mod earlier;
mod found;
mod locks;
mod version;
mod versioning;

pub use change::{Change, Deleted, ReplaceError};
pub use earlier::Earlier;
pub use found::{Found, open, place, stat};
pub use locks::Locks;
pub use version::{
    END, NULL, Version, escape, escape_bytes, is_marker, name_of, parse_name, stem, unescape,
};
pub use versioning::Versioning;

#[cfg(test)]
mod tests;
