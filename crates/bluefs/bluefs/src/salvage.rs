//! Going on behind damage in the journal, and what is lost by that.
//!
//! Frames behind one that cannot be read are carried out, in order, on what the frames in front of it made.
//! What the damaged one held is not known, and three things make that safe. A file whose name it held is
//! found by what later frames say of its number. A file that it removed may still have its name here while
//! its zone holds something else by now: so every file is compared with its checksums, and one that is not
//! what the journal says goes. And a zone that it gave away belongs to somebody else: so of the zones that
//! are ours, only those with something that has been found in them stay so.

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

/// Where files are put whose names are lost.
const FOUND: &str = "/lost+found";

/// What has to be said of every repair of a journal, for not all is known.
pub(crate) fn not_all_is_known(journal: &Journal) -> Loss {
    // Frames of the snapshot say that none was durable.
    let what = if journal.durable == 0 {
        "loses the list of files with which the journal began, or what came next: every file made before \
         that may be lost, whether it is listed or not"
    } else {
        "loses what the damaged frames held, of which not all can be named: a file that is not listed may \
         be missing, shorter, under an earlier name, or back"
    };
    loss("the file system", what)
}

/// What is there when all frames that can be read are carried out.
pub(crate) struct Salvaged {
    pub names: Namespace,
    /// What is known to be lost.
    pub losses: Vec<Loss>,
    /// Files that were removed.
    pub gone: HashSet<u64>,
    /// Zones with frames behind the damage.
    pub zones: BTreeSet<ZoneId>,
    /// Frames of those that were durable that cannot be read.
    pub missing: u64,
}

/// Carries out what can be read behind the end of `journal`, of which so many frames were `durable`.
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
    // Whoever asks has heard of one more, not of all.
    let durable = behind
        .values()
        .map(|frame| frame.durable)
        .fold(durable, u64::max);
    for (number, frame) in behind {
        // Behind the last that was durable it is a torn tail as ever.
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
    /// Of no use any more: their last name was removed.
    gone: HashSet<u64>,
    /// Files from here on that are unknown were made in what is damaged.
    first_unknown: u64,
    /// Files that have lost their end.
    truncated: BTreeSet<u64>,
    /// Names that should be those of files that are not known.
    unfilled: BTreeSet<String>,
}

impl Work {
    fn apply(&mut self, operation: &JournalOperation) {
        let nameless = self.names.apply(operation);
        self.gone.extend(nameless.iter().map(|node| node.inode));
    }

    /// Applies an operation that counts on others which may be missing.
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
            // Something in it may have been removed in what is damaged.
            JournalOperation::RemoveDirectory { path }
                if self.names.children(path).is_ok_and(|c| !c.is_empty()) =>
            {
                return;
            }
            _ => {}
        }
        self.apply(operation);
    }

    /// Makes a file that is not known, and was made in what is damaged.
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

    /// A file gets this name, in directories that may have been made in what is damaged.
    fn expect(&mut self, path: &str) {
        self.unfilled.remove(path);
        let mut directory = parent(path);
        while !self.names.is_directory(directory) {
            self.names.directories.insert(directory.to_owned());
            directory = parent(directory);
        }
    }

    /// Puts right what operations that are missing have left, and answers what is lost.
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

/// Adds an extent; false if something is missing in front of it or was truncated.
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
    // What lay here was truncated in what is damaged.
    body.truncate(extent.file_offset);
    body.pieces.push(extent);
    false
}
