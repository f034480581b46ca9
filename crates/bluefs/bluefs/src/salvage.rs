//! Continues after damage in the journal, and finds out what is lost by that.
//!
//! Frames after the unreadable ones are applied, in order, to the result of the frames before. The content of a damaged
//! frame is not known, and three rules make that safe. A file whose name it held is found by the inode in later frames.
//! A file that it removed may still have its name here while its zone holds other data by now: so every file is
//! compared with its checksums, and a file that does not match is removed. A zone that it gave back belongs to another
//! owner: so of BlueFS's zones, only those remain BlueFS's in which live data has been found.

use crate::Result;
use crate::format::operation::{ExtentEntry, JournalOperation, Kind};
use crate::frames_behind::frames_behind;
use crate::journal::Journal;
use crate::loss::{Loss, loss};
use crate::mirror::Mirror;
use crate::namespace::{Namespace, parent};
use crate::node::{Body, is_there};
use runtime::HashSet;
use std::collections::BTreeSet;
use zone::{ZoneDescriptor, ZoneId};

/// Directory for files whose names are lost.
const FOUND: &str = "/lost+found";

/// A loss that is reported for every repair of a journal, because the damaged frames' content is not known.
pub(crate) fn not_all_is_known(journal: &Journal) -> Loss {
    // The snapshot's frames record no durable frames.
    let what = if journal.durable == 0 {
        "loses the list of files with which the journal began, or what came next: every file made before \
         that may be lost, whether it is listed or not"
    } else {
        "loses what the damaged frames held, of which not all can be named: a file that is not listed may \
         be missing, shorter, under an earlier name, or back"
    };
    loss("the file system", what)
}

/// The metadata after all readable frames were applied.
pub(crate) struct Salvaged {
    pub names: Namespace,
    /// Known losses.
    pub losses: Vec<Loss>,
    /// Inodes of files that were removed.
    pub gone: HashSet<u64>,
    /// Zones with frames behind the damage.
    pub zones: BTreeSet<ZoneId>,
    /// Number of durable frames that cannot be read.
    pub missing: u64,
}

/// Applies the readable frames after the end of `journal`, whose first frame is in zone `first`; `durable` frames of it
/// were durable.
pub(crate) fn salvage(
    device: &dyn Mirror,
    report: &[ZoneDescriptor],
    first: ZoneId,
    journal: &Journal,
    durable: u64,
) -> Result<Salvaged> {
    let mut work = Work::default();
    let mut each = |number: u64, operations: Vec<JournalOperation>| {
        if number < journal.next_frame {
            for operation in &operations {
                work.apply(operation);
            }
        }
        number < journal.next_frame
    };
    Journal::replay(device, journal.epoch, first, &mut each)?;
    work.first_unknown = work.names.next_inode;
    let mut salvaged = Salvaged {
        names: Namespace::new(),
        losses: Vec::new(),
        gone: HashSet::default(),
        zones: BTreeSet::new(),
        missing: 0,
    };
    let mut next = journal.next_frame;
    let behind = frames_behind(device, journal, &work.names, report);
    // The caller knows of at least one missing frame, perhaps not of all.
    let durable = behind
        .values()
        .map(|frame| frame.durable)
        .fold(durable, u64::max);
    for (number, frame) in behind {
        // After the last durable frame, an incomplete one is an ordinary torn tail.
        let missing = |op: &JournalOperation| {
            matches!(op, JournalOperation::Extend { extents, .. } | JournalOperation::Move { extents, .. }
                if extents.iter().any(|e| !is_there(device, report, e)))
        };
        if number >= durable && (number > next || frame.operations.iter().any(missing)) {
            break;
        }
        salvaged.missing += number - next;
        next = number + 1;
        salvaged.zones.insert(frame.zone);
        for operation in &frame.operations {
            if let JournalOperation::Twin { zone, twin } = operation {
                device.pair(*zone, *twin);
            }
            work.carry_out(operation);
        }
    }
    salvaged.missing += durable.saturating_sub(next);
    salvaged.losses = work.finish();
    salvaged.gone = work.gone;
    salvaged.names = work.names;
    Ok(salvaged)
}

#[derive(Default)]
struct Work {
    names: Namespace,
    /// Inodes whose last name was removed; the inodes are never used again.
    gone: HashSet<u64>,
    /// Lowest inode that no frame before the damage used: unknown files from here on were made in damaged frames.
    first_unknown: u64,
    /// Files whose ends are lost.
    truncated: BTreeSet<u64>,
    /// Names that should belong to files that are not known.
    unfilled: BTreeSet<String>,
}

impl Work {
    fn apply(&mut self, operation: &JournalOperation) {
        let nameless = self.names.apply(operation);
        self.gone.extend(nameless.iter().map(|node| node.inode));
    }

