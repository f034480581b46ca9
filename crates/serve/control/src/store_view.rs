//! A store to ask and to clean: mounted by this process, or asked of the daemon that serves it.

use crate::api::{Action, Collection, Kind, Object, Objects};
use crate::client::Client;
use crate::error::{ClientError, ViewError};
use store::{CleanerStatus, Health, Statfs, Store, Waiting};

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

    /// A page of objects in order of their names.
    pub fn objects(&self, which: &Objects) -> Answer<Vec<Object>> {
        Ok(match self {
            Self::Here(store) => store
                .list(&which.collection, &which.prefix, &which.from, which.limit)?
                .into_iter()
                .map(Object::from)
                .collect(),
            Self::Served(client) => client.objects(which)?,
        })
    }

    /// What the cleaner does and has done since the store was mounted.
    pub fn cleaner(&self) -> Answer<CleanerStatus> {
        Ok(match self {
            Self::Here(store) => store.clean_status(),
            Self::Served(client) => client.cleaner()?,
        })
    }

    /// Cleans one zone; false if there is none.
    pub fn clean_one(&self) -> Answer<bool> {
        Ok(match self {
            Self::Here(store) => store.clean_one()?,
            Self::Served(client) => client.clean(Action::One)?.cleaned,
        })
    }

    /// Leaves the zones that data goes to at present, so that they can be cleaned too.
    pub fn seal_open_zones(&self) -> Answer<()> {
        match self {
            Self::Here(store) => store.seal_open_zones()?,
            Self::Served(client) => {
                client.clean(Action::Seal)?;
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
