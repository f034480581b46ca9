//! Where a snapshot comes from: the drive itself, looked at without a lock, and its server, if it has one.

use crate::snapshot::{Look, Snapshot};
use crate::user::User;
use crate::zone_view::{ZoneView, advanced};
use bluefs::{BlueFs, Observation};
use device::{Drive, DriveError, ZonedDevice};
use runtime::Runtime;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use store::ZoneUse;
use zone::{Geometry, ZoneDescriptor, ZoneError, ZoneId};

/// How often a look is taken that the writer was faster than, and how long to wait in between.
const LOOKS: u32 = 8;
const PAUSE: Duration = Duration::from_millis(3);

/// Why a drive cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    /// It cannot be opened.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// It does not report its zones.
    #[error(transparent)]
    Zone(#[from] ZoneError),
    /// There is no file system on it, or none that can be read.
    #[error(transparent)]
    BlueFs(#[from] bluefs::Error),
}

/// Who has a drive with a store open, and answers for it.
pub trait Server {
    /// Why there is no answer.
    type Error: std::fmt::Display;
    /// Of its process.
    fn pid(&self) -> u32;
    /// The drive's report, from `first` on.
    fn zones(&self, first: u32, count: u32) -> Result<Vec<ZoneDescriptor>, Self::Error>;
    /// What the store has in these zones.
    fn store_zones(&self, first: u32, count: u32) -> Result<Vec<ZoneUse>, Self::Error>;
}

/// No server, where the drive is known to have none.
pub enum Nobody {}

impl Server for Nobody {
    type Error = Infallible;

    fn pid(&self) -> u32 {
        match *self {}
    }

    fn zones(&self, _: u32, _: u32) -> Result<Vec<ZoneDescriptor>, Infallible> {
        match *self {}
    }

    fn store_zones(&self, _: u32, _: u32) -> Result<Vec<ZoneUse>, Infallible> {
        match *self {}
    }
}

impl Source<Nobody> {
    /// Of a drive that nobody serves.
    pub fn alone(path: &Path, runtime: Runtime) -> Self {
        Self::new(path, u32::MAX, |_| Ok(None), runtime)
    }
}

/// Finds the server of a drive, if it has one.
pub type Connect<S> = fn(&Path) -> Result<Option<S>, <S as Server>::Error>;

/// A drive to look at again and again.
pub struct Source<S: Server> {
    path: PathBuf,
    /// Most zones that are asked for at a time.
    page: u32,
    connect: Connect<S>,
    server: Option<S>,
    before: Option<(Duration, Vec<ZoneView>)>,
    runtime: Runtime,
}

/// A drive with its report, and what its journal says.
struct Found {
    geometry: Geometry,
    is_file: bool,
    report: Vec<ZoneDescriptor>,
    seen: Observation,
}

impl<S: Server> Source<S> {
    /// Of the drive at `path`; its server is asked for `page` zones at a time.
    pub fn new(path: &Path, page: u32, connect: Connect<S>, runtime: Runtime) -> Self {
        Self {
            path: path.to_owned(),
            page,
            connect,
            server: None,
            before: None,
            runtime,
        }
    }

    /// Looks at the drive.
    ///
    /// # Errors
    /// The drive cannot be read. A server that does not answer is a note of the snapshot.
    pub fn look(&mut self) -> Result<Snapshot, LookError> {
        let mut notes = Vec::new();
        let mut user = User::of(&self.path);
        let (found, is_whole) = self.find(&user)?;
        if !is_whole {
            notes.push(match user {
                User::Nobody => "the journal's last frame is not whole: `fs fsck` says whether \
                                 that is damage"
                    .to_owned(),
                _ => {
                    "the journal changed during every look: the picture is an older one".to_owned()
                }
            });
        }
        let Found {
            geometry,
            is_file,
            mut report,
            seen,
        } = found;
        let mut tells_open = !is_file || user == User::Nobody;
        let mut store = None;
        if seen.is_shared() && user != User::Nobody {
            match self.ask(&geometry, &mut report) {
                Ok(Some((pid, zones))) => {
                    user = User::Server { pid };
                    store = Some(zones);
                    tells_open = true;
                }
                Ok(None) => {}
                Err(error) => {
                    self.server = None;
                    notes.push(format!("the server does not tell: {error}"));
                }
            }
        }
        let now = self.runtime.now();
        let mut snapshot = Snapshot::new(Look {
            path: self.path.display().to_string(),
            user,
            geometry,
            report,
            tells_open,
            seen,
            store,
            notes,
        });
        if let Some((before, zones)) = &self.before {
            let seconds = now.saturating_sub(*before).as_secs_f64();
            let bytes = advanced(zones, &snapshot.zones);
            snapshot.written_bytes_per_second = (seconds > 0.0).then(|| bytes as f64 / seconds);
        }
        self.before = Some((now, snapshot.zones.clone()));
        Ok(snapshot)
    }

    /// The drive and what BlueFS's journal says, and whether the two belong together: the journal was
    /// whole, and it still is the one that counts.
    fn find(&self, user: &User) -> Result<(Found, bool), LookError> {
        let mut looks = 1;
        loop {
            let drive = Drive::observe(&self.path)?;
            let is_file = drive.as_file().is_some();
            let drive = BlueFs::view(Arc::new(drive))?;
            let geometry = drive.geometry().clone();
            let report = drive.report(ZoneId(0), geometry.zone_count)?;
            let seen = BlueFs::observe(&*drive, &report)?;
            let is_whole = seen.whole
                && (*user == User::Nobody
                    || BlueFs::probe(&Drive::observe(&self.path)?)?.generation
                        == seen.superblock.generation);
            if is_whole || looks == LOOKS {
                let found = Found {
                    geometry,
                    is_file,
                    report,
                    seen,
                };
                return Ok((found, is_whole));
            }
            looks += 1;
            self.runtime.wait_until(self.runtime.now() + PAUSE);
        }
    }

    /// Asks the server, if there is one, which of the active zones are open and what is live in those
    /// of the store.
    fn ask(
        &mut self,
        geometry: &Geometry,
        report: &mut [ZoneDescriptor],
    ) -> Result<Option<(u32, Vec<ZoneUse>)>, S::Error> {
        if self.server.is_none() {
            self.server = (self.connect)(&self.path)?;
        }
        let Some(server) = &self.server else {
            return Ok(None);
        };
        let mut uses = Vec::new();
        for (page, told) in report.chunks_mut(self.page as usize).enumerate() {
            let first = page as u32 * self.page;
            let count = self.page.min(geometry.zone_count - first);
            uses.extend(server.store_zones(first, count)?);
            // An active zone is open or closed; nothing else is missing from the file.
            if told.iter().any(|zone| zone.condition.is_active()) {
                let asked = server.zones(first, count)?;
                for (told, asked) in told.iter_mut().zip(asked) {
                    if told.condition.is_active() && asked.condition.is_active() {
                        told.condition = asked.condition;
                    }
                }
            }
        }
        Ok(Some((server.pid(), uses)))
    }
}
