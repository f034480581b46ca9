//! What the zones of a drive are used for at one moment, and what follows from it: sums, the limit
//! that binds, the zones to clean. Nothing here does I/O.

use crate::drive;
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
        *conditions
            .entry(drive::condition_name(zone.condition))
            .or_default() += 1;
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
pub mod tests {
    use super::*;

    pub fn geometry() -> Geometry {
        Geometry {
            block_size: 4096,
            zone_size: 1 << 20,
            zone_capacity: 1 << 20,
            zone_count: 16,
            conventional_zones: 2,
            sequential_kind: ZoneKind::SequentialWriteRequired,
            max_open_zones: 4,
            max_active_zones: 4,
            max_append_bytes: 0,
        }
    }

    pub fn zone(number: u32, owner: Owner, written: u64, dead: u64) -> ZoneView {
        ZoneView {
            zone: ZoneId(number),
            owner,
            condition: match written {
                0 => ZoneCondition::Empty,
                w if w < 1 << 20 => ZoneCondition::Closed,
                _ => ZoneCondition::Full,
            },
            capacity: 1 << 20,
            written_bytes: written,
            live_bytes: Some(written - dead),
            dead_bytes: Some(dead),
            unnamed_bytes: 0,
        }
    }

    fn told(number: u32, condition: ZoneCondition, write_pointer: u64) -> ZoneDescriptor {
        let g = geometry();
        ZoneDescriptor {
            id: ZoneId(number),
            kind: g.kind(ZoneId(number)),
            condition,
            size: g.zone_size,
            capacity: g.zone_capacity,
            write_pointer,
        }
    }

    fn held(content: ZoneContent, live_bytes: u64, unnamed_bytes: u64) -> ObservedZone {
        ObservedZone {
            content,
            live_bytes,
            unnamed_bytes,
        }
    }

    fn look(user: User) -> Look {
        use ZoneCondition as C;
        let mut report: Vec<ZoneDescriptor> = (0..16).map(|n| told(n, C::Empty, 0)).collect();
        for (number, condition, pointer) in [
            (0, C::NotWritePointer, 0),
            (1, C::NotWritePointer, 0),
            (2, C::Closed, 1 << 17),
            (3, C::Closed, 1 << 19),
            (4, C::Full, 1 << 20),
            (5, C::Closed, 1 << 19),
            (6, C::Offline, 0),
        ] {
            report[number as usize] = told(number, condition, pointer);
        }
        let zones = [
            (0, held(ZoneContent::Superblock, 0, 0)),
            (1, held(ZoneContent::Superblock, 0, 0)),
            (2, held(ZoneContent::Journal, 0, 0)),
            (3, held(ZoneContent::Wal, 1 << 18, 1 << 18)),
            (4, held(ZoneContent::Table, 1 << 18, 0)),
            (5, held(ZoneContent::Unnamed, 0, 1 << 18)),
            (7, held(ZoneContent::Unnamed, 0, 0)),
        ];
        let superblock = bluefs::SuperblockInfo {
            uuid: [0; 16],
            role: bluefs::Role::Alone,
            generation: 1,
            block_size: 4096,
            zone_size: 1 << 20,
            zone_capacity: 1 << 20,
            zone_count: 16,
            journal_epoch: 1,
            journal_zone: ZoneId(2),
            journal_frames: 1,
            spare_zone: ZoneId(7),
        };
        Look {
            path: "d.zoned".to_owned(),
            user,
            geometry: geometry(),
            report,
            tells_open: false,
            seen: Observation {
                superblock,
                zones: zones.map(|(n, zone)| (ZoneId(n), zone)).into(),
                files: 3,
                journal_frames: 1,
                whole: true,
            },
            store: None,
            notes: Vec::new(),
        }
    }

    pub fn sample() -> Snapshot {
        Snapshot::new(look(User::Process {
            pid: 7,
            name: Some("db_bench".to_owned()),
        }))
    }

