//! What the rule book of zoned drives refuses, as the end of a request.

use crate::request::{Failure, Refusal};
use zone::ZoneError;

/// The failure that says what a rule book's error does.
pub(crate) fn refused(error: ZoneError) -> Failure {
    let refusal = match error {
        ZoneError::OutOfRange { .. } => return Failure::OutOfRange,
        ZoneError::ZoneBoundary { .. } => Refusal::ZoneBoundary,
        ZoneError::NotAtWritePointer { .. } => Refusal::NotAtWritePointer,
        ZoneError::ZoneFull { .. } => Refusal::ZoneFull,
        ZoneError::TooManyOpenZones { .. } => Refusal::TooManyOpenZones,
        ZoneError::TooManyActiveZones { .. } => Refusal::TooManyActiveZones,
        ZoneError::InvalidTransition { .. } => Refusal::InvalidTransition,
        _ => Refusal::InvalidField,
    };
    Failure::Refused(refusal)
}
