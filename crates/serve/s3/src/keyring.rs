//! The known keys, which can be replaced while the server runs: a removed key is refused from the next request on.

use crate::rights::Rights;
use s3s::auth::{S3Auth, SecretKey};
use s3s::{S3Error, S3Result, s3_error};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// Access key and secret key; the secret never shows in debug output.
#[derive(Clone)]
pub struct Credentials {
    access_key: String,
    secret_key: String,
}

impl Credentials {
    /// A key pair.
    pub fn new(access_key: impl Into<String>, secret_key: impl Into<String>) -> Self {
        Self {
            access_key: access_key.into(),
            secret_key: secret_key.into(),
        }
    }

    /// The access key, which is public.
    pub fn access_key(&self) -> &str {
        &self.access_key
    }

    fn secret_key(&self) -> &str {
        &self.secret_key
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("access_key", &self.access_key)
            .field("secret_key", &"…")
            .finish()
    }
}

/// A key pair and its rights.
#[derive(Clone, Debug)]
pub struct Key {
    /// Access key and secret.
    pub credentials: Credentials,
    /// What the key may do.
    pub rights: Rights,
}

type Keys = BTreeMap<String, Arc<Key>>;

/// All known keys; clones share them.
#[derive(Clone, Debug)]
pub struct Keyring(Arc<RwLock<Arc<Keys>>>);

impl Keyring {
    /// A keyring of these keys; of two with the same access key, the last one counts.
    pub fn new(keys: impl IntoIterator<Item = Key>) -> Self {
        Self(Arc::new(RwLock::new(by_name(keys))))
    }

    /// Replaces all keys.
    pub fn replace(&self, keys: impl IntoIterator<Item = Key>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = by_name(keys);
    }

    /// Whether this key has all rights; `None` if the key is unknown or the secret is wrong.
    pub fn is_admin(&self, access_key: &str, secret_key: &str) -> Option<bool> {
        let key = self.key(access_key)?;
        is_same(key.credentials.secret_key(), secret_key).then_some(key.rights == Rights::Admin)
    }

    /// The key with this access key.
    pub(crate) fn key(&self, access_key: &str) -> Option<Arc<Key>> {
        let keys = self.0.read().unwrap_or_else(PoisonError::into_inner);
        keys.get(access_key).cloned()
    }
}

/// Compares secrets in constant time, so that the time does not tell where they differ.
fn is_same(secret: &str, told: &str) -> bool {
    let differ = secret.bytes().zip(told.bytes());
    secret.len() == told.len() && differ.fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

fn by_name(keys: impl IntoIterator<Item = Key>) -> Arc<Keys> {
    let named = |key: Key| (key.credentials.access_key().to_owned(), Arc::new(key));
    Arc::new(keys.into_iter().map(named).collect())
}

/// The error for a key that is unknown or was removed.
pub fn unknown_key() -> S3Error {
    s3_error!(
        InvalidAccessKeyId,
        "The access key id you provided does not exist in our records"
    )
}

#[async_trait::async_trait]
impl S3Auth for Keyring {
    async fn get_secret_key(&self, access_key: &str) -> S3Result<SecretKey> {
        let key = self.key(access_key).ok_or_else(unknown_key)?;
        Ok(SecretKey::from(key.credentials.secret_key()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn keys_are_known_until_they_are_replaced() {
        let key = |name: &str, secret: &str| Key {
            credentials: Credentials::new(name, secret),
            rights: Rights::Admin,
        };
        let keys = Keyring::new([key("first", "1"), key("second", "2")]);
        let found = async |name| {
            let found = keys.get_secret_key(name).await;
            let secret = found.map(|secret| secret.expose().to_owned());
            secret.map_err(|error| error.code().as_str().to_owned())
        };
        let unknown = Err("InvalidAccessKeyId".to_owned());
        assert_eq!(found("first").await, Ok("1".to_owned()));
        assert_eq!(found("third").await, unknown);
        assert_eq!(keys.is_admin("first", "1"), Some(true));
        for (key, wrong) in [("first", "2"), ("first", ""), ("third", "")] {
            assert_eq!(keys.is_admin(key, wrong), None);
        }
        let limited = Key {
            rights: Rights::Granted(Vec::new()),
            ..key("limited", "3")
        };
        assert_eq!(
            Keyring::new([limited]).is_admin("limited", "3"),
            Some(false)
        );
        keys.replace([key("second", "new")]);
        assert_eq!(keys.is_admin("first", "1"), None);
        assert_eq!(found("first").await, unknown);
        assert_eq!(found("second").await, Ok("new".to_owned()));
    }
}
