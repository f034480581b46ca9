//! What the zones of a drive are used for at one moment, and what follows from it: sums, the limit
//! that binds, the zones to clean. Nothing here does I/O.

use bluefs::{Observation, ObservedZone, ZoneContent};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use store::ZoneUse;
use zone::{Geometry, ZoneCondition, ZoneDescriptor, ZoneId, ZoneKind};

/// Who has a zone and for what; of an unusable or unowned one, what it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// BlueFS: the superblock ring.
    Superblock,
    /// BlueFS: the journal.
    Journal,
    /// BlueFS: write-ahead logs.
    Wal,
    /// BlueFS: manifests.
    Manifest,
    /// BlueFS: one table.
    Table,
    /// BlueFS: several files, tables among them.
    SharedTables,
    /// BlueFS: plain files that are no tables.
    OtherFiles,
    /// BlueFS: written, and nothing in it has a name in the journal, yet or any more.
    Unnamed,
    /// BlueFS: empty, kept for its next use.
    AtHand,
    /// The object store.
    Objects,
    /// Nobody, and not empty: to be reset.
    GivenUp,
    /// Nobody: empty.
    Empty,
    /// Nobody: a conventional zone.
    Conventional,
    /// It can only be read.
    ReadOnly,
    /// It cannot be used at all.
    Offline,
}

impl Owner {
    /// For people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Superblock => "superblock",
            Self::Journal => "journal",
            Self::Wal => "WAL",
            Self::Manifest => "manifest",
            Self::Table => "one table",
            Self::SharedTables => "shared tables",
            Self::OtherFiles => "other files",
            Self::Unnamed => "not named",
            Self::AtHand => "at hand",
            Self::Objects => "objects",
            Self::GivenUp => "given up",
            Self::Empty => "empty",
            Self::Conventional => "conventional",
            Self::ReadOnly => "read-only",
            Self::Offline => "offline",
        }
    }

    /// In a map without colours.
    pub const fn letter(self) -> char {
        match self {
            Self::Superblock => 'S',
            Self::Journal => 'J',
            Self::Wal => 'W',
            Self::Manifest => 'M',
            Self::Table => 'T',
            Self::SharedTables => 'H',
            Self::OtherFiles => 'F',
            Self::Unnamed => 'U',
            Self::AtHand => 'a',
            Self::Objects => 'O',
            Self::GivenUp => 'g',
            Self::Empty => '.',
            Self::Conventional => 'c',
            Self::ReadOnly => 'r',
            Self::Offline => 'x',
        }
    }

    fn of_bluefs(zone: &ObservedZone, told: &ZoneDescriptor) -> Self {
        match zone.content {
            ZoneContent::Superblock => Self::Superblock,
            ZoneContent::Journal => Self::Journal,
            ZoneContent::Wal => Self::Wal,
            ZoneContent::Manifest => Self::Manifest,
            ZoneContent::Table => Self::Table,
            ZoneContent::SharedTables => Self::SharedTables,
            ZoneContent::OtherFiles => Self::OtherFiles,
            ZoneContent::Unnamed if written(told) == 0 => Self::AtHand,
            ZoneContent::Unnamed => Self::Unnamed,
        }
    }
}

/// One zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct ZoneView {
    /// Its number.
    pub zone: ZoneId,
    /// Who has it.
    pub owner: Owner,
    /// Its condition, as the drive says.
    pub condition: ZoneCondition,
    /// Bytes that can be written to it.
    pub capacity: u64,
    /// Bytes below its write pointer; of a conventional zone, those that are known to be used.
    pub written_bytes: u64,
    /// Bytes of files or objects; unknown for metadata and for objects of a store that does not run.
    pub live_bytes: Option<u64>,
    /// Written and no longer needed.
    pub dead_bytes: Option<u64>,
    /// Written and not in the journal yet.
    pub unnamed_bytes: u64,
}

/// Who has the drive open.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum User {
    /// Nobody.
    Nobody,
    /// It cannot be told.
    Unknown,
    /// A process; not named if it is out of sight.
    Process {
        /// Its number.
        pid: u32,
        /// Its name, if it can be seen.
        name: Option<String>,
    },
    /// `zonestore serve`, which answers.
    Server {
        /// Its number.
        pid: u32,
    },
}

/// What could keep data from being written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Limit {
    /// `max_open_zones`.
    #[serde(rename = "open_zones")]
    Open,
    /// `max_active_zones`.
    #[serde(rename = "active_zones")]
    Active,
    /// Empty zones are few.
    #[serde(rename = "empty_zones")]
    Empty,
}

