//! Names, directories and files in memory, and the effect of each journal operation on them. Replay and the mounted
//! file system share this code, so that a mount restores the same state.

use crate::format::operation::{JournalOperation, Kind};
use crate::node::{Node, Segment};
use crate::{Error, Result};
use runtime::HashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use zone::{ZoneAddress, ZoneId};

/// Longest path in bytes.
pub(crate) const MAX_PATH: usize = 4096;

/// All names of the file system and the files that they stand for.
#[derive(Clone, Default)]
pub(crate) struct Namespace {
    pub names: BTreeMap<String, u64>,
    pub directories: BTreeSet<String>,
    pub nodes: HashMap<u64, Arc<Node>>,
    /// The nodes that are logs, by inode.
    pub logs: BTreeMap<u64, Arc<Node>>,
    pub next_inode: u64,
    /// Zones for file data that BlueFS owns, used or not.
    pub owned: BTreeSet<ZoneId>,
}

/// `path` without repeated and trailing slashes, with `.` and `..` resolved; the root is empty. Fails with
/// [`Error::BadPath`] if the path is too long or contains a NUL.
pub(crate) fn normal(path: &str) -> Result<String> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    let normal: String = parts.iter().flat_map(|p| ["/", p]).collect();
    if normal.len() > MAX_PATH || path.contains('\0') {
        return Err(Error::BadPath {
            path: path.to_owned(),
        });
    }
    Ok(normal)
}

pub(crate) fn parent(path: &str) -> &str {
    path.rfind('/').map_or("", |at| &path[..at])
}

impl Namespace {
    pub fn new() -> Self {
        Self {
            next_inode: 1,
            ..Self::default()
        }
    }

    /// Whether an extent of a plain file begins at `at`.
    pub fn has_extent_from(&self, at: ZoneAddress) -> bool {
        let plain = self.nodes.values().filter(|n| n.kind == Kind::Plain);
        let mut bodies = plain.map(|node| node.body.read());
        bodies.any(|body| body.pieces.iter().any(|piece| piece.at == at))
    }

    pub fn is_directory(&self, path: &str) -> bool {
        path.is_empty() || self.directories.contains(path)
    }

    pub fn node(&self, path: &str) -> Result<Arc<Node>> {
        let inode = self.names.get(path).ok_or_else(|| {
            let path = path.to_owned();
            if self.is_directory(&path) {
                Error::IsDirectory { path }
            } else {
                Error::NotFound { path }
            }
        })?;
        self.nodes
            .get(inode)
            .cloned()
            .ok_or_else(|| Error::NotFound {
                path: path.to_owned(),
            })
    }

    /// One name of a file, for messages.
    pub fn path(&self, inode: u64) -> String {
        let named = self.names.iter().find(|(_, i)| **i == inode);
        named.map_or_else(
            || format!("a file without a name (inode {inode})"),
            |(path, _)| path.clone(),
        )
    }

    /// One name of each file that has one, by inode.
    pub fn paths(&self) -> HashMap<u64, &String> {
        // Of several names the first.
        let names = self.names.iter().rev();
        names.map(|(path, inode)| (*inode, path)).collect()
    }

