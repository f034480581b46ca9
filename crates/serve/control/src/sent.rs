//! Request bodies in JSON.

use crate::api::Kind;
use crate::failure::Failure;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Extracts a request's body from JSON, as [`parse`] does.
pub struct Sent<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Sent<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        let body = Bytes::from_request(request, state).await;
        let body =
            body.map_err(|error| Failure::new(error.status(), Kind::Invalid, error.body_text()))?;
        parse(&body).map(Self)
    }
}

/// Parses an object or a word; an empty body counts as an empty object. A list is refused, for a derived type would
/// take it as its fields in their order.
///
/// # Errors
/// The body is no such JSON.
pub fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failure> {
    let invalid =
        |why: &dyn ToString| Failure::new(StatusCode::BAD_REQUEST, Kind::Invalid, why.to_string());
    let body = if body.is_empty() { b"{}" } else { body };
    let value: Value = serde_json::from_slice(body).map_err(|error| invalid(&error))?;
    if value.is_array() {
        return Err(invalid(
            &"the body is a list, and not an object of named fields",
        ));
    }
    T::deserialize(value).map_err(|error| invalid(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Order, Scrub};
    use store::CleanerChange;

    #[test]
    fn lists_are_no_objects() {
        assert!(parse::<CleanerChange>(b"").is_ok());
        assert!(parse::<CleanerChange>(br#"{"pace": null}"#).is_ok());
        assert!(parse::<Scrub>(br#""stop""#).is_ok());
        for bad in ["[null, null]", "[]", "{", "null", "7"] {
            assert!(parse::<CleanerChange>(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(parse::<Order>(b"").is_err());
    }
}
