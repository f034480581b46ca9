//! Operations of [`BlueFs`] on paths. All paths start at the root, and are normalized first.

use crate::format::operation::JournalOperation;
use crate::fs::BlueFs;
use crate::handle::Handle;
use crate::info::{FileExtent, Metadata};
use crate::namespace::{MAX_PATH, kind_of, normal, parent};
use crate::node::Node;
use crate::reader::Reader;
use crate::state::State;
use crate::writer::Writer;
use crate::{Error, Result};
use runtime::sync::MutexGuard;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl BlueFs {
    /// Creates an empty file; a file of that name is replaced.
    pub fn create(&self, path: &str) -> Result<Writer> {
        let path = normal(path)?;
        self.create_in(self.growable()?, path)
    }

    fn create_in(&self, mut state: MutexGuard<'_, State>, path: String) -> Result<Writer> {
        require_parent(&state, &path)?;
        if state.names.is_directory(&path) {
            return Err(Error::IsDirectory { path });
        }
        let inode = state.names.next_inode;
        // Only a drive written with hostile intent has such a number.
        if inode == u64::MAX {
            return Err(Error::Invalid {
                path,
                what: "the next inode",
                found: inode,
                allowed: inode - 1,
            });
        }
        let (kind, modified_micros) = (kind_of(&path), self.shared.now());
        state.operate(JournalOperation::Create {
            inode,
            kind,
            modified_micros,
            path: path.clone(),
        });
        let handle = self.handle(&state, &path)?;
        let named_in = &handle.node.named_in;
        named_in.store(state.next_batch, Ordering::Release);
        drop(state);
        Ok(Writer::new(handle, path))
    }

    /// Opens a file for appending; creates it if it does not exist.
    pub fn reopen(&self, path: &str) -> Result<Writer> {
        match self.existing(path) {
            Err(Error::NotFound { .. }) => {}
            opened => return opened,
        }
        let path = normal(path)?;
        let state = self.growable()?;
        // Another thread may have created it meanwhile.
        match self.handle(&state, &path) {
            Err(Error::NotFound { .. }) => self.create_in(state, path),
            found => {
                let handle = found?;
                drop(state);
                Ok(Writer::new(handle, path))
            }
        }
    }

    /// Opens an existing file for appending.
    fn existing(&self, path: &str) -> Result<Writer> {
        let path = normal(path)?;
        let state = self.writable()?;
        let handle = self.handle(&state, &path)?;
        drop(state);
        Ok(Writer::new(handle, path))
    }

    /// Opens a file for reading.
    pub fn open(&self, path: &str) -> Result<Reader> {
        let path = normal(path)?;
        let state = self.readable()?;
        let handle = self.handle(&state, &path)?;
        drop(state);
        Ok(Reader::new(handle, self.later.clone()))
    }

    /// Whether there is a file or directory of that name.
    pub fn exists(&self, path: &str) -> bool {
        let Ok(path) = normal(path) else { return false };
        let state = self.shared.state.lock();
        state.names.is_directory(&path) || state.names.names.contains_key(&path)
    }

    /// Bytes of a log that were durable before this mount, as far as durability marks in later writes tell; bytes after
    /// them may have been durable as well.
    pub fn marked_durable(&self, path: &str) -> Result<u64> {
        let path = normal(path)?;
        let node = self.readable()?.names.node(&path)?.clone();
        Ok(node.body.read().marked)
    }

    /// Size, times, links and inode of a file or directory.
    pub fn metadata(&self, path: &str) -> Result<Metadata> {
        let path = normal(path)?;
        let state = self.readable()?;
        if state.names.is_directory(&path) {
            return Ok(Metadata {
                size: 0,
                modified_micros: 0,
                is_directory: true,
                links: 1,
                inode: 0,
            });
        }
        let node = state.names.node(&path)?;
        let body = node.body.read();
        Ok(Metadata {
            size: body.size(),
            modified_micros: body.modified_micros,
            is_directory: false,
            links: node.links.load(Ordering::Acquire),
            inode: node.inode,
        })
    }

    /// Whether two paths lead to one file or directory; both must be there.
    pub fn is_same(&self, first: &str, second: &str) -> Result<bool> {
        let (a, b) = (self.metadata(first)?, self.metadata(second)?);
        Ok(match (a.is_directory, b.is_directory) {
            // Directories have no inodes, but only one path each.
            (true, true) => normal(first)? == normal(second)?,
            (false, false) => a.inode == b.inode,
            _ => false,
        })
    }

    /// Names of the files and directories in a directory, sorted.
    pub fn list(&self, directory: &str) -> Result<Vec<String>> {
        let path = normal(directory)?;
        self.readable()?.names.children(&path)
    }

    /// Creates a directory.
    pub fn create_directory(&self, path: &str) -> Result<()> {
        let path = normal(path)?;
        let mut state = self.growable()?;
        if state.names.is_directory(&path) || state.names.names.contains_key(&path) {
            return Err(Error::Exists { path });
        }
        require_parent(&state, &path)?;
        state.operate(JournalOperation::MakeDirectory { path });
        Ok(())
    }

    /// Removes an empty directory.
    pub fn remove_directory(&self, path: &str) -> Result<()> {
        let path = normal(path)?;
        let mut state = self.writable()?;
        if !state.names.children(&path)?.is_empty() || path.is_empty() {
            return Err(Error::DirectoryNotEmpty { path });
        }
        state.operate(JournalOperation::RemoveDirectory { path });
        Ok(())
    }

    /// Removes a name of a file. The file's space is freed with its last name and handle.
    pub fn delete(&self, path: &str) -> Result<()> {
        let path = normal(path)?;
        let mut state = self.writable()?;
        state.names.node(&path)?;
        state.operate(JournalOperation::Unlink { path });
        Ok(())
    }

    /// Renames a file (replacing one of the new name) or a directory (whose new name must be free or that of an empty
    /// directory). Atomic; durable after [`Self::sync_metadata`]. As POSIX has it, nothing is done if both names are
    /// already those of one file or directory.
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        let (from, to) = (normal(from)?, normal(to)?);
        for _ in 0..self.shared.device.geometry().zone_count {
            if self.rename_in_room(&from, &to)? {
                return Ok(());
            }
            if !self.shared.make_space()? {
                break;
            }
        }
        Err(Error::NoSpace { free_zones: 0 })
    }

    /// False if space has to be made first for the longer paths below a directory.
    fn rename_in_room(&self, from: &str, to: &str) -> Result<bool> {
        let mut state = if to.len() > from.len() {
            self.growable()?
        } else {
            self.writable()?
        };
        require_parent(&state, to)?;
        let path = to.to_owned();
        if state.names.directories.contains(from) {
            if from == to {
                return Ok(true);
            }
            let taken = state.names.names.contains_key(to) || !children_free(&state, to);
            if taken || to.starts_with(&format!("{from}/")) {
                return Err(Error::Exists { path });
            }
            if to.len() + state.names.depth_below(from) > MAX_PATH {
                return Err(Error::BadPath { path });
            }
            if !self.shared.grow_names(&mut state, from, to) {
                return Ok(false);
            }
        } else {
            let inode = state.names.node(from)?.inode;
            if state.names.is_directory(to) {
                return Err(Error::IsDirectory { path });
            }
            if state.names.names.get(to) == Some(&inode) {
                return Ok(true);
            }
        }
        let (from, to) = (from.to_owned(), path);
        state.operate(JournalOperation::Rename { from, to });
        Ok(true)
    }

    /// Gives a file another name, which must not exist.
    pub fn link(&self, from: &str, to: &str) -> Result<()> {
        let (from, to) = (normal(from)?, normal(to)?);
        let mut state = self.growable()?;
        let inode = state.names.node(&from)?.inode;
        require_parent(&state, &to)?;
        if state.names.is_directory(&to) || state.names.names.contains_key(&to) {
            return Err(Error::Exists { path: to });
        }
        state.operate(JournalOperation::Link { inode, path: to });
        Ok(())
    }

    /// Truncates a file to `size` bytes.
    pub fn truncate(&self, path: &str, size: u64) -> Result<()> {
        self.existing(path)?.truncate(size)
    }

    /// The places of a file's bytes, in order, except those that are only buffered.
    pub fn extents(&self, path: &str) -> Result<Vec<FileExtent>> {
        let path = normal(path)?;
        let state = self.readable()?;
        let node = state.names.node(&path)?;
        let body = node.body.read();
        let extents = body.pieces.iter().map(|piece| FileExtent {
            file_offset: piece.file_offset,
            at: piece.at,
            length: piece.length,
        });
        Ok(extents.collect())
    }

    /// Takes a lock by name, which excludes other users of this mount only; [`Error::Locked`] if it is held.
    pub fn lock(&self, path: &str) -> Result<()> {
        let path = normal(path)?;
        let mut state = self.readable()?;
        if state.locks.insert(path.clone()) {
            Ok(())
        } else {
            Err(Error::Locked { path })
        }
    }

    /// Releases a lock.
    pub fn unlock(&self, path: &str) {
        if let Ok(path) = normal(path) {
            self.shared.state.lock().locks.remove(&path);
        }
    }

    /// The state for reading, which is still allowed after a failed flush.
    fn readable(&self) -> Result<MutexGuard<'_, State>> {
        if self.shared.unmounted.load(Ordering::Acquire) {
            return Err(Error::Unmounted);
        }
        Ok(self.shared.state.lock())
    }

    fn writable(&self) -> Result<MutexGuard<'_, State>> {
        self.shared.check_writable()?;
        let state = self.readable()?;
        state.check()?;
        Ok(state)
    }

    /// The state for adding a name, with space for it in the journal.
    fn growable(&self) -> Result<MutexGuard<'_, State>> {
        drop(self.writable()?);
        self.shared.check_room_for_names()?;
        self.writable()
    }

    fn handle(&self, state: &State, path: &str) -> Result<Handle> {
        let node: Arc<Node> = state.names.node(path)?;
        path.clone_into(&mut node.opened_as.lock());
        Ok(Handle::new(self.shared.clone(), node))
    }
}

fn require_parent(state: &State, path: &str) -> Result<()> {
    let parent = parent(path);
    if state.names.is_directory(parent) {
        return Ok(());
    }
    let path = parent.to_owned();
    Err(if state.names.names.contains_key(parent) {
        Error::NotDirectory { path }
    } else {
        Error::NotFound { path }
    })
}

/// Whether a directory may be renamed to this name: no directory has it, or an empty one.
fn children_free(state: &State, path: &str) -> bool {
    state
        .names
        .children(path)
        .map_or(true, |children| children.is_empty() && !path.is_empty())
}
