//! The part of a mount that reads metadata: the journal as far as it counts, the records of logs, and the damage in
//! both.

use crate::format::operation::{JournalOperation, Kind};
use crate::format::superblock::{Role, Superblock};
use crate::journal::Journal;
use crate::loss::Loss;
use crate::marks::Marks;
use crate::mirror::Mirror;
use crate::namespace::Namespace;
use crate::node::is_there;
use crate::options::MountOptions;
use crate::ring::ring_zones;
use crate::salvage::{not_all_is_known, salvage};
use crate::scan::{self, scan_log};
use crate::torn::journal_lacks;
use crate::{Error, Result};
use runtime::HashMap;
use std::collections::{BTreeMap, BTreeSet};
use zone::{ZoneAddress, ZoneCondition, ZoneDescriptor, ZoneId};

/// Result of reading the metadata.
pub(crate) struct Replayed {
    pub names: Namespace,
    pub journal: Journal,
    /// The drive's report of its zones, with each pair as one zone.
    pub report: Vec<ZoneDescriptor>,
    /// Zones in which data that the journal names is missing.
    pub lacking: BTreeSet<ZoneId>,
    /// Extents, by inode and place, that are missing although their frame was durable.
    pub missing: BTreeSet<(u64, ZoneAddress)>,
    /// Damage: data that was durable and is now wrong or missing.
    pub damage: Vec<Error>,
    /// If the journal is damaged: the known losses of continuing after the damage.
    pub losses: Option<Vec<Loss>>,
}

/// Reads journal and logs. If the journal is damaged, the frames after the damage are salvaged too.
pub(crate) fn read(
    device: &dyn Mirror,
    superblock: &Superblock,
    options: &MountOptions,
) -> Result<Replayed> {
    let mut marks = Marks::new(superblock.journal_epoch, superblock.journal_frames);
    let (names, journal, report, lacking) = replay(device, superblock, &mut marks)?;
    let damage = find_damage(device, &report, &names, &journal, &[], &mut marks)?;
    let mut replayed = Replayed {
        names,
        journal,
        report,
        lacking,
        missing: BTreeSet::new(),
        damage,
        losses: None,
    };
    if replayed.journal.next_frame < marks.frames {
        replayed.go_on_behind_damage(device, superblock, options, &mut marks)?;
    }
    replayed.missing = missing(device, &replayed.report, &replayed.names);
    Ok(replayed)
}

impl Replayed {
    fn go_on_behind_damage(
        &mut self,
        device: &dyn Mirror,
        superblock: &Superblock,
        options: &MountOptions,
        marks: &mut Marks,
    ) -> Result<()> {
        let g = device.geometry();
        let (report, journal) = (&self.report, &mut self.journal);
        let found = salvage(
            device,
            report,
            superblock.journal_zone,
            journal,
            marks.frames,
        )?;
        let mut names = found.names;
        // Searches again, with the logs that are known now and, if no store shares the drive, also in zones without an
        // owner: damaged frames may have taken them.
        let alone = superblock.role == Role::Alone;
        let fixed = ring_zones(g).concat();
        let others: Vec<ZoneId> = match alone && options.accept_damage {
            true => g.zones().filter(|zone| !fixed.contains(zone)).collect(),
            false => Vec::new(),
        };
        self.damage = find_damage(device, report, &names, journal, &others, marks)?;
        let mut losses = found.losses;
        losses.extend(names.shorter_than_they_were(&marks.found, &found.gone));
        losses.extend(names.forget_lost_runs());
        let mut paths: Vec<String> = losses.iter().map(|loss| loss.path.clone()).collect();
        paths.dedup();
        let at = journal.end();
        let zone = report.get(at.zone.index());
        let damaged = Error::JournalDamaged {
            at,
            offline: zone.is_some_and(|zone| zone.condition == ZoneCondition::Offline),
            missing: found.missing,
            paths,
        };
        self.damage.insert(0, damaged);
        losses.push(not_all_is_known(journal));
        if options.accept_damage && !options.read_only {
            losses.extend(names.forget_what_is_stale(device, alone)?);
        }
        self.losses = Some(losses);
        // These zones are released together with the journal, once its successor is durable. A zone with a file in it
        // does not belong to the journal, whatever was copied to its start.
        let of_files = names.zones_of_files(g);
        let known = journal.zones.clone();
        let zones = found.zones.into_iter();
        let zones = zones.filter(|zone| !known.contains(zone) && !of_files.contains(zone));
        journal.zones.extend(zones);
        self.names = names;
        Ok(())
    }
}

