//! Damage to metadata that a scrub has found in all copies, kept for `store health` until it is found no more.
//!
//! It is in a file beside the database and not in it: the database may be what is damaged, and take no writes. What a scrub
//! meets when it reads rows is an entry in words, which the next deep scrub that comes through takes away. An entry of a file
//! ends with the file.

use crate::format::metadata_damage::{Entry, FILE_SYSTEM, MAX_ENTRIES, ROWS, decode, encode};
use crate::inner::Inner;
use crate::{Error, Result};
use bluefs::BlueFs;

const FILE: &str = "/damage";
/// It is written here first.
const NEW: &str = "/damage.new";

/// To whoever looks at what is damaged, a row that cannot be read is a finding too: it is named, once.
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
    /// What is known, in words.
    pub(crate) fn metadata_damage(&self) -> Vec<String> {
        let entries = match read(&self.fs) {
            Ok(entries) => entries,
            Err(why) => return vec![format!("{FILE}, which says what a scrub has found: {why}")],
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

    /// Remembers these files as the ones that are damaged, and what else of the file system is, by its name.
    pub(crate) fn remember_lost_files(&self, paths: &[String]) -> Result<()> {
        self.change(|known| {
            let rows = known.iter().filter(|entry| entry.inode == ROWS).cloned();
            let files = paths.iter().map(|path| {
                let inode = self
                    .fs
                    .metadata(path)
                    .map_or(FILE_SYSTEM, |file| file.inode);
                let before = known.iter().find(|e| e.inode == inode && e.what == *path);
                before.cloned().unwrap_or_else(|| self.entry(inode, path))
            });
            rows.chain(files).collect()
        })
    }

    /// Remembers what reading rows has run into.
    pub(crate) fn remember_damage(&self, error: &Error) -> Result<()> {
        let what = error.to_string();
        self.change(|known| match known.iter().any(|entry| entry.what == what) {
            true => known.to_vec(),
            false => known
                .iter()
                .cloned()
                .chain([self.entry(ROWS, &what)])
                .collect(),
        })
    }

    /// All rows could be read.
    pub(crate) fn forget_damage_of_rows(&self) -> Result<()> {
        self.change(|known| {
            let others = known.iter().filter(|entry| entry.inode != ROWS);
            others.cloned().collect()
        })
    }

    fn entry(&self, inode: u64, what: &str) -> Entry {
        Entry {
            inode,
            found_micros: self.runtime.unix_micros(),
            what: what.to_owned(),
        }
    }

    fn change(&self, change: impl FnOnce(&[Entry]) -> Vec<Entry>) -> Result<()> {
        let known = read(&self.fs);
        let mut entries = change(known.as_deref().unwrap_or_default());
        entries.truncate(MAX_ENTRIES);
        match (entries.is_empty(), &known) {
            _ if known.as_ref().is_ok_and(|known| *known == entries) => return Ok(()),
            (true, _) => self.fs.delete(FILE)?,
            (false, _) => {
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

/// Nothing, if there is no such file.
fn read(fs: &BlueFs) -> Result<Vec<Entry>, String> {
    if !fs.exists(FILE) {
        return Ok(Vec::new());
    }
    let read = || {
        let file = fs.open(FILE)?;
        let mut bytes = vec![0; file.size() as usize];
        let length = file.read_at(0, &mut bytes)?;
        bytes.truncate(length);
        Ok(bytes)
    };
    let bytes = read().map_err(|error: bluefs::Error| error.to_string())?;
    decode(&bytes).ok_or_else(|| "it cannot be decoded".to_owned())
}
