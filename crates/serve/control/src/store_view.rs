//! A store to ask and to clean: mounted by this process, or asked of the daemon that serves it.

use crate::api::{Action, Collection, Kind, Object, Objects};
use crate::client::Client;
use crate::error::{ClientError, ViewError};
use store::{
    Caches, CleanerStatus, CleaningJob, CleaningReport, CleaningStep, Health, Name, Statfs, Store,
    Waiting,
};

/// Objects listed at once.
const PAGE: usize = 1000;

type Answer<T> = Result<T, ViewError>;

/// A store to ask and to clean.
pub enum StoreView {
    /// Mounted by this process.
    Here(Store),
    /// Served by another one.
    Served(Client),
}

impl StoreView {
    /// What is missing because metadata is damaged. A server has none: it would not have begun.
    pub fn damage(&self) -> Answer<Vec<bluefs::Error>> {
        Ok(match self {
            Self::Here(store) => store.damage()?,
            Self::Served(_) => Vec::new(),
        })
    }

    /// How the space is used.
    pub fn space(&self) -> Answer<Statfs> {
        Ok(match self {
            Self::Here(store) => store.statfs(),
            Self::Served(client) => client.space()?,
        })
    }

    /// What a server keeps in memory of what it has read; `None` of a store that this process has only just mounted.
    pub fn caches(&self) -> Answer<Option<Caches>> {
        match self {
            Self::Here(_) => Ok(None),
            Self::Served(client) => or_older_server(client.caches().map(Some)),
        }
    }

    /// What the drive has not answered for a while. Waits for nothing.
    pub fn waiting(&self) -> Answer<Vec<Waiting>> {
        match self {
            Self::Here(store) => Ok(store.waiting()),
            Self::Served(client) => or_older_server(client.waiting()),
        }
    }

    /// What is lost or at risk.
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

    /// Shows `each` every object whose name begins with `prefix`, in the collection's order, and answers
    /// how many there are.
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
            // A page begins with the last name of the one before, whatever the collection's order is.
            page.retain(|object| shown.as_ref() != Some(&object.name));
            page.iter().try_for_each(&mut each)?;
            count += page.len() as u64;
            match page.pop() {
                Some(last) if more => shown = Some(last.name),
                _ => return Ok(count),
            }
        }
    }

    /// How many objects have names that begin with `prefix`, and their bytes.
    pub fn total(&self, collection: &str, prefix: &[u8]) -> Answer<(u64, u64)> {
        let mut bytes = 0;
        let count = self.for_each_object(collection, prefix, |object| {
            bytes += object.size;
            Ok::<_, ViewError>(())
        })?;
        Ok((count, bytes))
    }

    /// What the cleaner does and has done since the store was mounted.
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

    /// Cleans `most` zones, or until none has dead bytes, or until somebody stops the cleaner; `each` is told how
    /// many that are so far, and of how many. What others clean meanwhile is not counted.
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
            // More than tails that were never written.
            if space.dead_bytes > space.unwritten_tail_bytes {
                // What is left lies in the zones that data was going to last.
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

    /// Leaves the zones that data goes to at present, so that they can be cleaned too.
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

/// Nothing, where the server is of a version that does not know the question.
fn or_older_server<T: Default>(answer: Result<T, ClientError>) -> Answer<T> {
    match answer {
        Err(ClientError::Answered {
            kind: Kind::UnknownCall,
            ..
        }) => Ok(T::default()),
        answer => Ok(answer?),
    }
}