    /// Paths of all files and directories below a directory, at any depth.
    pub fn below<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a String> {
        let from = (Bound::Included(format!("{path}/")), Bound::Unbounded);
        let is_below = move |name: &&String| {
            let rest = name.strip_prefix(path);
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        let names = self.names.range::<String, _>(from.clone());
        let names = names.map(|(name, _)| name).take_while(is_below);
        names.chain(
            self.directories
                .range::<String, _>(from)
                .take_while(is_below),
        )
    }

    /// Length in bytes of the longest path below a directory, less the directory's own path.
    pub fn depth_below(&self, path: &str) -> usize {
        let longest = self.below(path).map(String::len).max();
        longest.map_or(0, |longest| longest - path.len())
    }

    /// Names of a directory's direct children, sorted.
    pub fn children(&self, path: &str) -> Result<Vec<String>> {
        if !self.is_directory(path) {
            let path = path.to_owned();
            return Err(if self.names.contains_key(&path) {
                Error::NotDirectory { path }
            } else {
                Error::NotFound { path }
            });
        }
        let direct = |name: &String| {
            let rest = &name[path.len() + 1..];
            (!rest.contains('/')).then(|| rest.to_owned())
        };
        let mut children: Vec<_> = self.below(path).filter_map(direct).collect();
        children.sort_unstable();
        Ok(children)
    }

    /// Applies an operation. Returns the nodes that lost their last name; their space is free once they have no
    /// handles.
    pub fn apply(&mut self, operation: &JournalOperation) -> Vec<Arc<Node>> {
        let mut nameless = Vec::new();
        match operation {
            JournalOperation::MakeDirectory { path } => _ = self.directories.insert(path.clone()),
            JournalOperation::RemoveDirectory { path } => _ = self.directories.remove(path),
            JournalOperation::Create {
                inode,
                kind,
                modified_micros,
                path,
            } => {
                self.next_inode = self.next_inode.max(inode.saturating_add(1));
                let node = Arc::new(Node::new(*inode, *kind, *modified_micros));
                match kind {
                    Kind::Log => _ = self.logs.insert(*inode, node.clone()),
                    Kind::Plain => _ = self.logs.remove(inode),
                }
                self.nodes.insert(*inode, node);
                self.set_name(path, *inode, &mut nameless);
            }
            JournalOperation::Link { inode, path } => {
                if let Some(node) = self.nodes.get(inode) {
                    node.links.fetch_add(1, Ordering::Relaxed);
                    self.set_name(path, *inode, &mut nameless);
                }
            }
            JournalOperation::Unlink { path } => {
                if let Some(inode) = self.names.remove(path) {
                    self.drop_link(inode, &mut nameless);
                }
            }
            JournalOperation::Rename { from, to } => self.rename(from, to, &mut nameless),
            JournalOperation::Extend {
                inode,
                modified_micros,
                extents,
            } => {
                if let Some(node) = self.nodes.get(inode) {
                    let mut body = node.body.write();
                    body.modified_micros = *modified_micros;
                    for extent in extents {
                        if extent.file_offset >= body.written() {
                            body.pieces.push(*extent);
                        }
                    }
                }
            }
            JournalOperation::Move { inode, extents } => {
                if let Some(node) = self.nodes.get(inode) {
                    node.body.write().replace(extents.clone());
                }
            }
            JournalOperation::Truncate {
                inode,
                modified_micros,
                size,
            } => {
                if let Some(node) = self.nodes.get(inode) {
                    let mut body = node.body.write();
                    body.modified_micros = *modified_micros;
                    body.truncate(*size);
                }
            }
            JournalOperation::Take { zone } => _ = self.owned.insert(*zone),
            JournalOperation::Give { zone } => _ = self.owned.remove(zone),
            JournalOperation::LogSegment {
                inode,
                file_offset,
                offset,
                end,
                zone,
                run_id,
            } => {
                if let Some(node) = self.nodes.get(inode) {
                    let segment = Segment {
                        file_offset: *file_offset,
                        at: ZoneAddress::new(*zone, *offset),
                        end: *end,
                        limit: u64::MAX,
                        run_id: *run_id,
                    };
                    let mut body = node.body.write();
                    if !body.segments.iter().any(|s| s.at == segment.at) {
                        body.segments.push(segment);
                    }
                }
            }
            JournalOperation::LogTruncate { inode, size } => {
                if let Some(node) = self.nodes.get(inode) {
                    let segments = &mut node.body.write().segments;
                    for segment in segments.iter_mut() {
                        segment.limit = segment.limit.min(*size);
                    }
                    // The zone of a segment without live bytes may belong to another owner by now.
                    segments.retain(|s| s.limit > s.file_offset);
                }
            }
            JournalOperation::NextInode { inode } => self.next_inode = self.next_inode.max(*inode),
            JournalOperation::NextZone { .. }
            | JournalOperation::WrittenEnd { .. }
            | JournalOperation::Twin { .. } => {}
        }
        nameless
    }

    fn set_name(&mut self, path: &str, inode: u64, nameless: &mut Vec<Arc<Node>>) {
        if let Some(old) = self.names.insert(path.to_owned(), inode) {
            self.drop_link(old, nameless);
        }
    }

    fn drop_link(&mut self, inode: u64, nameless: &mut Vec<Arc<Node>>) {
        let Some(node) = self.nodes.get(&inode) else {
            return;
        };
        if node.links.fetch_sub(1, Ordering::Relaxed) == 1
            && let Some(node) = self.nodes.remove(&inode)
        {
            self.logs.remove(&inode);
            nameless.push(node);
        }
    }

    fn rename(&mut self, from: &str, to: &str, nameless: &mut Vec<Arc<Node>>) {
        if from == to {
            return;
        }
        if let Some(inode) = self.names.remove(from) {
            self.set_name(to, inode, nameless);
            return;
        }
        if !self.directories.remove(from) {
            return;
        }
        self.directories.insert(to.to_owned());
        let moved: Vec<_> = self.below(from).cloned().collect();
        for name in moved {
            let new = format!("{to}{}", &name[from.len()..]);
            if self.directories.remove(&name) {
                self.directories.insert(new);
            } else if let Some(inode) = self.names.remove(&name) {
                self.names.insert(new, inode);
            }
        }
    }
}

/// Write-ahead logs (`000012.log`) and manifests are logs; everything else is plain.
pub(crate) fn kind_of(path: &str) -> Kind {
    let name = &path[path.rfind('/').map_or(0, |at| at + 1)..];
    let wal = name
        .strip_suffix(".log")
        .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    if wal || name.starts_with("MANIFEST-") {
        Kind::Log
    } else {
        Kind::Plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_one_form() {
        for path in ["/a/b", "//a//b/", "/a/./b", "/a/x/../b"] {
            assert_eq!(normal(path).unwrap(), "/a/b");
        }
        assert_eq!(normal("/").unwrap(), "");
        assert!(normal("a\0").is_err());
        // With the slash that a relative path lacks.
        let longest = "a".repeat(MAX_PATH - 1);
        assert!(normal(&format!("{longest}a")).is_err());
        let found = normal(&longest).unwrap();
        assert_eq!(normal(&format!("{found}/")).unwrap(), found);
    }

    #[test]
    fn logs_are_known_by_their_names() {
        assert_eq!(kind_of("/db/000012.log"), Kind::Log);
        assert_eq!(kind_of("/db/MANIFEST-000004"), Kind::Log);
        for plain in [
            "/db/LOG",
            "/db/.log",
            "/db/000012.sst",
            "/db/x.log",
            "/db/CURRENT",
        ] {
            assert_eq!(kind_of(plain), Kind::Plain, "{plain}");
        }
    }

    #[test]
    fn renaming_a_directory_takes_along_what_is_in_it() {
        let mut n = Namespace::new();
        let dir = |path: &str| JournalOperation::MakeDirectory { path: path.into() };
        let file = |inode, path: &str| JournalOperation::Create {
            inode,
            kind: Kind::Plain,
            modified_micros: 0,
            path: path.into(),
        };
        for op in [
            dir("/a"),
            dir("/a/b"),
            file(1, "/a/f"),
            file(2, "/a/b/g"),
            file(3, "/ab"),
        ] {
            n.apply(&op);
        }
        n.apply(&JournalOperation::Rename {
            from: "/a".into(),
            to: "/z".into(),
        });
        assert_eq!(n.children("").unwrap(), ["ab", "z"]);
        assert_eq!(n.children("/z").unwrap(), ["b", "f"]);
        assert_eq!(n.children("/z/b").unwrap(), ["g"]);
        assert!(n.children("/a").is_err());
    }
}
