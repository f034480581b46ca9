//! The entries of `[[key]]` in a configuration, with their secrets.

use super::{KeyEntry, SettingsError};
use crate::keys::MIN_SECRET_CHARS;
use crate::private;
use s3::{Credentials, Grant, Key, Rights};
use std::collections::BTreeSet;
use std::path::Path;

const NOTHING: &str = "it may do nothing: give it rights, or admin = true";

/// The keys of these entries, with their secrets, for a configuration at `path`.
pub fn of(entries: &[KeyEntry], path: &Path) -> Result<Vec<Key>, SettingsError> {
    let mut seen = BTreeSet::new();
    let mut keys = Vec::new();
    for entry in entries {
        let name = entry.access_key.clone().unwrap_or_default();
        let wrong = |why| {
            let (path, name) = (path.to_owned(), name.clone());
            SettingsError::Key { path, name, why }
        };
        check_name(&name).map_err(wrong)?;
        if !seen.insert(name.clone()) {
            return Err(wrong("it is there twice"));
        }
        let rights = rights(entry).map_err(wrong)?;
        let secret = match (&entry.secret_key, &entry.secret_file) {
            (Some(secret), None) => secret.0.clone(),
            (None, Some(file)) => private::read(file)?.trim().to_owned(),
            _ => return Err(wrong("it needs either secret_key or secret_file")),
        };
        if secret.trim().is_empty() {
            return Err(wrong("its secret is empty"));
        }
        if secret.chars().count() < MIN_SECRET_CHARS {
            return Err(wrong("its secret has fewer than 8 characters"));
        }
        let credentials = Credentials::new(name, secret);
        keys.push(Key {
            credentials,
            rights,
        });
    }
    Ok(keys)
}

/// A signature has the access key before a slash, in a list separated by commas.
fn check_name(name: &str) -> Result<(), &'static str> {
    let is_known = |c: char| c.is_ascii_alphanumeric() || "._-+=@".contains(c);
    match name {
        "" => Err("it has no access_key"),
        name if name.chars().all(is_known) => Ok(()),
        _ => Err("an access_key has letters, digits and ._-+=@"),
    }
}

fn rights(entry: &KeyEntry) -> Result<Rights, &'static str> {
    let is_admin = entry.admin.unwrap_or_default();
    match &entry.rights {
        None if is_admin => Ok(Rights::Admin),
        None => Err(NOTHING),
        Some(_) if is_admin => Err("admin = true is all rights; leave out one of the two"),
        Some(entries) if entries.is_empty() => Err(NOTHING),
        Some(entries) => {
            let grant = |entry: &super::RightsEntry| {
                let (Some(bucket), Some(may)) = (&entry.bucket, &entry.may) else {
                    return Err("each of its rights needs bucket and may");
                };
                if may.is_empty() {
                    return Err("one of its rights allows nothing: say in may what it does");
                }
                Ok(Grant {
                    buckets: bucket.value.clone(),
                    may: may.iter().map(|right| right.value).collect(),
                })
            };
            Ok(Rights::Granted(
                entries.iter().map(grant).collect::<Result<_, _>>()?,
            ))
        }
    }
}
