//! The keys of a drive's S3 endpoint.
//!
//! They come from the environment, or from a file beside the drive that only its owner can read. The file is created
//! once, with keys from the operating system's random source. It is also a configuration of s3cmd, so that a new user
//! can access the endpoint without copying secrets.

use crate::private::{self, FileError};
use runtime::Runtime;
use s3::{Credentials, Key, Rights, small_file};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};
use tempfile::{NamedTempFile, PersistError};
use thiserror::Error;

/// Environment variable with the access key.
pub const ACCESS_KEY_VARIABLE: &str = "ZONESTORE_ACCESS_KEY";
/// Environment variable with the secret key.
pub const SECRET_KEY_VARIABLE: &str = "ZONESTORE_SECRET_KEY";

/// Shorter secrets could be guessed.
pub(crate) const MIN_SECRET_CHARS: usize = 8;

/// An access key with its secret, and their source.
#[derive(Clone)]
pub struct Keys {
    /// The access key.
    pub access_key: String,
    /// The secret key; `None` if the key is one of many in a configuration.
    pub secret_key: Option<String>,
    /// Where they come from.
    pub source: Source,
}

/// Source of keys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// The environment: [`ACCESS_KEY_VARIABLE`] and [`SECRET_KEY_VARIABLE`].
    Environment,
    /// The file beside the drive.
    File {
        /// The file.
        path: PathBuf,
        /// Whether it was created just now.
        new: bool,
    },
    /// A configuration file.
    Configuration {
        /// The file.
        path: PathBuf,
        /// Number of keys in it.
        count: usize,
    },
}

/// Why there are no keys to use.
#[derive(Debug, Error)]
pub enum KeysError {
    /// Only one of the two variables is set.
    #[error("{given} is set and {missing} is not")]
    OneVariable {
        /// The variable that is set.
        given: &'static str,
        /// The variable that is not set.
        missing: &'static str,
    },
    /// A variable is set but empty, which is not taken for unset.
    #[error("{variable} is empty")]
    EmptyVariable {
        /// The variable.
        variable: &'static str,
    },
    /// The file has no access key or no secret key.
    #[error("{}: no access_key and secret_key in it", path.display())]
    NoKeys {
        /// The file.
        path: PathBuf,
    },
    /// The file is a symbolic link to a file that does not exist.
    #[error("{}: a link to {}, which is not there", path.display(), target.display())]
    DeadLink {
        /// The link.
        path: PathBuf,
        /// The link's target.
        target: PathBuf,
    },
    /// Other users can read the file.
    #[error(transparent)]
    Readable(#[from] FileError),
    /// The secret key in the environment is too short.
    #[error(
        "{SECRET_KEY_VARIABLE} has fewer than {MIN_SECRET_CHARS} characters: it could be guessed"
    )]
    ShortSecret,
    /// The file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The operating system has no random numbers.
    #[error("no random numbers: {0}")]
    Random(io::Error),
}

type Result<T> = std::result::Result<T, KeysError>;

impl KeysError {
    fn file(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        Self::File { path, source }
    }
}

/// The key file of `drive`.
pub fn file_of(drive: &Path) -> PathBuf {
    let mut name = drive.as_os_str().to_owned();
    name.push(".keys");
    PathBuf::from(name)
}

/// The keys for `drive`: from the environment, else from its key file, which is created if it does not exist.
pub fn load_or_make(drive: &Path) -> Result<Keys> {
    match check_environment()? {
        Some((access_key, secret_key)) => Ok(Keys {
            access_key,
            secret_key: Some(secret_key),
            source: Source::Environment,
        }),
        None => from_file(&file_of(drive)),
    }
}

/// Fails if [`load_or_make`] would, but creates nothing. Without a `drive`, only the environment is checked.
///
/// # Errors
/// Those of [`load_or_make`].
pub fn check(drive: Option<&Path>) -> Result<()> {
    if check_environment()?.is_some() {
        return Ok(());
    }
    match drive.map(file_of) {
        Some(file) if fs::symlink_metadata(&file).is_ok() => from_file(&file).map(drop),
        _ => Ok(()),
    }
}

/// The access key and the secret of the environment, if set.
///
/// # Errors
/// Only one of the two is set, or one is empty.
fn check_environment() -> Result<Option<(String, String)>> {
    let variable = |name: &'static str| std::env::var(name).ok();
    of_variables(variable(ACCESS_KEY_VARIABLE), variable(SECRET_KEY_VARIABLE))
}

