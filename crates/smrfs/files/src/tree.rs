//! Checks that names form a tree: each name leads to an inode, each directory has one name, and each inode has as
//! many names as its link count says. A single record cannot show this, so the check comes after all records are
//! applied.

use crate::inode::{Content, ROOT};
use crate::state::State;
use std::collections::{BTreeMap, BTreeSet};

/// Reports each contradiction to `found`: its kind, and a description with the inode.
pub fn contradictions(state: &State, mut found: impl FnMut(&'static str, String)) {
    // Number of names of each inode, and number of child directories of each directory.
    let mut names: BTreeMap<u64, u32> = BTreeMap::new();
    let mut children: BTreeMap<u64, u32> = BTreeMap::new();
    for inode in state.inodes() {
        let dir = inode.attributes.ino;
        let Content::Directory(directory) = &inode.content else {
            continue;
        };
        for (name, entry) in &directory.entries {
            *names.entry(entry.ino).or_default() += 1;
            let shown = || String::from_utf8_lossy(name);
            match state.inode(entry.ino).map(|inode| &inode.content) {
                None => found("name", format!("{} in {dir} leads nowhere", shown())),
                Some(Content::Directory(child)) => {
                    *children.entry(dir).or_default() += 1;
                    if child.parent != dir {
                        found("parent", format!("{} in {dir} has another parent", shown()));
                    }
                }
                Some(_) => {}
            }
        }
        if inode.attributes.nlink == 0 && !directory.entries.is_empty() {
            found("links", format!("directory {dir} is gone and has entries"));
        }
    }
    for inode in state.inodes() {
        let (ino, nlink) = (inode.attributes.ino, inode.attributes.nlink);
        let count = names.get(&ino).copied().unwrap_or(0);
        let expected = match &inode.content {
            Content::Directory(_) if ino == ROOT || count == 1 => {
                2 + children.get(&ino).copied().unwrap_or(0)
            }
            _ => count,
        };
        if nlink != expected {
            found(
                "links",
                format!("inode {ino} has {nlink} links, {expected} are found"),
            );
        }
    }
    let (mut seen, mut next) = (BTreeSet::from([ROOT]), vec![ROOT]);
    while let Some(Content::Directory(directory)) =
        next.pop().and_then(|ino| Some(&state.inode(ino)?.content))
    {
        for entry in directory.entries.values() {
            let child = state.inode(entry.ino);
            if child.is_some_and(|child| child.attributes.is_directory()) {
                if seen.insert(entry.ino) {
                    next.push(entry.ino);
                } else {
                    found("tree", format!("directory {} has several names", entry.ino));
                }
            }
        }
    }
    for inode in state.inodes() {
        let attributes = inode.attributes;
        let ino = attributes.ino;
        if attributes.is_directory() && attributes.nlink > 0 && !seen.contains(&ino) {
            found("tree", format!("directory {ino} is not below the root"));
        }
    }
}
