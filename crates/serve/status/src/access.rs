//! Access to the status page: who may read it, and which keys are known.

use http::{HeaderMap, header};
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use std::sync::Arc;

/// Who may read the status page, its documents and the metrics. Changes always need the keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Access {
    /// There is no status page.
    Off,
    /// All clients that reach the address.
    Open,
    /// Clients with the keys of an administrator.
    #[default]
    Keys,
}

impl FromStr for Access {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "off" => Ok(Self::Off),
            "open" => Ok(Self::Open),
            "keys" => Ok(Self::Keys),
            _ => Err("write off, open or keys"),
        }
    }
}

/// Result of a check of an access key and a secret.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Known {
    /// The key does not exist, or the secret is wrong.
    Stranger,
    /// The key exists, but has no right to the status page.
    Limited,
    /// The key has all rights.
    Admin,
}

type Check = dyn Fn(&str, &str) -> Known + Send + Sync;

/// Checks access keys and secrets.
#[derive(Clone)]
pub struct Keys(Arc<Check>);

impl Keys {
    /// `check` gets an access key and a secret, and has to take the same time for all.
    pub fn new(check: impl Fn(&str, &str) -> Known + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    /// Knows a single key, with all rights.
    pub fn pair(access_key: &str, secret_key: &str) -> Self {
        let (access_key, secret_key) = (access_key.to_owned(), secret_key.to_owned());
        Self::new(move |access, secret| {
            use subtle::ConstantTimeEq;
            let right = access_key.as_bytes().ct_eq(access.as_bytes())
                & secret_key.as_bytes().ct_eq(secret.as_bytes());
            match bool::from(right) {
                true => Known::Admin,
                false => Known::Stranger,
            }
        })
    }

    /// The access key in the headers (HTTP Basic) and the result of its check; `None` without such a header.
    pub(crate) fn judge(&self, headers: &HeaderMap) -> Option<(String, Known)> {
        let given = headers.get(header::AUTHORIZATION)?.to_str().ok();
        let pair = given.and_then(|given| {
            let (scheme, encoded) = given.split_once(' ')?;
            let encoded = scheme.eq_ignore_ascii_case("basic").then_some(encoded)?;
            let decoded = base64_simd::STANDARD.decode_to_vec(encoded.trim()).ok()?;
            String::from_utf8(decoded).ok()
        });
        let pair = pair.as_deref().and_then(|pair| pair.split_once(':'));
        let (access, secret) = pair.unwrap_or_default();
        Some((access.to_owned(), (self.0)(access, secret)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn judged(value: &str) -> Option<Known> {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", HeaderValue::from_str(value).unwrap());
        let judged = Keys::pair("access", "se:cret").judge(&headers);
        judged.map(|(_, known)| known)
    }

    #[test]
    fn only_the_keys_will_do() {
        let basic = |pair: &str| format!("Basic {}", base64_simd::STANDARD.encode_to_string(pair));
        assert_eq!(judged(&basic("access:se:cret")), Some(Known::Admin));
        assert_eq!(
            judged(&basic("access:se:cret").replace("Basic", "basic")),
            Some(Known::Admin)
        );
        for wrong in ["access:se:cre", "acces:se:cret", "access", ":", "\u{0}"] {
            assert_eq!(judged(&basic(wrong)), Some(Known::Stranger), "{wrong}");
        }
        for other in [
            "",
            "Basic",
            "Basic =",
            "AWS4-HMAC-SHA256 Credential=access",
            "Basic /w==",
        ] {
            assert_eq!(judged(other), Some(Known::Stranger), "{other}");
        }
        assert_eq!(Keys::pair("a", "b").judge(&HeaderMap::new()), None);
    }
}
