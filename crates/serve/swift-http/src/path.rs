//! Parses the parameters in a request's path.

use crate::failure::invalid;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use control::Failure;
use std::collections::BTreeMap;
use swift_drive::{Address, ObjectHash, Suffix};
use swift_files::FileName;

/// The parameters of a path, by name.
pub struct Named(BTreeMap<String, String>);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let named = Path::from_request_parts(parts, state).await;
        let Path(named) = named.map_err(|error: PathRejection| invalid(error.body_text()))?;
        Ok(Self(named))
    }
}

impl Named {
    fn text(&self, part: &str) -> &str {
        self.0.get(part).map_or("", String::as_str)
    }

    fn number(&self, part: &str) -> Result<u32, Failure> {
        let text = self.text(part);
        text.parse()
            .map_err(|_| invalid(format_args!("{text:?} is no number of a {part}")))
    }

    /// The index of a policy.
    pub fn policy(&self) -> Result<u32, Failure> {
        self.number("policy")
    }

    /// A partition.
    pub fn partition(&self) -> Result<u32, Failure> {
        self.number("partition")
    }

    /// A suffix.
    pub fn suffix(&self) -> Result<Suffix, Failure> {
        suffix(self.text("suffix"))
    }

    /// An object.
    pub fn address(&self) -> Result<Address, Failure> {
        Ok(Address {
            policy: self.policy()?,
            partition: self.partition()?,
            hash: hash(self.text("hash"))?,
        })
    }

    /// A file of an object.
    pub fn file(&self) -> Result<FileName, Failure> {
        self.text("file").parse().map_err(invalid)
    }

    /// Id of a held object.
    pub fn id(&self) -> &str {
        self.text("id")
    }
}

/// Parses a suffix.
pub fn suffix(text: &str) -> Result<Suffix, Failure> {
    text.parse().map_err(|()| {
        invalid(format_args!(
            "{text:?} is no suffix: it has three lower-case hexadecimal digits"
        ))
    })
}

/// Parses an object's hash.
pub fn hash(text: &str) -> Result<ObjectHash, Failure> {
    text.parse().map_err(|()| {
        invalid(format_args!(
            "{text:?} is no hash of an object: it has 32 lower-case hexadecimal digits"
        ))
    })
}
