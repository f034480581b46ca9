//! Encoding of a model's state, and the errors of reading it.

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// Version of the encoding, the only one that can be read. It changes with every change of a model's fields.
pub const VERSION: u32 = 5;

/// Why bytes are not the state of a profile's drive.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum StateError {
    /// The bytes do not begin like a state.
    #[error("not the state of a model")]
    NotAState,
    /// The state has another version.
    #[error("the state of a model in version {found}; this program knows version {VERSION}")]
    UnsupportedVersion {
        /// Version of the state.
        found: u32,
    },
    /// The state belongs to a drive of another profile.
    #[error("the state of another profile's drive")]
    OtherProfile,
    /// The state fails its checksum or cannot be decoded.
    #[error("the state of a model, damaged: its {what} is not as it was written")]
    Damaged {
        /// The part that is damaged.
        what: &'static str,
    },
    /// The state of this model cannot be saved.
    #[error("this model's state cannot be saved")]
    NoState,
}

/// Encodes a model as payload.
pub(crate) fn encode(model: &impl Serialize) -> Option<Vec<u8>> {
    postcard::to_allocvec(model).ok()
}

/// Decodes a model from its payload.
pub(crate) fn decode<M: DeserializeOwned>(payload: &[u8]) -> Result<M, StateError> {
    let damaged = StateError::Damaged { what: "content" };
    match postcard::take_from_bytes(payload) {
        Ok((model, [])) => Ok(model),
        _ => Err(damaged),
    }
}