fn of_variables(
    access: Option<String>,
    secret: Option<String>,
) -> Result<Option<(String, String)>> {
    let both = [
        (ACCESS_KEY_VARIABLE, &access),
        (SECRET_KEY_VARIABLE, &secret),
    ];
    for (variable, value) in both {
        if value
            .as_deref()
            .is_some_and(|value| value.trim().is_empty())
        {
            return Err(KeysError::EmptyVariable { variable });
        }
    }
    match (access, secret) {
        (_, Some(secret)) if secret.chars().count() < MIN_SECRET_CHARS => {
            Err(KeysError::ShortSecret)
        }
        (Some(access_key), Some(secret_key)) => Ok(Some((access_key, secret_key))),
        (None, None) => Ok(None),
        (one, _) => {
            let (given, missing) = match one {
                Some(_) => (ACCESS_KEY_VARIABLE, SECRET_KEY_VARIABLE),
                None => (SECRET_KEY_VARIABLE, ACCESS_KEY_VARIABLE),
            };
            Err(KeysError::OneVariable { given, missing })
        }
    }
}

impl Keys {
    /// The key with all rights; `None` if the keys are those of a configuration, which gives rights itself.
    pub fn admin(&self) -> Option<Key> {
        Some(Key {
            credentials: Credentials::new(&self.access_key, self.secret_key.as_ref()?),
            rights: Rights::Admin,
        })
    }
}

/// The keys of an existing file.
pub(crate) fn read(path: &Path) -> Result<Keys> {
    match path.exists() {
        true => from_file(path),
        false => Err(KeysError::file(path, io::ErrorKind::NotFound.into())),
    }
}

/// Sets address and TLS in the s3cmd settings of a key file, if they differ. A link stays one: its target is changed.
pub(crate) fn point_at(path: &Path, address: &str, tls: bool) -> Result<()> {
    let path = &fs::canonicalize(path).map_err(|e| KeysError::file(path, e))?;
    let text = small_file::read_text(path).map_err(|e| KeysError::file(path, e))?;
    let https = if tls { "True" } else { "False" };
    if setting(&text, "host_base") == Some(address) && setting(&text, "use_https") == Some(https) {
        return Ok(());
    }
    let mut changed = String::new();
    for line in text.lines() {
        let name = line.split_once('=').map(|(name, _)| name.trim());
        match name {
            Some(name @ ("host_base" | "host_bucket")) => {
                changed += &format!("{name} = {address}\n");
            }
            Some("use_https") => changed += &format!("use_https = {https}\n"),
            _ => changed += &format!("{line}\n"),
        }
    }
    let renewed = |file: NamedTempFile| match keep_owner(path, file.as_file()) {
        Ok(()) => file.persist(path),
        Err(error) => Err(PersistError { error, file }),
    };
    write_private(path, &changed, renewed).map_err(|error| KeysError::file(path, error))
}

/// Gives `file`, which is to replace `path`, to the owner of that: root may have served the drive of another user.
fn keep_owner(path: &Path, file: &File) -> io::Result<()> {
    let (old, new) = (fs::metadata(path)?, file.metadata()?);
    if old.uid() == new.uid() {
        return Ok(());
    }
    fchown(file, Some(old.uid()), Some(old.gid()))
}

fn from_file(path: &Path) -> Result<Keys> {
    match small_file::read_text(path) {
        Ok(text) => {
            private::check(path)?;
            let (Some(access_key), Some(secret_key)) =
                (setting(&text, "access_key"), setting(&text, "secret_key"))
            else {
                let path = path.to_owned();
                return Err(KeysError::NoKeys { path });
            };
            Ok(Keys {
                access_key: access_key.to_owned(),
                secret_key: Some(secret_key.to_owned()),
                source: Source::File {
                    path: path.to_owned(),
                    new: false,
                },
            })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Ok(target) = fs::read_link(path) {
                let path = path.to_owned();
                return Err(KeysError::DeadLink { path, target });
            }
            make(path)
        }
        Err(error) => Err(KeysError::file(path, error)),
    }
}