/// Sums over all zones.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Totals {
    /// Zones in each condition.
    pub conditions: BTreeMap<&'static str, u32>,
    /// Open zones; unknown where the drive does not say it to others than its user.
    pub open_zones: Option<u32>,
    /// Open and closed zones.
    pub active_zones: u32,
    /// Empty sequential zones, and how many usable ones there are.
    pub empty_zones: u32,
    /// Sequential zones that are neither read-only nor offline.
    pub usable_zones: u32,
    /// The limit that is nearest, if any is there.
    pub nearest_limit: Option<Limit>,
    /// Whether it is reached.
    pub limit_reached: bool,
    /// Bytes of files and objects, as far as it is known.
    pub live_bytes: u64,
    /// Written and no longer needed, as far as it is known.
    pub dead_bytes: u64,
    /// Whether every zone with data says how much of it is dead.
    pub dead_is_complete: bool,
    /// Written and not in the journal yet.
    pub unnamed_bytes: u64,
    /// Bytes below the write pointers of zones with data, for each live byte.
    pub space_amplification: Option<f64>,
}

/// Zones of one owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Share {
    /// How many.
    pub zones: u32,
    /// Bytes written to them.
    pub written_bytes: u64,
    /// Of these, bytes of files or objects.
    pub live_bytes: u64,
    /// And bytes no longer needed.
    pub dead_bytes: u64,
}

/// A drive at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct Snapshot {
    /// The drive.
    pub path: String,
    /// Who has it open.
    pub user: User,
    /// Whether an object store shares it with BlueFS.
    pub has_store: bool,
    /// Its shape and limits.
    pub geometry: Geometry,
    /// Files of BlueFS.
    pub files: u64,
    /// Sums.
    pub totals: Totals,
    /// By owner, those that there are.
    pub owners: BTreeMap<Owner, Share>,
    /// Bytes that write pointers moved on by, a second, since the look before.
    pub written_bytes_per_second: Option<f64>,
    /// What this look does not know, and why.
    pub notes: Vec<String>,
    /// All zones.
    pub zones: Vec<ZoneView>,
}

/// What a look at a drive found.
pub struct Look {
    /// The drive.
    pub path: String,
    /// Who has it open.
    pub user: User,
    /// Its shape.
    pub geometry: Geometry,
    /// What the drive says.
    pub report: Vec<ZoneDescriptor>,
    /// Whether the report tells open zones from closed ones.
    pub tells_open: bool,
    /// What BlueFS's journal says.
    pub seen: Observation,
    /// What the store's server says.
    pub store: Option<Vec<ZoneUse>>,
    /// What went wrong.
    pub notes: Vec<String>,
}

impl Snapshot {
    /// Puts together what was found.
    pub fn new(look: Look) -> Self {
        let Look {
            path,
            user,
            geometry,
            report,
            tells_open,
            seen,
            store,
            mut notes,
        } = look;
        let objects: Option<HashMap<ZoneId, ZoneUse>> =
            store.map(|zones| zones.into_iter().map(|zone| (zone.zone, zone)).collect());
        let idle = user == User::Nobody;
        let zones: Vec<ZoneView> = report
            .iter()
            .map(|told| match seen.zones.get(&told.id) {
                Some(zone) => of_bluefs(told, zone, idle),
                None => of_others(told, seen.is_shared(), objects.as_ref()),
            })
            .collect();
        let totals = totals(&geometry, &zones, tells_open);
        if !totals.dead_is_complete && objects.is_none() {
            notes.push(
                "what is dead among objects only the store knows: `store df`, or serve the drive"
                    .to_owned(),
            );
        }
        let mut owners: BTreeMap<Owner, Share> = BTreeMap::new();
        for zone in &zones {
            let share = owners.entry(zone.owner).or_default();
            share.zones += 1;
            share.written_bytes += zone.written_bytes;
            share.live_bytes += zone.live_bytes.unwrap_or(0);
            share.dead_bytes += zone.dead_bytes.unwrap_or(0);
        }
        Self {
            path,
            user,
            has_store: seen.is_shared(),
            geometry,
            files: seen.files,
            totals,
            owners,
            written_bytes_per_second: None,
            notes,
            zones,
        }
    }

    /// Zones with dead bytes, those with the most first.
    pub fn most_dead(&self) -> Vec<ZoneView> {
        let dead = |zone: &ZoneView| zone.dead_bytes.unwrap_or(0);
        let mut zones: Vec<ZoneView> = self.zones.iter().filter(|z| dead(z) > 0).copied().collect();
        zones.sort_unstable_by_key(|zone| (std::cmp::Reverse(dead(zone)), zone.zone));
        zones
    }
}

/// Bytes that write pointers moved on by between two looks. A zone that was reset meanwhile counts
/// with what it has now.
pub fn advanced(before: &[ZoneView], now: &[ZoneView]) -> u64 {
    let moved = |(before, now): (&ZoneView, &ZoneView)| {
        if now.condition == ZoneCondition::NotWritePointer {
            return 0;
        }
        now.written_bytes
            .checked_sub(before.written_bytes)
            .unwrap_or(now.written_bytes)
    };
    before.iter().zip(now).map(moved).sum()
}

fn written(told: &ZoneDescriptor) -> u64 {
    if told.write_pointer_valid() {
        told.write_pointer
    } else {
        0
    }
}

fn broken(told: &ZoneDescriptor) -> Option<Owner> {
    match told.condition {
        ZoneCondition::ReadOnly => Some(Owner::ReadOnly),
        ZoneCondition::Offline => Some(Owner::Offline),
        _ => None,
    }
}