/// Replays the journal up to the first frame that names missing data and was not durable; also returns the zones in
/// which data is missing.
fn replay(
    device: &dyn Mirror,
    superblock: &Superblock,
    marks: &mut Marks,
) -> Result<(Namespace, Journal, Vec<ZoneDescriptor>, BTreeSet<ZoneId>)> {
    let mut stop = u64::MAX;
    let mut lacking = BTreeSet::new();
    loop {
        let mut names = Namespace::new();
        // The last frame that named the data at a place.
        let mut named: HashMap<ZoneAddress, u64> = HashMap::default();
        let mut each = |frame: u64, operations: Vec<JournalOperation>| {
            if frame == stop {
                return false;
            }
            for operation in &operations {
                match operation {
                    JournalOperation::Extend { extents, .. }
                    | JournalOperation::Move { extents, .. } => {
                        named.extend(extents.iter().map(|e| (e.at, frame)));
                    }
                    JournalOperation::WrittenEnd { at, run_id } => {
                        marks.hear_written_end(frame, *at, *run_id)
                    }
                    _ => {}
                }
                names.apply(operation);
            }
            true
        };
        let (epoch, zone) = (superblock.journal_epoch, superblock.journal_zone);
        let journal = Journal::replay(device, epoch, zone, &mut each)?;
        marks.hear(epoch, journal.durable);
        // While the copy that led here is still the one read. A pass that stopped before missing data ends at a whole
        // frame, which is no damage.
        let is_damaged = || journal.ends_at_impossible || journal_lacks(device, &journal).is_some();
        if stop == u64::MAX && is_damaged() {
            marks.hear(epoch, journal.next_frame + 1);
        }
        // After the journal's replay, which registers the pairs of zones.
        let report = device.report(ZoneId(0), device.geometry().zone_count)?;
        let missing = missing(device, &report, &names);
        lacking.extend(missing.iter().map(|(_, at)| at.zone));
        let lost = missing.iter().filter_map(|(_, at)| named.get(at).copied());
        // Durable frames were durable together with their data: missing data of theirs is damage, which a check reports
        // and a read fails on. It is no reason to drop more frames.
        match lost.filter(|frame| *frame >= marks.frames).min() {
            Some(frame) => stop = frame,
            None => return Ok((names, journal, report, lacking)),
        }
    }
}

/// Extents of plain files that are not entirely written, by the drive's report.
fn missing(
    device: &dyn Mirror,
    report: &[ZoneDescriptor],
    names: &Namespace,
) -> BTreeSet<(u64, ZoneAddress)> {
    let plain = names.nodes.values().filter(|n| n.kind == Kind::Plain);
    let missing = plain.flat_map(|node| {
        let body = node.body.read();
        let missing = body.pieces.iter().filter(|p| !is_there(device, report, p));
        missing
            .map(|piece| (node.inode, piece.at))
            .collect::<Vec<_>>()
    });
    missing.collect()
}

/// Scans the logs and returns the damage in them. Searched for durability marks are BlueFS's own zones, and those in
/// `others`.
fn find_damage(
    device: &dyn Mirror,
    report: &[ZoneDescriptor],
    names: &Namespace,
    journal: &Journal,
    others: &[ZoneId],
    marks: &mut Marks,
) -> Result<Vec<Error>> {
    let mut stops = Vec::new();
    let mut room = scan::KEEP;
    for node in names.nodes.values().filter(|n| n.kind == Kind::Log) {
        stops.extend(scan_log(device, names, node, report, marks, &mut room)?);
    }
    marks.search_behind(device, report, &stops)?;
    let ours = names.owned.iter().chain(others);
    let ours = ours.filter(|zone| !journal.zones.contains(zone));
    let mut live: BTreeMap<ZoneId, u64> = ours.map(|zone| (*zone, 0)).collect();
    for node in names.nodes.values() {
        let body = node.body.read();
        for piece in &body.pieces {
            let end = live.entry(piece.at.zone).or_default();
            *end = (*end).max(piece.at.offset.saturating_add(piece.length));
        }
    }
    marks.search_for_frames(device, report, journal, live.into_iter())?;
    for node in names.nodes.values().filter(|n| n.kind == Kind::Log) {
        let mut body = node.body.write();
        body.marked = marks.durable_bytes(&body);
    }
    Ok(stops
        .iter()
        .filter_map(|stop| marks.damage(stop, names))
        .collect())
}
