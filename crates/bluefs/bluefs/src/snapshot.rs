//! Encodes all metadata as the frames with which an epoch of the journal begins.

use crate::format::operation::{JournalOperation, Kind};
use crate::journal::{Change, extent_operations, frame_of, payload_limit};
use crate::mirror::Mirror;
use crate::namespace::Namespace;
use crate::shared::{Shared, log_operations};
use crate::state::State;
use std::collections::BTreeSet;

impl Shared {
    /// All metadata, as the payloads of frames.
    pub fn snapshot(&self, state: &State) -> Vec<Vec<u8>> {
        self.snapshot_of(&state.names)
    }

    /// As [`Self::snapshot`], of other names.
    pub fn snapshot_of(&self, names: &Namespace) -> Vec<Vec<u8>> {
        let limit = payload_limit(&*self.device);
        let changes = snapshot(names, &*self.device, limit);
        let mut rest = &changes[..];
        let mut frames = Vec::new();
        while !rest.is_empty() {
            let (payload, count) = frame_of(rest, limit);
            frames.push(payload);
            rest = &rest[count..];
        }
        frames
    }
}

/// The operations that make all metadata from nothing.
fn snapshot(names: &Namespace, device: &dyn Mirror, limit: usize) -> Vec<Change> {
    let mut operations = vec![JournalOperation::NextInode {
        inode: names.next_inode,
    }];
    for zone in names.owned.iter().copied() {
        let twin = device.twin(zone);
        operations.extend(twin.map(|twin| JournalOperation::Twin { zone, twin }));
        operations.push(JournalOperation::Take { zone });
    }
    let directories = names.directories.iter();
    operations
        .extend(directories.map(|path| JournalOperation::MakeDirectory { path: path.clone() }));
    let mut made = BTreeSet::new();
    for (path, inode) in &names.names {
        let Some(node) = names.nodes.get(inode) else {
            continue;
        };
        let (inode, path) = (*inode, path.clone());
        if !made.insert(inode) {
            operations.push(JournalOperation::Link { inode, path });
            continue;
        }
        let body = node.body.read();
        let (kind, modified_micros) = (node.kind, body.modified_micros);
        operations.push(JournalOperation::Create {
            inode,
            kind,
            modified_micros,
            path,
        });
        if kind == Kind::Plain {
            operations.extend(extent_operations(
                inode,
                modified_micros,
                &body.pieces,
                limit,
            ));
        }
        operations.extend(log_operations(inode, &body, &body.segments));
    }
    operations.into_iter().map(Change::from).collect()
}
