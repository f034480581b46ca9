//! A server's configuration file: its sections and fields, how it is read and checked, and what it yields.

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

/// Why a configuration cannot be used.
#[derive(Debug, Error)]
pub enum SettingsError {
    /// The text is not valid.
    #[error("{}: {source}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The error and its line.
        source: SyntaxError,
    },
    /// An entry of `[[key]]` is wrong.
    #[error("{}: key {name:?}: {why}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// The access key.
        name: String,
        /// What is wrong.
        why: &'static str,
    },
    /// A value is wrong, or needs another one that is missing.
    #[error("{}: {why}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: &'static str,
    },
    /// A server would not start with this configuration.
    #[error("{}: {why}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// A file cannot be read, or other users can read it.
    #[error(transparent)]
    File(#[from] FileError),
    /// The key beside the drive cannot be used.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// The certificate or its key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl SettingsError {
    /// Whether the error may pass without a change of a file: a file could not be read because there were no descriptors
    /// left, or a server would not start, for which the host's names are resolved and files are read again.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Refused { .. } => true,
            Self::File(error) | Self::Keys(KeysError::Readable(error)) => {
                matches!(error, FileError::Unread { .. })
            }
            Self::Keys(error) => matches!(error, KeysError::File { .. }),
            Self::Tls(error) => error.is_unread(),
            _ => false,
        }
    }
}

/// A configuration that was read and checked.
#[derive(Clone, Debug)]
pub struct Settings {
    path: PathBuf,
    /// The file's content. Paths in it were made relative to this process's folder.
    pub file: File,
}

impl Settings {
    /// Reads a configuration. Paths in the file are relative to its folder.
    ///
    /// # Errors
    /// The file cannot be read, or is wrong by itself; files that it names are not checked.
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

    /// The path it was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All files that it consists of; when one changes, the configuration should be reloaded.
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

    /// The keys in it, with their secrets.
    ///
    /// # Errors
    /// A key is incomplete or a duplicate, or its secret cannot be read.
    pub fn keys(&self) -> Result<Vec<Key>, SettingsError> {
        key_entries::of(&self.file.key, &self.path)
    }

    /// Certificate and key for TLS, if the configuration has them.
    ///
    /// # Errors
    /// The files cannot be read or do not fit together, or other users can read the key.
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

    /// Limits of each key, and of each address.
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

/// Resolves relative paths in the configuration against `folder`.
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
