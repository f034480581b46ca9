//! The source of snapshots: the drive itself, observed without a lock, and the server that has it open, if
//! there is one.

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

/// How often an observation is retried that was overtaken by the writer, and the pause in between.
const LOOKS: u32 = 8;
const PAUSE: Duration = Duration::from_millis(3);

/// Why a snapshot cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    /// The drive cannot be opened.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// The drive does not report its zones.
    #[error(transparent)]
    Zone(#[from] ZoneError),
    /// The drive has no file system, or none that can be read.
    #[error(transparent)]
    BlueFs(#[from] bluefs::Error),
}

/// The process that has a drive with a store open and answers requests about it.
pub trait Server {
    /// Why a request has no answer.
    type Error: std::fmt::Display;
    /// The process id of the server.
    fn pid(&self) -> u32;
    /// The drive's zone report of `count` zones from `first` on.
    fn zones(&self, first: u32, count: u32) -> Result<Vec<ZoneDescriptor>, Self::Error>;
    /// The store's use of `count` zones from `first` on.
    fn store_zones(&self, first: u32, count: u32) -> Result<Vec<ZoneUse>, Self::Error>;
}

/// The server type of a drive that is known to have none.
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
    /// A source for a drive without a server.
    pub fn alone(path: &Path, runtime: Runtime) -> Self {
        Self::new(path, u32::MAX, |_| Ok(None), runtime)
    }
}

/// Connects to the server of a drive; `None` if it has none.
pub type Connect<S> = fn(&Path) -> Result<Option<S>, <S as Server>::Error>;

/// Takes snapshots of one drive, repeatedly.
pub struct Source<S: Server> {
    path: PathBuf,
    /// Most zones in one request to the server.
    page: u32,
    connect: Connect<S>,
    server: Option<S>,
    before: Option<(Duration, Vec<ZoneView>)>,
    runtime: Runtime,
}

/// One observation: the drive's report and the state of its journal.
struct Found {
    geometry: Geometry,
    is_file: bool,
    report: Vec<ZoneDescriptor>,
    seen: Observation,
}

impl<S: Server> Source<S> {
    /// A source for the drive at `path`, whose server is asked for `page` zones at a time.
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

    /// Takes a snapshot.
    ///
    /// # Errors
    /// The drive cannot be read. A server that does not answer becomes a note of the snapshot.
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

    /// Observes the drive and the state of BlueFS's journal. The flag tells whether the two belong together:
    /// the journal was complete and is still the newest one.
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

    /// Asks the server, if there is one, which of the active zones are open, and for the live bytes of the
    /// store's zones.
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
            // An active zone is open or closed; the report of a drive file lacks only that.
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
