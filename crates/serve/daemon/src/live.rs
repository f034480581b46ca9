//! Configuration that is reloaded while a server runs: keys and their rights, limits, the certificate. An error
//! changes nothing: everything is read before anything is replaced.

use crate::keys::{self, Keys, Source};
use crate::settings::{Settings, SettingsError};
use crate::stamps::Stamps;
use s3::{AUDIT, ClientQuotas, Key, Keyring, Tls};
use std::path::{Path, PathBuf};

/// Returns why this server would not start with a configuration, if it would not.
pub type Judge = Box<dyn Fn(&Settings) -> Result<(), String> + Send>;

/// The configuration in use, and its sources.
pub struct Live {
    judge: Judge,
    settings: Option<Settings>,
    /// The files behind all of this, as they were before they were read.
    seen: Stamps,
    /// The error of the last reload, if it may pass without a change of a file.
    passing: Option<String>,
    /// Path of the key file beside the drive.
    beside: PathBuf,
    /// Source of the keys, and one key as an example for users.
    pub keys: Keys,
    /// All keys.
    pub keyring: Keyring,
    /// Limits of clients.
    pub quotas: ClientQuotas,
    /// Certificate and key for TLS.
    pub tls: Option<Tls>,
}

impl Live {
    /// Reads everything; the settings once more, so that no change since is missed. Creates the key beside `drive` if
    /// no key is configured anywhere. `judge` is called at later reloads, for settings that need a restart.
    ///
    /// # Errors
    /// A part of the configuration cannot be used.
    pub fn start(
        settings: Option<Settings>,
        drive: &Path,
        judge: Judge,
    ) -> Result<Self, SettingsError> {
        let beside = keys::file_of(drive);
        let mut seen = Stamps::of(files(settings.as_ref(), &beside));
        let settings = settings.map(|settings| Settings::load(settings.path()));
        let settings = settings.transpose()?;
        seen.go_on_with(files(settings.as_ref(), &beside));
        let named = named(settings.as_ref())?;
        let tls = settings.as_ref().map_or(Ok(None), Settings::tls)?;
        let keys = match (&settings, named.first()) {
            (Some(settings), Some(first)) => Keys {
                access_key: first.credentials.access_key().to_owned(),
                secret_key: None,
                source: Source::Configuration {
                    path: settings.path().to_owned(),
                    count: named.len(),
                },
            },
            _ => keys::load_or_make(drive)?,
        };
        let keyring = match named.is_empty() {
            true => Keyring::new(keys.admin()),
            false => Keyring::new(named),
        };
        let quotas = ClientQuotas::default();
        let live = Self {
            judge,
            settings,
            seen,
            passing: None,
            beside,
            keys,
            keyring,
            quotas,
            tls,
        };
        live.set_quotas();
        Ok(live)
    }

    /// Reloads everything if this was `asked` for, if a file has changed since it was read, and if the last try ended
    /// with an error that may pass without a change.
    ///
    /// # Errors
    /// A part cannot be used; the configuration in use stays. An error with which further tries end, too, is returned
    /// once.
    pub(crate) fn look(&mut self, asked: bool) -> Result<(), SettingsError> {
        let is_news = asked || self.has_changed();
        if !is_news && self.passing.is_none() {
            return Ok(());
        }
        let read = self.read_again();
        let passing = read.as_ref().err().filter(|error| error.may_pass());
        let passing = passing.map(ToString::to_string);
        let is_known = !is_news && passing.is_some() && passing == self.passing;
        self.passing = passing;
        if is_known { Ok(()) } else { read }
    }

    /// Whether a file has changed since it was read.
    fn has_changed(&self) -> bool {
        self.seen.are_old()
    }

    /// Reloads everything.
    fn read_again(&mut self) -> Result<(), SettingsError> {
        // Each file is stamped before it is read: changes meanwhile lead to one more reload.
        self.seen = Stamps::of(files(self.settings.as_ref(), &self.beside));
        let settings = match &self.settings {
            Some(settings) => Some(Settings::load(settings.path())?),
            None => None,
        };
        self.seen.go_on_with(files(settings.as_ref(), &self.beside));
        let needs_restart = self.needs_restart(settings.as_ref());
        // Settings in use are not judged again, so that keys can be revoked even while the drive does not answer.
        if needs_restart && let Some(settings) = &settings {
            (self.judge)(settings).map_err(|why| SettingsError::Refused {
                path: settings.path().to_owned(),
                why,
            })?;
        }
        let keys = self.keys_again(settings.as_ref())?;
        let tls = settings.as_ref().map_or(Ok(None), Settings::tls)?;
        let count = keys.len();
        self.keyring.replace(keys);
        let exchanged = match (&self.tls, &tls) {
            (Some(old), Some(new)) => {
                old.replace(new);
                true
            }
            (None, None) => true,
            _ => false,
        };
        if !exchanged || needs_restart {
            tracing::warn!(
                "what changed in [serve], [drive], [log] or [trace], or whether there is TLS, counts after a restart"
            );
        }
        self.settings = settings;
        self.set_quotas();
        tracing::info!(target: AUDIT, keys = count, "configuration read");
        Ok(())
    }

    /// The keys after a reload.
    fn keys_again(&self, settings: Option<&Settings>) -> Result<Vec<Key>, SettingsError> {
        let named = named(settings)?;
        if !named.is_empty() {
            return Ok(named);
        }
        let admin = match &self.keys.source {
            Source::File { path, .. } => keys::read(path)?.admin(),
            // A configuration whose last key was removed admits no caller: `Keys::admin` is `None` then.
            Source::Environment | Source::Configuration { .. } => self.keys.admin(),
        };
        Ok(admin.into_iter().collect())
    }

