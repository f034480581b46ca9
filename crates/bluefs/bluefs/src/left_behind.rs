//! What an earlier process has appended to logs and not synced, found beside the drive.

use crate::format::operation::Kind;
use crate::format::superblock::Superblock;
use crate::namespace::Namespace;
use crate::node::Node;
use crate::unsynced;
use device::ZonedDevice;
use std::sync::Arc;

/// Puts what an earlier process has left of logs behind what the drive has of them; true if it has left any.
pub(crate) fn recover_unsynced(
    device: &dyn ZonedDevice,
    superblock: &Superblock,
    names: &Namespace,
    read_only: bool,
) -> bool {
    let Some(memory) = device.host_memory() else {
        return false;
    };
    let Some(left) = memory.left_behind() else {
        return false;
    };
    let noted = unsynced::decode(&left, &superblock.uuid, superblock.journal_epoch);
    for node in names.nodes.values().filter(|n| n.kind == Kind::Log) {
        recover(node, &noted);
    }
    // Of another file system, or of another time. It must not pass for ours later.
    if noted.is_empty()
        && !read_only
        && let Err(error) = memory.clear()
    {
        tracing::warn!(%error, "what was kept beside the drive cannot be removed");
    }
    !noted.is_empty()
}

/// Puts what was noted of `node` behind what the drive has of it.
fn recover(node: &Node, noted: &[unsynced::Noted]) {
    let mut body = node.body.write();
    let mut pieces: Vec<_> = noted.iter().filter(|n| n.inode == node.inode).collect();
    pieces.sort_unstable_by_key(|n| n.offset);
    for piece in pieces {
        let size = body.size();
        if let Some(known) = size.checked_sub(piece.offset)
            && let Some(more) = usize::try_from(known)
                .ok()
                .and_then(|at| piece.bytes.get(at..))
        {
            Arc::make_mut(&mut body.tail).extend_from_slice(more);
        }
    }
}