fn of_bluefs(told: &ZoneDescriptor, zone: &ObservedZone, idle: bool) -> ZoneView {
    let owner = broken(told).unwrap_or(Owner::of_bluefs(zone, told));
    let metadata = matches!(zone.content, ZoneContent::Superblock | ZoneContent::Journal);
    let live = (!metadata).then_some(zone.live_bytes);
    // A zone without a write pointer does not tell how much of it is dead.
    let tells = told.write_pointer_valid();
    let unnamed = if idle || metadata {
        0
    } else {
        zone.unnamed_bytes
    };
    let dead = live
        .filter(|_| tells)
        .map(|live| written(told).saturating_sub(live + unnamed));
    ZoneView {
        zone: told.id,
        owner,
        condition: told.condition,
        capacity: told.capacity,
        written_bytes: if tells {
            written(told)
        } else {
            zone.live_bytes
        },
        live_bytes: live,
        dead_bytes: dead,
        unnamed_bytes: unnamed,
    }
}

fn of_others(
    told: &ZoneDescriptor,
    has_store: bool,
    objects: Option<&HashMap<ZoneId, ZoneUse>>,
) -> ZoneView {
    let written = written(told);
    let (owner, live) = match (broken(told), objects.and_then(|o| o.get(&told.id))) {
        (Some(owner), _) => (owner, None),
        (None, Some(used)) => (Owner::Objects, Some(used.live_bytes.min(written))),
        (None, None) if told.kind == ZoneKind::Conventional => (Owner::Conventional, Some(0)),
        (None, None) if written == 0 => (Owner::Empty, Some(0)),
        // The server does not have it any more, or not yet: it moved on since the report.
        (None, None) if has_store => (Owner::Objects, objects.map(|_| written)),
        (None, None) => (Owner::GivenUp, Some(0)),
    };
    ZoneView {
        zone: told.id,
        owner,
        condition: told.condition,
        capacity: told.capacity,
        written_bytes: written,
        live_bytes: live,
        dead_bytes: live.map(|live| written - live),
        unnamed_bytes: 0,
    }
}

fn totals(geometry: &Geometry, zones: &[ZoneView], tells_open: bool) -> Totals {
    let mut conditions: BTreeMap<&'static str, u32> = BTreeMap::new();
    for zone in zones {
        *conditions.entry(zone.condition.name()).or_default() += 1;
    }
    let count = |what: &dyn Fn(&ZoneView) -> bool| zones.iter().filter(|z| what(z)).count() as u32;
    let open = tells_open.then(|| count(&|z| z.condition.is_open()));
    let active = count(&|z| z.condition.is_active());
    let empty = count(&|z| z.condition == ZoneCondition::Empty);
    let usable = count(&|z| {
        !matches!(
            z.condition,
            ZoneCondition::ReadOnly | ZoneCondition::Offline | ZoneCondition::NotWritePointer
        )
    });
    let (nearest_limit, limit_reached) = nearest(geometry, open, active, empty, usable);
    // Zones that hold data, or did: not metadata, not what is empty.
    let data = || {
        zones
            .iter()
            .filter(|z| z.written_bytes > 0 && holds_data(z))
    };
    let live: u64 = data().filter_map(|z| z.live_bytes).sum();
    let known = data().filter(|z| z.live_bytes.is_some());
    let written: u64 = known.map(|z| z.written_bytes).sum();
    Totals {
        conditions,
        open_zones: open,
        active_zones: active,
        empty_zones: empty,
        usable_zones: usable,
        nearest_limit,
        limit_reached,
        live_bytes: live,
        dead_bytes: data().filter_map(|z| z.dead_bytes).sum(),
        dead_is_complete: data().all(|z| z.dead_bytes.is_some()),
        unnamed_bytes: data().map(|z| z.unnamed_bytes).sum(),
        space_amplification: (live > 0).then(|| written as f64 / live as f64),
    }
}

fn holds_data(zone: &ZoneView) -> bool {
    !matches!(zone.owner, Owner::Superblock | Owner::Journal)
}

/// The limit of which the largest part is used, and whether all of it is.
fn nearest(
    geometry: &Geometry,
    open: Option<u32>,
    active: u32,
    empty: u32,
    usable: u32,
) -> (Option<Limit>, bool) {
    let used_up = usable.saturating_sub(empty);
    [
        (Limit::Active, active, geometry.max_active_zones),
        (Limit::Open, open.unwrap_or(0), geometry.max_open_zones),
        (Limit::Empty, used_up, usable),
    ]
    .into_iter()
    .filter(|(_, _, most)| *most > 0)
    .map(|(limit, used, most)| (limit, f64::from(used) / f64::from(most)))
    // Of equals the first.
    .reduce(|a, b| if b.1 > a.1 { b } else { a })
    .map_or((None, false), |(limit, used)| (Some(limit), used >= 1.0))
}

#[cfg(test)]
pub mod tests;
