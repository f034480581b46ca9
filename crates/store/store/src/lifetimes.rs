//! Expected lifetimes of data: of objects, from when they were overwritten; of zones, from the data in them. Kept in
//! memory only and lost with the mount. Wrong guesses cost writes, never data.

use runtime::sync::Mutex;
use runtime::{HashMap, KeyedHash};
use zone::{ZoneAddress, ZoneId};
use zone_alloc::{ByLifetime, Clock, History};

/// Slots for objects, 40 bytes each at most; of two objects with the same slot, the later one is remembered.
const OBJECTS: u64 = 1 << 16;

const MIB: f32 = (1 << 20) as f32;

/// Mean history of the data in a zone, in 12 bytes.
#[derive(Clone, Copy, Default)]
struct InZone {
    written_at_mib: f32,
    lifetimes: f32,
    span: f32,
}

const _: () = assert!(size_of::<InZone>() <= 12);

impl InZone {
    /// Adds data of this history, which is now `part` (0 to 1) of the zone's data.
    fn add(&mut self, history: History, part: f32) {
        let mix = |mean: &mut f32, new: f32| *mean += (new - *mean) * part;
        mix(&mut self.written_at_mib, history.written_at as f32 / MIB);
        mix(&mut self.lifetimes, history.lifetimes);
        mix(&mut self.span, history.span);
    }
}

struct Seen {
    /// Bytes that users have written since the mount, which serves as the clock.
    now: u64,
    /// By slot: the hash of the object's name, and its history.
    objects: HashMap<u64, (u64, History)>,
    zones: Vec<InZone>,
}

/// Histories of objects and zones, and the choice of a stream for new and moved data.
pub(crate) struct Lifetimes {
    pub streams: ByLifetime,
    /// Keyed, because clients choose names.
    hash: KeyedHash,
    seen: Mutex<Seen>,
}

impl Lifetimes {
    pub fn new(streams: ByLifetime, hash: KeyedHash, zones: u32) -> Self {
        let seen = Seen {
            now: 0,
            objects: HashMap::default(),
            zones: vec![InZone::default(); zones as usize],
        };
        Self {
            streams,
            hash,
            seen: Mutex::new(seen),
        }
    }

    /// Counts bytes written by users.
    pub fn count(&self, bytes: u64) {
        self.seen.lock().now += bytes;
    }

    /// Bytes that users have written since the mount.
    pub fn written_bytes(&self) -> u64 {
        self.seen.lock().now
    }

    /// History of data that replaces nothing, as far as is known.
    pub fn of_new(&self) -> History {
        History::new(self.seen.lock().now)
    }

    /// History of data that replaces this object, which is remembered.
    pub fn of_object(&self, collection: &str, object: &[u8]) -> History {
        let hash = self.hash.hash_one((collection, object));
        let mut seen = self.seen.lock();
        let now = seen.now;
        let before = seen.objects.get(&(hash % OBJECTS));
        let history = match before {
            Some((of, before)) if *of == hash => before.overwritten(now),
            _ => History::new(now),
        };
        seen.objects.insert(hash % OBJECTS, (hash, history));
        history
    }

    /// Mean history of the data in `zone`.
    pub fn of_zone(&self, zone: ZoneId) -> History {
        let InZone {
            written_at_mib,
            lifetimes,
            span,
        } = self.seen.lock().zones[zone.index()];
        History {
            written_at: (written_at_mib * MIB) as u64,
            lifetimes,
            span,
        }
    }

    /// Records that data of this history was written at `at`.
    pub fn placed(&self, at: ZoneAddress, length: u64, history: History) {
        let part = length as f32 / (at.offset + length) as f32;
        self.seen.lock().zones[at.zone.index()].add(history, part);
    }

    /// Number of the stream for data that a user writes, while `live` bytes are live.
    pub fn written(&self, history: History, live: u64) -> usize {
        self.streams.written(history, self.clock(live))
    }

    /// Number of the stream for data that the cleaner moves, while `live` bytes are live.
    pub fn moved(&self, history: History, live: u64) -> usize {
        self.streams.moved(history, self.clock(live))
    }

    fn clock(&self, live: u64) -> Clock {
        Clock {
            now: self.seen.lock().now,
            live: live.max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::Runtime;

    fn lifetimes() -> Lifetimes {
        Lifetimes::new(ByLifetime::within(4), Runtime::seeded(1).keyed_hash(), 4)
    }

    #[test]
    fn an_object_that_is_written_again_and_again_leaves_the_stream_of_what_lives_on() {
        let known = lifetimes();
        known.of_object("c", b"cold");
        let live = 1_000;
        for _ in 0..100 {
            known.count(100);
            known.of_object("c", b"hot");
        }
        let hot = known.written(known.of_object("c", b"hot"), live);
        let cold = known.written(known.of_object("c", b"cold"), live);
        assert_eq!((hot, cold), (0, 1));
        assert_eq!(known.written(known.of_new(), live), 0);
    }

    #[test]
    fn a_zone_has_the_mean_of_what_lies_in_it_since_its_reset() {
        let known = lifetimes();
        let at = |offset| ZoneAddress::new(ZoneId(2), offset);
        let old = known.of_new();
        known.placed(at(0), 4096, old);
        assert_eq!(known.of_zone(ZoneId(2)), old);
        known.count(100 << 20);
        known.placed(at(4096), 4096, known.of_new());
        assert_eq!(known.of_zone(ZoneId(2)).written_at, 50 << 20);
        assert_eq!(known.moved(known.of_zone(ZoneId(2)), 10 << 20), 1);
        known.placed(at(0), 4096, known.of_new());
        assert_eq!(known.of_zone(ZoneId(2)).written_at, 100 << 20);
        assert_eq!(known.moved(known.of_zone(ZoneId(2)), 10 << 20), 0);
    }

    #[test]
    fn a_bounded_number_of_objects_is_remembered() {
        let known = lifetimes();
        for n in 0..OBJECTS * 2 {
            known.of_object("c", n.to_string().as_bytes());
        }
        assert!(known.seen.lock().objects.len() as u64 <= OBJECTS);
    }
}
