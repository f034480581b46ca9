//! Recovers unsynced bytes of logs that an earlier process has left beside the drive.

use crate::Result;
use crate::format::operation::Kind;
use crate::format::superblock::Superblock;
use crate::namespace::Namespace;
use crate::node::Node;
use crate::unsynced::{self, Noted};
use device::ZonedDevice;
use std::sync::Arc;

/// Appends the recovered bytes to the logs in memory, and returns the notes of this file system. Fails if there may be
/// some that cannot be read, or others that a mount for writing cannot remove.
pub(crate) fn recover_unsynced(
    device: &dyn ZonedDevice,
    superblock: &Superblock,
    names: &Namespace,
    read_only: bool,
) -> Result<Vec<Noted>> {
    let Some(memory) = device.host_memory() else {
        return Ok(Vec::new());
    };
    let Some(left) = memory.left_behind().map_err(Arc::new)? else {
        return Ok(Vec::new());
    };
    let noted = unsynced::decode(&left, &superblock.uuid, superblock.journal_epoch);
    for node in names.nodes.values().filter(|n| n.kind == Kind::Log) {
        recover(node, &noted);
    }
    // Each epoch that begins writes its number before the notes that are there: those of another file system or of another
    // epoch would count from then on.
    if noted.is_empty() && !read_only {
        let stay = |error| Arc::new(memory.other_notes(error));
        memory.clear().map_err(stay)?;
    }
    Ok(noted)
}

/// Appends the noted bytes of one log that continue its written bytes.
fn recover(node: &Node, noted: &[Noted]) {
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