    #[test]
    fn bytes_are_live_dead_or_not_named() {
        let seen = sample();
        let of = |n: usize| {
            let z = &seen.zones[n];
            (z.owner, z.live_bytes, z.dead_bytes, z.unnamed_bytes)
        };
        assert_eq!(of(2), (Owner::Journal, None, None, 0));
        assert_eq!(of(3), (Owner::Wal, Some(1 << 18), Some(0), 1 << 18));
        assert_eq!(of(4), (Owner::Table, Some(1 << 18), Some(3 << 18), 0));
        assert_eq!(of(5), (Owner::Unnamed, Some(0), Some(1 << 18), 1 << 18));
        assert_eq!(of(6).0, Owner::Offline);
        assert_eq!(of(7).0, Owner::AtHand);
        assert_eq!(of(8).0, Owner::Empty);
        assert_eq!(seen.totals.live_bytes, 2 << 18);
        assert_eq!(seen.totals.dead_bytes, 4 << 18);
        assert_eq!(seen.totals.unnamed_bytes, 2 << 18);
        assert_eq!(seen.totals.space_amplification, Some(4.0));
        assert!(seen.totals.dead_is_complete);
        let most: Vec<u32> = seen.most_dead().iter().map(|z| z.zone.0).collect();
        assert_eq!(most, [4, 5]);
    }

    #[test]
    fn where_nobody_writes_what_has_no_name_is_dead() {
        let seen = Snapshot::new(look(User::Nobody));
        assert_eq!(seen.totals.unnamed_bytes, 0);
        assert_eq!(seen.totals.dead_bytes, 6 << 18);
    }

    #[test]
    fn zones_beside_a_store_are_objects_and_their_dead_bytes_the_stores_to_tell() {
        let mut look = look(User::Nobody);
        look.seen.superblock.role = bluefs::Role::Shared;
        look.report[9] = told(9, ZoneCondition::Full, 1 << 20);
        let use_of_9 = ZoneUse {
            zone: ZoneId(9),
            written_bytes: 1 << 20,
            live_bytes: 1 << 19,
        };
        let store = |store| Look {
            path: look.path.clone(),
            user: User::Nobody,
            geometry: geometry(),
            report: look.report.clone(),
            tells_open: true,
            seen: look.seen.clone(),
            store,
            notes: Vec::new(),
        };
        let at_rest = Snapshot::new(store(None));
        assert_eq!(at_rest.zones[9].owner, Owner::Objects);
        assert_eq!(at_rest.zones[9].dead_bytes, None);
        assert!(!at_rest.totals.dead_is_complete && at_rest.notes.len() == 1);
        let served = Snapshot::new(store(Some(vec![use_of_9])));
        assert_eq!(served.zones[9].dead_bytes, Some(1 << 19));
        assert!(served.totals.dead_is_complete && served.notes.is_empty());
        assert_eq!(served.zones[8].owner, Owner::Empty);
    }

    #[test]
    fn the_limit_of_which_most_is_used_binds() {
        let mut g = geometry();
        assert_eq!(nearest(&g, None, 3, 10, 14), (Some(Limit::Active), false));
        assert_eq!(nearest(&g, Some(4), 4, 10, 14), (Some(Limit::Active), true));
        assert_eq!(nearest(&g, Some(1), 1, 1, 14), (Some(Limit::Empty), false));
        g.max_active_zones = 0;
        assert_eq!(nearest(&g, Some(4), 9, 10, 14), (Some(Limit::Open), true));
        g.max_open_zones = 0;
        assert_eq!(nearest(&g, Some(4), 9, 0, 14), (Some(Limit::Empty), true));
        assert_eq!(nearest(&g, None, 0, 0, 0), (None, false));
    }

    #[test]
    fn write_pointers_that_went_back_count_from_the_start() {
        let before = [
            zone(0, Owner::Table, 4096, 0),
            zone(1, Owner::Table, 8192, 0),
            zone(2, Owner::Table, 512, 0),
        ];
        let mut now = before;
        now[0].written_bytes = 8192;
        now[1].written_bytes = 512;
        assert_eq!(advanced(&before, &now), 4096 + 512);
    }
}
