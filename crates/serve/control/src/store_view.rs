//! A store to query and clean: mounted by this process, or served by a daemon.

use crate::api::{Action, Collection, Kind, Object, Objects};
use crate::client::Client;
use crate::error::{ClientError, ViewError};
use store::{
    Caches, CleanerStatus, CleaningJob, CleaningReport, CleaningStep, Health, Name, Statfs, Store,
    Waiting,
};

/// Objects per page of a listing.
const PAGE: usize = 1000;

type Answer<T> = Result<T, ViewError>;

/// A store to query and clean.
pub enum StoreView {
    /// Mounted by this process.
    Here(Store),
    /// Served by another process.
    Served(Client),
}

impl StoreView {
    /// What is missing because metadata is damaged. None for a served store: with damage, a server does not start.
    pub fn damage(&self) -> Answer<Vec<bluefs::Error>> {
        Ok(match self {
            Self::Here(store) => store.damage()?,
            Self::Served(_) => Vec::new(),
        })
    }

    /// Used and free space of the store.
    pub fn space(&self) -> Answer<Statfs> {
        Ok(match self {
            Self::Here(store) => store.statfs(),
            Self::Served(client) => client.space()?,
        })
    }

    /// Statistics of a server's read caches; `None` for a store that this process has only just mounted.
    pub fn caches(&self) -> Answer<Option<Caches>> {
        match self {
            Self::Here(_) => Ok(None),
            Self::Served(client) => or_older_server(client.caches().map(Some)),
        }
    }

    /// Requests that the drive has not answered for ten seconds or more. Never blocks.
    pub fn waiting(&self) -> Answer<Vec<Waiting>> {
        match self {
            Self::Here(store) => Ok(store.waiting()),
            Self::Served(client) => or_older_server(client.waiting()),
        }
    }

    /// Losses of data, and risks to it.
    pub fn health(&self) -> Answer<Health> {
        Ok(match self {
            Self::Here(store) => store.health()?,
            Self::Served(client) => client.health()?,
        })
    }

    /// All collections in order of their names.
    pub fn collections(&self) -> Answer<Vec<Collection>> {
        Ok(match self {
            Self::Here(store) => store
                .collections()?
                .into_iter()
                .map(Collection::from)
                .collect(),
            Self::Served(client) => client.collections()?,
        })
    }

    /// A page of objects in the collection's order, from a name on.
    fn objects(&self, collection: &str, prefix: &Name, from: &Name) -> Answer<Vec<Object>> {
        Ok(match self {
            Self::Here(store) => {
                let page = store.list(collection, prefix, from, PAGE)?;
                page.into_iter().map(Object::from).collect()
            }
            Self::Served(client) => {
                client.objects(&Objects::new(collection, prefix, from, PAGE))?
            }
        })
    }

    /// Calls `each` with every object whose name begins with `prefix`, in the collection's order, and returns their
    /// number.
    ///
    /// # Errors
    /// Also those of `each`.
    pub fn for_each_object<E: From<ViewError>>(
        &self,
        collection: &str,
        prefix: &[u8],
        mut each: impl FnMut(&Object) -> Result<(), E>,
    ) -> Result<u64, E> {
        let prefix = Name::from(prefix);
        let (mut count, mut shown) = (0, None);
        loop {
            let from = shown.clone().unwrap_or_default();
            let mut page = self.objects(collection, &prefix, &from)?;
            let more = page.len() == PAGE;
            // A page begins with the last name of the page before, which works in any order of a collection.
            page.retain(|object| shown.as_ref() != Some(&object.name));
            page.iter().try_for_each(&mut each)?;
            count += page.len() as u64;
            match page.pop() {
                Some(last) if more => shown = Some(last.name),
                _ => return Ok(count),
            }
        }
    }

    /// State of the cleaner, and its counters since the mount.
    pub fn cleaner(&self) -> Answer<CleanerStatus> {
        Ok(match self {
            Self::Here(store) => store.clean_status(),
            Self::Served(client) => client.cleaner()?,
        })
    }

    fn clean_step(&self, job: CleaningJob) -> Answer<CleaningStep> {
        Ok(match self {
            Self::Here(store) => store.clean_step(job)?,
            Self::Served(client) => client.clean(Action::One, Some(job))?.step,
        })
    }

    /// Cleans `most` zones, or until none has dead bytes, or until the cleaner is stopped. `each` is called with the
    /// number of zones cleaned so far and the number expected. Zones cleaned for other callers do not count.
    pub fn clean(
        &self,
        most: Option<u64>,
        each: &mut dyn FnMut(u64, u64),
    ) -> Answer<CleaningReport> {
        let before = self.cleaner()?;
        let all = most.unwrap_or(u64::MAX);
        let expected = u64::from(before.dirty_zones).min(all);
        let mut report = CleaningReport::default();
        let mut clean = |report: &mut CleaningReport| -> Answer<()> {
            while report.did.zones_cleaned < all && report.add(self.clean_step(before.job)?) {
                each(report.did.zones_cleaned, expected);
            }
            Ok(())
        };
        clean(&mut report)?;
        if most.is_none() && !report.stopped {
            let space = self.space()?;
            // More is dead than the tails of zones that were never written.
            if space.dead_bytes > space.unwritten_tail_bytes {
                // The other dead bytes lie in the zones that were written last.
                self.seal_open_zones()?;
                clean(&mut report)?;
            }
        }
        let after = self.cleaner()?;
        report.dirty_zones = after.dirty_zones;
        report.set_aside_zones = after.set_aside_zones;
        if matches!(self, Self::Here(_)) {
            report.mount_zones_reset = before.mount_zones_reset;
            report.mount_bytes_freed = before.mount_bytes_freed;
        }
        Ok(report)
    }

    /// Seals the zones that are being written, so that they can be cleaned too.
    pub fn seal_open_zones(&self) -> Answer<()> {
        match self {
            Self::Here(store) => store.seal_open_zones()?,
            Self::Served(client) => {
                client.clean(Action::Seal, None)?;
            }
        }
        Ok(())
    }
}

/// The default value, if the server is too old to know the call.
fn or_older_server<T: Default>(answer: Result<T, ClientError>) -> Answer<T> {
    match answer {
        Err(ClientError::Answered {
            kind: Kind::UnknownCall,
            ..
        }) => Ok(T::default()),
        answer => Ok(answer?),
    }
}