fn make(path: &Path) -> Result<Keys> {
    let access_key = format!(
        "ZS{}",
        random_text::<18>(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")?
    );
    let secret_key =
        random_text::<40>(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-")?;
    let text = format!(
        "# S3 keys of the drive beside this file, and settings for `s3cmd -c THIS_FILE`.\n\
         # Remove the file to get new keys at the next start of `zonestore serve`.\n\
         [default]\n\
         access_key = {access_key}\n\
         secret_key = {secret_key}\n\
         use_https = False\n\
         host_base = \n\
         host_bucket = \n"
    );
    match write_private(path, &text, |file| file.persist_noclobber(path)) {
        // Another process has made one meanwhile.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return from_file(path),
        done => done.map_err(|error| KeysError::file(path, error))?,
    }
    let source = Source::File {
        path: path.to_owned(),
        new: true,
    };
    Ok(Keys {
        access_key,
        secret_key: Some(secret_key),
        source,
    })
}

/// Writes a file that only its owner can read and has `name` give it its name, so that neither a full disk nor a kill
/// leaves a part of it. It is durable when this returns.
fn write_private(
    path: &Path,
    text: &str,
    name: impl FnOnce(NamedTempFile) -> std::result::Result<File, PersistError>,
) -> io::Result<()> {
    let folder = path.parent().filter(|folder| folder.is_dir());
    let folder = folder.unwrap_or(Path::new("."));
    // Mode 0600, as all that this makes.
    let mut file = tempfile::Builder::new()
        .prefix(".keys-")
        .tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    name(file).map_err(|error| error.error)?;
    File::open(folder)?.sync_all()
}

fn setting<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .filter_map(|line| line.split_once('='))
        .find(|(found, _)| found.trim() == name)
        .map(|(_, value)| value.trim())
        .filter(|value| !value.is_empty())
}

/// `LENGTH` characters of `alphabet`, whose length divides 256 so that each is equally likely.
fn random_text<const LENGTH: usize>(alphabet: &[u8]) -> Result<String> {
    assert!(
        256 % alphabet.len() == 0,
        "every character must be equally likely"
    );
    let bytes = Runtime::system().bytes::<LENGTH>();
    let bytes = bytes.map_err(KeysError::Random)?;
    let character = |byte: &u8| alphabet[usize::from(*byte) % alphabet.len()] as char;
    Ok(bytes.iter().map(character).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn keys_are_made_once_and_only_their_owner_can_read_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = file_of(&folder.path().join("d.zoned"));
        let made = from_file(&path).unwrap();
        assert_eq!(
            made.source,
            Source::File {
                path: path.clone(),
                new: true
            }
        );
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(made.access_key.len(), 20);
        assert_eq!(made.secret_key.as_ref().map(String::len), Some(40));

        point_at(&path, "127.0.0.1:9000", true).unwrap();
        let again = from_file(&path).unwrap();
        assert_eq!(again.access_key, made.access_key);
        assert_eq!(again.secret_key, made.secret_key);
        assert_eq!(
            again.source,
            Source::File {
                path: path.clone(),
                new: false
            }
        );
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(setting(&text, "host_base"), Some("127.0.0.1:9000"));
        assert_eq!(setting(&text, "use_https"), Some("True"));
    }

    #[test]
    fn a_key_file_that_is_a_link_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let (kept, path) = (folder.path().join("kept"), folder.path().join("d.keys"));
        fs::create_dir(&kept).unwrap();
        let made = from_file(&kept.join("keys")).unwrap();
        std::os::unix::fs::symlink("kept/keys", &path).unwrap();
        point_at(&path, "127.0.0.1:9000", true).unwrap();
        assert_eq!(fs::read_link(&path).unwrap(), Path::new("kept/keys"));
        let text = fs::read_to_string(kept.join("keys")).unwrap();
        assert_eq!(setting(&text, "host_base"), Some("127.0.0.1:9000"));
        assert_eq!(from_file(&path).unwrap().access_key, made.access_key);
    }

    #[test]
    fn keys_stay_their_owners_where_root_serves_the_drive() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.zoned.keys");
        from_file(&path).unwrap();
        // Only root can give a file away.
        if std::os::unix::fs::chown(&path, Some(4321), Some(1234)).is_err() {
            return;
        }
        point_at(&path, "127.0.0.1:9000", false).unwrap();
        let kept = fs::metadata(&path).unwrap();
        assert_eq!((kept.uid(), kept.gid()), (4321, 1234));
        assert_eq!(kept.permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn keys_that_others_can_read_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.zoned.keys");
        from_file(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(from_file(&path), Err(KeysError::Readable { .. })));
    }

    #[test]
    fn a_key_file_without_keys_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.zoned.keys");
        fs::write(&path, "access_key = \n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(matches!(from_file(&path), Err(KeysError::NoKeys { .. })));
    }

    #[test]
    fn of_two_that_make_keys_both_get_those_of_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.zoned.keys");
        let made = make(&path).unwrap();
        assert_eq!(make(&path).unwrap().access_key, made.access_key);
        // Nothing else is left in the folder.
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_empty_variable_is_no_key_and_not_no_variable() {
        let of = |access: Option<&str>, secret: Option<&str>| {
            of_variables(access.map(str::to_owned), secret.map(str::to_owned))
        };
        assert_eq!(of(None, None).unwrap(), None);
        let both = of(Some("me"), Some("a secret")).unwrap();
        assert_eq!(both, Some(("me".to_owned(), "a secret".to_owned())));
        let short = of(Some("me"), Some("7 chars")).unwrap_err();
        assert!(matches!(short, KeysError::ShortSecret));
        for empty in ["", " "] {
            for (access, secret) in [(empty, "a secret"), ("me", empty), (empty, empty)] {
                let found = of(Some(access), Some(secret));
                assert!(matches!(found, Err(KeysError::EmptyVariable { .. })));
            }
            let found = of(Some(empty), None);
            assert!(matches!(found, Err(KeysError::EmptyVariable { .. })));
        }
        let found = of(None, Some("a secret"));
        assert!(matches!(found, Err(KeysError::OneVariable { .. })));
    }

    #[test]
    fn two_keys_differ() {
        let folder = tempfile::tempdir().unwrap();
        let one = from_file(&folder.path().join("a.keys")).unwrap();
        let two = from_file(&folder.path().join("b.keys")).unwrap();
        assert_ne!(one.secret_key, two.secret_key);
    }
}
