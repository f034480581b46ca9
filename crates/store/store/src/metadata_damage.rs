//! Damage to metadata that a scrub has found in all copies, remembered for `store health` until a scrub does not find
//! it.
//!
//! It is in a file beside the database, not in it, because the database may be damaged and take no writes. Damage found
//! in rows is an entry in words, which a deep scrub that completes without finding it again removes. An entry for a file
//! ends with the file.

use crate::format::metadata_damage::{Entry, FILE_SYSTEM, MAX_ENTRIES, ROWS, decode, encode};
use crate::inner::Inner;
use crate::{Error, Result};
use bluefs::BlueFs;
use std::collections::BTreeSet;

const FILE: &str = "/damage";
/// Name under which a new version of the file is written before it is renamed.
const NEW: &str = "/damage.new";

/// For callers that report damage: turns an error that is damage into an entry of `damage`, once, and a default value.
pub(crate) fn or_name<T: Default>(looked: Result<T>, damage: &mut Vec<String>) -> Result<T> {
    match looked {
        Err(error) if error.is_damage() => {
            let what = error.to_string();
            if !damage.contains(&what) {
                damage.push(what);
            }
            Ok(T::default())
        }
        looked => looked,
    }
}

impl Inner {
    /// The remembered damage, in words.
    pub(crate) fn metadata_damage(&self) -> Vec<String> {
        let entries = match read(&self.fs) {
            Ok(entries) => entries,
            Err(why) => return vec![unreadable(&why)],
        };
        let there = entries.into_iter().filter(|entry| self.is_there(entry));
        there
            .map(|entry| match entry.inode {
                ROWS => entry.what,
                _ => format!("{} is damaged in all copies", entry.what),
            })
            .collect()
    }

    fn is_there(&self, entry: &Entry) -> bool {
        let is_same = |path: &str| self.fs.metadata(path).is_ok_and(|m| m.inode == entry.inode);
        matches!(entry.inode, ROWS | FILE_SYSTEM) || is_same(&entry.what)
    }

    /// Remembers exactly these files as damaged; paths that are no file stand for the file system itself.
    pub(crate) fn remember_lost_files(&self, paths: &[String]) -> Result<()> {
        self.change(|known| {
            let rows = known.iter().filter(|entry| entry.inode == ROWS).cloned();
            let files = paths.iter().filter_map(|path| {
                let inode = match self.fs.metadata(path) {
                    Ok(file) => file.inode,
                    // Removed since, so it is no loss.
                    Err(bluefs::Error::NotFound { .. }) if path.starts_with('/') => return None,
                    Err(_) => FILE_SYSTEM,
                };
                let before = known.iter().find(|e| e.inode == inode && e.what == *path);
                Some(before.cloned().unwrap_or_else(|| self.entry(inode, path)))
            });
            rows.chain(files).collect()
        })
    }

    /// Remembers damage found in rows, if that can be written; anew if it is known already.
    pub(crate) fn remember_damage(&self, error: &Error) {
        self.remember_damages(&[error.to_string()].into());
    }

    /// The same of several errors in words: the file is written once.
    pub(crate) fn remember_damages(&self, damage: &BTreeSet<String>) {
        let changed = self.change(|known| {
            let is_same = |entry: &&Entry| entry.inode == ROWS && damage.contains(&entry.what);
            let others = known.iter().filter(|entry| !is_same(entry)).cloned();
            let found = damage.iter().map(|what| self.entry(ROWS, what));
            others.chain(found).collect()
        });
        if let Err(error) = changed {
            tracing::error!(%error, ?damage, "damage that was found cannot be written down");
        }
    }

    /// Forgets damage that was last found in rows before `micros`, after a pass over them; true if none is left.
    pub(crate) fn forget_damage_of_rows(&self, micros: u64) -> Result<bool> {
        let mut is_gone = true;
        self.change(|known| {
            let is_left = |entry: &&Entry| entry.inode != ROWS || entry.found_micros >= micros;
            let left: Vec<_> = known.iter().filter(is_left).cloned().collect();
            is_gone = left.iter().all(|entry| entry.inode != ROWS);
            left
        })?;
        Ok(is_gone)
    }

    fn entry(&self, inode: u64, what: &str) -> Entry {
        Entry {
            inode,
            found_micros: self.runtime.unix_micros(),
            what: what.to_owned(),
        }
    }

    fn change(&self, change: impl FnOnce(&[Entry]) -> Vec<Entry>) -> Result<()> {
        let _alone = self.damage_file.lock();
        let found = read(&self.fs);
        // What it had is not known any more. So much is known until a scrub has looked at all rows.
        let known = found
            .as_ref()
            .map_or_else(|why| vec![self.entry(ROWS, &unreadable(why))], Vec::clone);
        let mut entries = change(&known);
        entries.truncate(MAX_ENTRIES);
        match entries.is_empty() {
            _ if found.is_ok() && known == entries => return Ok(()),
            true => self.fs.delete(FILE)?,
            false => {
                let mut file = self.fs.create(NEW)?;
                file.append(&encode(&entries))?;
                file.sync()?;
                file.close()?;
                self.fs.rename(NEW, FILE)?;
            }
        }
        Ok(self.fs.sync_metadata()?)
    }
}

fn unreadable(why: &str) -> String {
    format!("{FILE}, which says what a scrub has found: {why}")
}

/// The entries in the file; none if there is no file.
fn read(fs: &BlueFs) -> Result<Vec<Entry>, String> {
    let read = || {
        let file = fs.open(FILE)?;
        let mut bytes = vec![0; file.size() as usize];
        let length = file.read_at(0, &mut bytes)?;
        bytes.truncate(length);
        Ok(bytes)
    };
    match read() {
        Ok(bytes) => decode(&bytes).ok_or_else(|| "it cannot be decoded".to_owned()),
        Err(bluefs::Error::NotFound { .. }) => Ok(Vec::new()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
// A failed unwrap is a failed test.
#[allow(clippy::unwrap_used)]
mod tests;