    fn needs_restart(&self, new: Option<&Settings>) -> bool {
        let fixed = |settings: &Settings| {
            let file = settings.file.clone();
            (file.serve, file.drive, file.log, file.trace)
        };
        self.settings.as_ref().map(fixed) != new.map(fixed)
    }

    fn set_quotas(&self) {
        let quotas = self.settings.as_ref().map(Settings::quotas);
        let (key, address) = quotas.unwrap_or_default();
        self.quotas.set(key, address);
    }
}

/// All files that keys, limits and certificate come from.
fn files(settings: Option<&Settings>, beside: &Path) -> Vec<PathBuf> {
    let mut files = settings.map_or(Vec::new(), Settings::files);
    if settings.is_none_or(|settings| settings.file.key.is_empty()) {
        files.push(beside.to_owned());
    }
    files
}

fn named(settings: Option<&Settings>) -> Result<Vec<Key>, SettingsError> {
    settings.map_or(Ok(Vec::new()), Settings::keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn write(path: &Path, text: &str) {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn key(name: &str) -> String {
        format!("[[key]]\naccess_key = \"{name}\"\nsecret_file = \"{name}.secret\"\nadmin = true\n")
    }

    #[test]
    fn a_change_is_read_once_and_one_that_is_refused_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let path = at("zonestore.toml");
        write(&at("a.secret"), "the secret of a");
        write(&path, &key("a"));
        let judge: Judge = Box::new(|settings| match settings.file.serve.drive {
            Some(_) => Err("there is no such drive".to_owned()),
            None => Ok(()),
        });
        let settings = Settings::load(&path).unwrap();
        let mut live = Live::start(Some(settings), &at("d.zoned"), judge).unwrap();
        let is_admin = |live: &Live, name: &str| {
            let secret = format!("the secret of {name}");
            live.keyring.is_admin(name, &secret) == Some(true)
        };
        assert!(!live.has_changed());

        // A file that is named newly is not there yet, and noticed when it is.
        write(&path, &(key("a") + &key("b")));
        assert!(live.has_changed());
        live.read_again().unwrap_err();
        assert!(!live.has_changed() && !is_admin(&live, "b"));
        write(&at("b.secret"), "the secret of b");
        assert!(live.has_changed());
        live.read_again().unwrap();
        assert!(!live.has_changed() && is_admin(&live, "b"));

        write(&path, &(key("b") + "[serve]\ndrive = \"elsewhere\"\n"));
        let refused = live.read_again().unwrap_err().to_string();
        assert!(
            refused.ends_with("zonestore.toml: there is no such drive"),
            "{refused}"
        );
        assert!(!live.has_changed() && is_admin(&live, "a"));
        write(&path, &key("b"));
        live.read_again().unwrap();
        assert!(!live.has_changed() && !is_admin(&live, "a"));
    }

    #[test]
    fn what_cannot_be_read_for_a_moment_is_said_once_and_read_when_it_can_be() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let (path, secrets, away) = (at("zonestore.toml"), at("secrets"), at("away"));
        fs::create_dir(&secrets).unwrap();
        write(&secrets.join("a"), "the secret of a");
        write(&secrets.join("b"), "the secret of b");
        let key =
            |name: &str| key(name).replace(&format!("{name}.secret"), &format!("secrets/{name}"));
        write(&path, &key("a"));
        // Between the look at the files and their reading, which changes no file.
        let (from, to, tries) = (secrets.clone(), away.clone(), Cell::new(0));
        let judge: Judge = Box::new(move |_| {
            if tries.replace(tries.get() + 1) < 2 {
                fs::rename(&from, &to).unwrap();
            }
            Ok(())
        });
        let settings = Settings::load(&path).unwrap();
        let mut live = Live::start(Some(settings), &at("d.zoned"), judge).unwrap();
        let is_admin = |live: &Live| live.keyring.is_admin("b", "the secret of b") == Some(true);
        write(&path, &(key("b") + "[serve]\ndrive = \"elsewhere\"\n"));
        assert!(live.look(false).unwrap_err().may_pass());
        fs::rename(&away, &secrets).unwrap();
        assert!(!live.has_changed());
        live.look(false).unwrap();
        assert!(!is_admin(&live));
        fs::rename(&away, &secrets).unwrap();
        live.look(false).unwrap();
        assert!(is_admin(&live));
    }

    #[test]
    fn a_retry_that_ends_otherwise_is_not_the_last_one() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let (path, secrets, away) = (at("zonestore.toml"), at("secrets"), at("away"));
        fs::create_dir(&secrets).unwrap();
        write(&secrets.join("a.secret"), "the secret of a");
        write(&secrets.join("b.secret"), "the secret of b");
        let key = |name: &str| key(name).replace("_file = \"", "_file = \"secrets/");
        write(&path, &key("a"));
        // The first try finds no secret, and the next two no address.
        let (from, to, tries) = (secrets.clone(), away.clone(), Cell::new(0));
        let judge: Judge = Box::new(move |_| match tries.replace(tries.get() + 1) {
            0 => {
                fs::rename(&from, &to).unwrap();
                Ok(())
            }
            1 | 2 => Err("this host has no address".to_owned()),
            _ => Ok(()),
        });
        let settings = Settings::load(&path).unwrap();
        let mut live = Live::start(Some(settings), &at("d.zoned"), judge).unwrap();
        write(&path, &(key("b") + "[serve]\ndrive = \"elsewhere\"\n"));
        live.look(false).unwrap_err();
        fs::rename(&away, &secrets).unwrap();
        assert!(!live.has_changed());
        let told = live.look(false).unwrap_err().to_string();
        assert!(told.ends_with("no address"), "{told}");
        live.look(false).unwrap();
        live.look(false).unwrap();
        assert_eq!(live.keyring.is_admin("b", "the secret of b"), Some(true));
    }
}