    /// Applies an operation that may build on operations in damaged frames.
    fn carry_out(&mut self, operation: &JournalOperation) {
        self.find(operation);
        match operation {
            JournalOperation::Extend {
                inode,
                extents,
                modified_micros,
            } => {
                if let Some(node) = self.names.nodes.get(inode) {
                    let mut body = node.body.write();
                    body.modified_micros = *modified_micros;
                    if !extents.iter().all(|extent| extend(&mut body, *extent)) {
                        self.truncated.insert(*inode);
                    }
                }
                return;
            }
            JournalOperation::Create { path, .. } | JournalOperation::Link { path, .. } => {
                self.expect(path)
            }
            JournalOperation::Unlink { path } => _ = self.unfilled.remove(path),
            JournalOperation::Rename { from, to } => {
                self.expect(to);
                if !self.names.names.contains_key(from) && !self.names.is_directory(from) {
                    self.unfilled.insert(to.clone());
                }
            }
            // Its entries may have been removed in damaged frames.
            JournalOperation::RemoveDirectory { path }
                if self.names.children(path).is_ok_and(|c| !c.is_empty()) =>
            {
                return;
            }
            _ => {}
        }
        self.apply(operation);
    }

    /// Makes the operation's file, under [`FOUND`], if it was made in a damaged frame.
    fn find(&mut self, operation: &JournalOperation) {
        let (inode, kind) = match operation {
            JournalOperation::Link { inode, .. }
            | JournalOperation::Extend { inode, .. }
            | JournalOperation::Move { inode, .. }
            | JournalOperation::Truncate { inode, .. } => (*inode, Kind::Plain),
            JournalOperation::LogSegment { inode, .. }
            | JournalOperation::LogTruncate { inode, .. } => (*inode, Kind::Log),
            _ => return,
        };
        if inode < self.first_unknown
            || self.names.nodes.contains_key(&inode)
            || self.gone.contains(&inode)
        {
            return;
        }
        self.apply(&JournalOperation::Create {
            inode,
            kind,
            modified_micros: 0,
            path: found(inode),
        });
    }

    /// Prepares for a file to get this name, and makes its directories, which may have been made in damaged frames.
    fn expect(&mut self, path: &str) {
        self.unfilled.remove(path);
        let mut directory = parent(path);
        while !self.names.is_directory(directory) {
            self.names.directories.insert(directory.to_owned());
            directory = parent(directory);
        }
    }

    /// Repairs the effects of missing operations, and returns the losses.
    fn finish(&mut self) -> Vec<Loss> {
        let mut losses = Vec::new();
        let mut unnamed = Vec::new();
        for (inode, node) in &self.names.nodes {
            let mut body = node.body.write();
            let mut next = 0;
            let hole = body.pieces.iter().position(|piece| {
                let is_hole = piece.file_offset != next;
                next = piece.file_offset + piece.length;
                is_hole
            });
            if let Some(hole) = hole {
                body.pieces.truncate(hole);
                self.truncated.insert(*inode);
            }
            if self.names.names.get(&found(*inode)) == Some(inode) {
                let begins = body.segments.first().is_some_and(|s| s.file_offset == 0);
                unnamed.push((*inode, body.written() > 0 || begins));
            }
        }
        unnamed.sort_unstable();
        for (inode, has_content) in unnamed {
            let path = found(inode);
            let has_a_name = self
                .names
                .names
                .iter()
                .any(|(name, i)| *i == inode && *name != path);
            if has_content && !has_a_name {
                losses.push(loss(&path, "is a file whose name is lost"));
                self.expect(&path);
                continue;
            }
            self.apply(&JournalOperation::Unlink { path });
            if !has_a_name {
                losses.push(loss(
                    &format!("a file whose name is lost (inode {inode})"),
                    "is lost",
                ));
            }
        }
        for (path, inode) in &self.names.names {
            if let Some(node) = self
                .names
                .nodes
                .get(inode)
                .filter(|_| self.truncated.contains(inode))
            {
                let size = node.body.read().written();
                losses.push(loss(path, format!("is truncated to {size} bytes")));
            }
        }
        for path in &self.unfilled {
            losses.push(match self.names.names.contains_key(path) {
                true => loss(path, "goes back to the file that it was before"),
                false => loss(path, "is lost"),
            });
        }
        losses
    }
}

fn found(inode: u64) -> String {
    format!("{FOUND}/inode-{inode}")
}

/// Adds an extent. False if bytes before it are missing, or if it replaces bytes that a missing operation truncated.
fn extend(body: &mut Body, extent: ExtentEntry) -> bool {
    if extent.file_offset > body.written() {
        return false;
    }
    let holder = body
        .pieces
        .iter()
        .find(|p| (p.file_offset..p.file_offset + p.length).contains(&extent.file_offset));
    let Some(holder) = holder else {
        body.pieces.push(extent);
        return true;
    };
    let inside = extent.file_offset - holder.file_offset;
    if holder.at.zone == extent.at.zone && holder.at.offset + inside == extent.at.offset {
        return true;
    }
    // The bytes here were truncated in a damaged frame.
    body.truncate(extent.file_offset);
    body.pieces.push(extent);
    false
}
