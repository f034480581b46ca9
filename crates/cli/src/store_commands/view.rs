//! A store to ask and to clean: mounted by this process, or through the control socket of its server.

use super::{Access, mount};
use crate::drive_file::{self, Opened};
use crate::errors::CommandResult;
use control::api::{Action, Collection, Kind, Object, Objects};
use control::{Client, ClientError};
use std::path::Path;
use store::{CleanerStatus, Health, Statfs, Store, Waiting};

/// A store to ask and to clean.
pub enum StoreView {
    /// Mounted by this process.
    Mounted(Store),
    /// Served by another one.
    Served(Client),
}

/// Mounts the store on a drive or finds its server, does the work, and unmounts it whether the work
/// failed or not.
pub fn with_view<T>(
    path: &Path,
    access: Access,
    work: impl FnOnce(&StoreView) -> CommandResult<T>,
) -> CommandResult<T> {
    let drive = match drive_file::open_or_ask(path, access == Access::Write)? {
        Opened::Drive(drive) => drive,
        Opened::Served(client) => return work(&StoreView::Served(client)),
    };
    let store = mount(drive, access)?;
    let done = work(&StoreView::Mounted(store.clone()));
    let stopped = store.unmount();
    let done = done?;
    stopped?;
    Ok(done)
}

impl StoreView {
    /// What is missing because metadata is damaged. A server has none: it would not have begun.
    pub fn damage(&self) -> CommandResult<Vec<bluefs::Error>> {
        Ok(match self {
            Self::Mounted(store) => store.damage()?,
            Self::Served(_) => Vec::new(),
        })
    }

    /// How the space is used.
    pub fn space(&self) -> CommandResult<Statfs> {
        Ok(match self {
            Self::Mounted(store) => store.statfs(),
            Self::Served(client) => client.space()?,
        })
    }

    /// What the drive has not answered for a while. Waits for nothing.
    pub fn waiting(&self) -> CommandResult<Vec<Waiting>> {
        match self {
            Self::Mounted(store) => Ok(store.waiting()),
            Self::Served(client) => or_older_server(client.waiting()),
        }
    }

    /// What is lost or at risk.
    pub fn health(&self) -> CommandResult<Health> {
        Ok(match self {
            Self::Mounted(store) => store.health()?,
            Self::Served(client) => client.health()?,
        })
    }

    /// All collections in order of their names.
    pub fn collections(&self) -> CommandResult<Vec<Collection>> {
        Ok(match self {
            Self::Mounted(store) => store
                .collections()?
                .into_iter()
                .map(|collection| Collection {
                    name: collection.name,
                    created_micros: collection.created_micros,
                })
                .collect(),
            Self::Served(client) => client.collections()?,
        })
    }

    /// A page of objects in order of their names.
    pub fn objects(&self, which: &Objects) -> CommandResult<Vec<Object>> {
        Ok(match self {
            Self::Mounted(store) => store
                .list(&which.collection, &which.prefix, &which.from, which.limit)?
                .into_iter()
                .map(|object| Object {
                    name: object.name,
                    size: object.size,
                    modified_micros: object.modified_micros,
                })
                .collect(),
            Self::Served(client) => client.objects(which)?,
        })
    }

    /// What the cleaner does and has done since the store was mounted.
    pub fn cleaner(&self) -> CommandResult<CleanerStatus> {
        Ok(match self {
            Self::Mounted(store) => store.clean_status(),
            Self::Served(client) => client.cleaner()?,
        })
    }

    /// Cleans one zone; false if there is none.
    pub fn clean_one(&self) -> CommandResult<bool> {
        Ok(match self {
            Self::Mounted(store) => store.clean_one()?,
            Self::Served(client) => client.clean(Action::One)?.cleaned,
        })
    }

    /// Leaves the zones that data goes to at present, so that they can be cleaned too.
    pub fn seal_open_zones(&self) -> CommandResult {
        match self {
            Self::Mounted(store) => store.seal_open_zones()?,
            Self::Served(client) => {
                client.clean(Action::Seal)?;
            }
        }
        Ok(())
    }
}

/// Nothing, where the server is of a version that does not know the question.
fn or_older_server<T: Default>(answer: Result<T, ClientError>) -> CommandResult<T> {
    match answer {
        Err(ClientError::Answered {
            kind: Kind::UnknownCall,
            ..
        }) => Ok(T::default()),
        answer => Ok(answer?),
    }
}
