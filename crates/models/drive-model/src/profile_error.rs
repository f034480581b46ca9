//! Errors of profiles.

use crate::mechanics::ShapeError;
use std::fmt::Display;
use thiserror::Error;
use zone::GeometryError;

/// Why a profile cannot be used.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum ProfileError {
    /// The text is not a profile.
    #[error("not a profile: {reason}")]
    Syntax {
        /// The parser's message.
        reason: String,
    },
    /// There is no built-in profile of the name.
    #[error("there is no profile '{name}'; there are {}", known.join(", "))]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names of all built-in profiles.
        known: Vec<&'static str>,
    },
    /// A number of the disk's geometry.
    #[error("shape: {0}")]
    Shape(#[from] ShapeError),
    /// The zones are impossible.
    #[error("zones: {0}")]
    Zones(#[from] GeometryError),
    /// A number is out of its range, or does not fit the others.
    #[error("{field} is {value}: it must be {must}")]
    Number {
        /// The field, with its table.
        field: String,
        /// Its value.
        value: String,
        /// The allowed values, in words.
        must: String,
    },
    /// The capacity does not fit on the medium.
    #[error(
        "capacity_bytes is {capacity_bytes}: with {beside_bytes} bytes of cache and spare beside it, it \
         must be at most the {room_bytes} bytes that the medium has room for"
    )]
    TooSmall {
        /// Capacity for the host.
        capacity_bytes: u64,
        /// Cache and spare space.
        beside_bytes: u64,
        /// Capacity of tracks or erase blocks.
        room_bytes: u64,
    },
}

pub(crate) fn must(
    ok: bool,
    field: &'static str,
    value: impl Display,
    must: impl Display,
) -> Result<(), ProfileError> {
    if ok {
        return Ok(());
    }
    Err(ProfileError::Number {
        field: field.to_owned(),
        value: value.to_string(),
        must: must.to_string(),
    })
}
