//! Why a profile is none.

use crate::mechanics::ShapeError;
use std::fmt::Display;
use thiserror::Error;
use zone::GeometryError;

/// Why a profile is none.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum ProfileError {
    /// The text is not one.
    #[error("not a profile: {reason}")]
    Syntax {
        /// What the parser says.
        reason: String,
    },
    /// No built-in profile of the name.
    #[error("there is no profile '{name}'; there are {}", known.join(", "))]
    Unknown {
        /// The name asked for.
        name: String,
        /// Those that there are.
        known: Vec<&'static str>,
    },
    /// A number of the mechanics.
    #[error("shape: {0}")]
    Shape(#[from] ShapeError),
    /// Zones that cannot be.
    #[error("zones: {0}")]
    Zones(#[from] GeometryError),
    /// A number out of its range, or that does not go with the others.
    #[error("{field} is {value}: it must be {must}")]
    Number {
        /// The field, behind its table.
        field: String,
        /// What it was.
        value: String,
        /// What it may be.
        must: String,
    },
    /// It does not fit on its medium.
    #[error(
        "capacity_bytes is {capacity_bytes}: with {beside_bytes} bytes of cache and spare beside it, it \
         must be at most the {room_bytes} bytes that the medium has room for"
    )]
    TooSmall {
        /// What the host would see.
        capacity_bytes: u64,
        /// Cache and spare.
        beside_bytes: u64,
        /// What tracks or erase blocks give.
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
