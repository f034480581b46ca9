//! Finds the objects that have not changed since an earlier backup. Both lists are read side by side in the same order.

use crate::error::Result;
use crate::listing::Collection;
use crate::since::Since;
use crate::sum::Sum;
use std::io::{Read, Seek};

/// Comparison with an earlier backup; to be asked about all objects of a store in the order of the list.
pub struct Changes<'a, R> {
    since: Option<&'a mut Since<R>>,
}

impl<'a, R: Read + Seek> Changes<'a, R> {
    /// Without an earlier backup, every object counts as changed.
    pub fn new(since: Option<&'a mut Since<R>>) -> Self {
        Self { since }
    }

    /// Whether there is an earlier backup.
    pub const fn is_incremental(&self) -> bool {
        self.since.is_some()
    }

    /// Whether the earlier backup has the object in this state, whole and in the same collection.
    pub fn has(&mut self, collection: &Collection, name: &[u8], state: Sum) -> Result<bool> {
        let Some(since) = self.since.as_deref_mut() else {
            return Ok(false);
        };
        loop {
            let Some(listed) = since.peek()?.cloned() else {
                return Ok(false);
            };
            let found = &since.collections[listed.collection];
            let is_here = found.is_same(collection);
            if found.name > collection.name || (found.name == collection.name && !is_here) {
                return Ok(false);
            }
            if is_here {
                let (theirs, ours) = (found.order(&listed.name), collection.order(name));
                if theirs > ours {
                    return Ok(false);
                }
                if theirs == ours {
                    return Ok(listed.state == state && listed.lost.is_empty());
                }
            }
            since.pop();
        }
    }

    /// The last checksum of the earlier backup.
    pub fn end(&mut self) -> Result<Option<Sum>> {
        self.since.as_deref_mut().map(Since::end).transpose()
    }
}
