//! Removes the objects from a store that a list does not name. Both are read side by side in the same order.

use crate::error::Result;
use crate::listing::Collection;
use std::collections::VecDeque;
use store::{Name, Store, Transaction};

/// Objects listed, and removed, in one call.
const PAGE: usize = 256;

/// Receives the names of the list in order, and removes the store's objects between them.
pub struct Unlisted {
    store: Store,
    collections: Vec<Collection>,
    /// Index of the current collection.
    at: usize,
    /// The last name from the list in the current collection.
    last: Option<Name>,
    page: VecDeque<Name>,
    is_last_page: bool,
}

impl Unlisted {
    pub fn new(store: &Store, collections: &[Collection]) -> Self {
        Self {
            store: store.clone(),
            collections: collections.to_vec(),
            at: 0,
            last: None,
            page: VecDeque::new(),
            is_last_page: false,
        }
    }

    /// Takes the next object of the list. Objects of the store before it are removed, unless an earlier run `was_done`
    /// with this. Returns whether the store has the object.
    pub fn listed(&mut self, collection: usize, name: &Name, was_done: bool) -> Result<bool> {
        if was_done {
            if self.at != collection {
                self.begin(collection);
            }
            self.last = Some(name.clone());
            return Ok(true);
        }
        while self.at < collection {
            self.remove_until(None)?;
            self.begin(self.at + 1);
        }
        let found = self.remove_until(Some(name))?;
        self.last = Some(name.clone());
        Ok(found)
    }

    /// Called after the last object: removes all others.
    pub fn end(&mut self) -> Result<()> {
        while self.at < self.collections.len() {
            self.remove_until(None)?;
            self.begin(self.at + 1);
        }
        Ok(())
    }

    fn begin(&mut self, collection: usize) {
        self.at = collection;
        self.last = None;
        self.page.clear();
        self.is_last_page = false;
    }

    /// Removes the store's objects before this name, or all that are left; returns whether the store has the name.
    fn remove_until(&mut self, name: Option<&Name>) -> Result<bool> {
        let collection = self.collections[self.at].clone();
        let mut gone = Vec::new();
        let mut found = false;
        loop {
            if self.page.is_empty() || gone.len() >= PAGE {
                self.remove(&collection.name, &mut gone)?;
            }
            let Some(next) = self.next()? else { break };
            let (theirs, ours) = (
                collection.order(&next),
                name.map(|name| collection.order(name)),
            );
            if ours.is_some_and(|ours| theirs >= ours) {
                found = Some(theirs) == ours;
                if !found {
                    self.page.push_front(next);
                }
                break;
            }
            gone.push(next);
        }
        self.remove(&collection.name, &mut gone)?;
        Ok(found)
    }

    fn remove(&self, collection: &str, names: &mut Vec<Name>) -> Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        let mut transaction = Transaction::new();
        for name in names.drain(..) {
            transaction.remove_if_present(collection, &name);
        }
        Ok(self.store.commit(transaction)?)
    }

    /// The next object of the store. Objects up to the last name of the list may have been placed there since, and are
    /// skipped.
    fn next(&mut self) -> Result<Option<Name>> {
        if self.page.is_empty() && !self.is_last_page {
            let collection = &self.collections[self.at];
            let from = self.last.clone().unwrap_or_default();
            let page = self.store.list(&collection.name, "", &from, PAGE)?;
            self.is_last_page = page.len() < PAGE;
            let names = page.into_iter().map(|object| object.name);
            self.page = names
                .filter(|name| Some(name) != self.last.as_ref())
                .collect();
        }
        Ok(self.page.pop_front())
    }
}
