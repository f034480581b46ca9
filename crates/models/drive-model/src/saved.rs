//! A model's state as bytes, and why bytes are none.

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// The version that is written, and the only one that is read. It changes with every change of what
/// a model consists of.
pub const VERSION: u32 = 4;

/// Why bytes are no state of a profile's drive.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum StateError {
    /// They begin with something else.
    #[error("not the state of a model")]
    NotAState,
    /// Another program wrote them.
    #[error("the state of a model in version {found}; this program knows version {VERSION}")]
    UnsupportedVersion {
        /// Theirs.
        found: u32,
    },
    /// They are the state of a drive of other numbers.
    #[error("the state of another profile's drive")]
    OtherProfile,
    /// They are not as they were written.
    #[error("the state of a model, damaged: its {what} is not as it was written")]
    Damaged {
        /// What shows it.
        what: &'static str,
    },
    /// The model has none that could be saved.
    #[error("this model's state cannot be saved")]
    NoState,
}

/// The payload of a model.
pub(crate) fn encode(model: &impl Serialize) -> Option<Vec<u8>> {
    postcard::to_allocvec(model).ok()
}

/// A model out of its payload.
pub(crate) fn decode<M: DeserializeOwned>(payload: &[u8]) -> Result<M, StateError> {
    let damaged = StateError::Damaged { what: "content" };
    match postcard::take_from_bytes(payload) {
        Ok((model, [])) => Ok(model),
        _ => Err(damaged),
    }
}
