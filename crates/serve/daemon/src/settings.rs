//! A server's configuration: what the file says, and what becomes of it.

mod example;
pub(crate) mod field;
mod key_entries;
mod parse;
mod sections;

pub use example::example;
pub use field::{Field, Parsed, Secret};
pub use parse::{SyntaxError, parse};
pub use sections::{
    File, KeyEntry, Limit, Limits, Log, LogFormat, RightsEntry, SECTIONS, ScrubEvery, Section,
    Serve, Shape, TlsFiles, Trace,
};

use crate::keys::KeysError;
use crate::private::{self, FileError};
use s3::{Key, Quota, Tls, TlsError};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why there is no configuration.
#[derive(Debug, Error)]
pub enum SettingsError {
    /// The text is wrong.
    #[error("{}: {source}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: SyntaxError,
    },
    /// A key is wrong.
    #[error("{}: key {name:?}: {why}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// Which key.
        name: String,
        /// What is wrong.
        why: &'static str,
    },
    /// One value does not go without another, or is none.
    #[error("{}: {why}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: &'static str,
    },
    /// A server would not start with it.
    #[error("{}: {why}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// A file cannot be read, or others can read it.
    #[error(transparent)]
    File(#[from] FileError),
    /// The key beside the drive cannot be used.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// The certificate or its key is none.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// A configuration that has been read.
#[derive(Clone, Debug)]
pub struct Settings {
    path: PathBuf,
    /// What it says. Paths in it are relative to this process's folder.
    pub file: File,
}

impl Settings {
    /// Reads a configuration. Paths in it are relative to its folder.
    ///
    /// # Errors
    /// It cannot be read, or is wrong by itself; files that it names have not been looked at.
    pub fn load(path: &Path) -> Result<Self, SettingsError> {
        let path = path.to_owned();
        let text = private::read_text(&path)?;
        let mut file = parse(&text).map_err(|source| SettingsError::Syntax {
            path: path.clone(),
            source,
        })?;
        rebase(&mut file, path.parent().unwrap_or(Path::new("")));
        let settings = Self { path, file };
        settings.check()?;
        Ok(settings)
    }

    /// Where it was read.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All files that it is made of: when one changes, it should be read again.
    pub fn files(&self) -> Vec<PathBuf> {
        let secrets = self
            .file
            .key
            .iter()
            .filter_map(|key| key.secret_file.clone());
        let TlsFiles { certificate, key } = self.file.tls.clone();
        let own = [self.path.clone()].into_iter();
        own.chain(secrets).chain(certificate).chain(key).collect()
    }

    /// The keys that it names, with their secrets.
    ///
    /// # Errors
    /// One is incomplete, there twice, or its secret cannot be read.
    pub fn keys(&self) -> Result<Vec<Key>, SettingsError> {
        key_entries::of(&self.file.key, &self.path)
    }

    /// What makes connections private, if anything is to.
    ///
    /// # Errors
    /// The files cannot be read or do not fit together, or others can read the key.
    pub fn tls(&self) -> Result<Option<Tls>, SettingsError> {
        let TlsFiles {
            certificate: Some(certificate),
            key: Some(key),
        } = &self.file.tls
        else {
            return Ok(None);
        };
        private::check(key)?;
        Ok(Some(Tls::load(certificate, key)?))
    }

    /// What a key and an address may ask for.
    pub fn quotas(&self) -> (Quota, Quota) {
        let limits = &self.file.limits;
        ((&limits.key).into(), (&limits.address).into())
    }

    fn check(&self) -> Result<(), SettingsError> {
        let value = |why| {
            let path = self.path.clone();
            Err(SettingsError::Value { path, why })
        };
        if self.file.tls.certificate.is_some() != self.file.tls.key.is_some() {
            return value("[tls] needs both certificate and key");
        }
        let (key, address) = self.quotas();
        let bounds = [key, address].into_iter();
        let mut bounds = bounds.flat_map(|q| [q.requests, q.bytes, q.connections]);
        if bounds.any(|bound| bound == Some(0)) {
            return value("[limits] of 0 would let nobody in; leave out what has no limit");
        }
        if self.file.key.iter().any(|key| key.secret_key.is_some()) {
            private::check(&self.path)?;
        }
        Ok(())
    }
}

/// Lets relative paths begin in `folder`.
fn rebase(file: &mut File, folder: &Path) {
    let File {
        serve,
        tls,
        log,
        key,
        ..
    } = file;
    let own = [&mut serve.drive, &mut tls.certificate, &mut tls.key];
    let logs = [&mut log.file, &mut log.access, &mut log.audit];
    let secrets = key.iter_mut().map(|key| &mut key.secret_file);
    for path in own.into_iter().chain(logs).chain(secrets).flatten() {
        *path = folder.join(&path);
    }
}

#[cfg(test)]
mod tests;
