//! The rebuild of a lost drive's data on the others: object by object, at a limited rate.

use super::ring::{Part, Ring};
use drive_model::{Span, Time};

/// The most objects that are rebuilt at once.
const AT_ONCE: u32 = 64;

/// The progress of a rebuild, by part.
#[derive(Clone, Debug)]
pub struct Rebuild {
    /// For each part: its new drive, objects not begun, and objects not rebuilt.
    parts: Vec<(Part, u32, u64, u64)>,
    /// The first part with objects not begun.
    next: usize,
    objects: u64,
    part_bytes: u64,
    each: Span,
    under_way: u32,
    done: u64,
    begun: Time,
    ended: Option<Time>,
    /// Whether it waits because `AT_ONCE` objects are under way.
    waits: bool,
}

/// An object that is to be rebuilt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// The part that it belongs to.
    pub part: Part,
    /// The drive that gets it.
    pub to: u32,
}

impl Rebuild {
    /// A rebuild of `objects` objects, spread evenly over `parts` with their new drives, at `rate` bytes a second.
    pub fn new(
        parts: Vec<(Part, u32)>,
        objects: u64,
        (part_bytes, rate): (u64, u64),
        now: Time,
    ) -> Self {
        let count = parts.len().max(1) as u64;
        let share = |n: u64| objects * (n + 1) / count - objects * n / count;
        let parts: Vec<_> = (0..)
            .zip(parts)
            .map(|(n, (part, to))| (part, to, share(n), share(n)))
            .collect();
        Self {
            ended: (objects == 0 || parts.is_empty()).then_some(now),
            parts,
            next: 0,
            objects,
            part_bytes,
            each: Span::transfer(part_bytes, rate.max(1)),
            under_way: 0,
            done: 0,
            begun: now,
            waits: false,
        }
    }

    /// The next object, and when the one after it may begin. `None` if none is left, or too many are under way.
    pub fn next(&mut self, now: Time) -> Option<(Step, Time)> {
        while self
            .parts
            .get(self.next)
            .is_some_and(|(.., left, _)| *left == 0)
        {
            self.next += 1;
        }
        self.waits = self.under_way >= AT_ONCE;
        if self.waits {
            return None;
        }
        let (part, to, left, _) = self.parts.get_mut(self.next)?;
        *left -= 1;
        self.under_way += 1;
        let step = Step {
            part: *part,
            to: *to,
        };
        Some((step, now + self.each))
    }

    /// Ends its waiting. Returns whether it waited: then it goes on, once, however many objects are done at a time.
    pub const fn goes_on(&mut self) -> bool {
        std::mem::replace(&mut self.waits, false)
    }

    /// Notes that an object has been rebuilt. Returns whether it was the last of its part.
    pub fn done(&mut self, part: Part, now: Time) -> bool {
        self.under_way -= 1;
        self.done += 1;
        if self.done == self.objects {
            self.ended = Some(now);
        }
        let row = self.parts.iter_mut().find(|(other, ..)| *other == part);
        row.is_some_and(|(.., missing)| {
            *missing -= 1;
            *missing == 0
        })
    }

    /// Bytes rebuilt, and bytes in all.
    pub const fn bytes(&self) -> (u64, u64) {
        (self.done * self.part_bytes, self.objects * self.part_bytes)
    }

    /// Seconds from its beginning to its end, or to `now`; whether it has ended.
    pub fn seconds(&self, now: Time) -> (f64, bool) {
        let end = self.ended.unwrap_or(now);
        (end.since(self.begun).seconds(), self.ended.is_some())
    }
}

/// The new drive of each part of a lost drive: a random one without a part of the same partition, on a node without
/// one where possible.
pub fn targets(
    ring: &Ring,
    lost: u32,
    drives: u32,
    per_node: u32,
    random: &mut fastrand::Rng,
) -> Vec<(Part, u32)> {
    let place = |part: Part| {
        let row = ring.drives(part.partition);
        let has_drive = |drive: u32| row.contains(&drive) || drive == lost;
        let others = || row.iter().filter(|drive| **drive != lost);
        let has_node = |drive: u32| others().any(|other| other / per_node == drive / per_node);
        let first = random.u32(..drives);
        let all = || (0..drives).map(|n| (first + n) % drives);
        let apart = all().find(|drive| !has_drive(*drive) && !has_node(*drive));
        apart.or_else(|| all().find(|drive| !has_drive(*drive)))
    };
    let mut place = place;
    let parts = ring.parts_of(lost);
    parts
        .into_iter()
        .filter_map(|part| Some((part, place(part)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::ring::Places;
    use super::*;

    #[test]
    fn all_objects_are_made_again_at_the_rate_and_not_more_at_once() {
        let part = |partition| Part {
            partition,
            index: 0,
        };
        let mut rebuild = Rebuild::new(
            vec![(part(1), 5), (part(2), 6), (part(3), 7)],
            100,
            (1_000, 1_000_000),
            Time::START,
        );
        let mut now = Time::START;
        let mut begun = Vec::new();
        while let Some((step, next)) = rebuild.next(now) {
            begun.push(step.part);
            now = next;
        }
        assert!(rebuild.waits && begun.len() == AT_ONCE as usize);
        assert_eq!(now, Time::from_nanos(64_000_000));
        assert!(
            rebuild.goes_on() && !rebuild.goes_on(),
            "two chains of events are twice the rate"
        );
        let mut whole = 0;
        while let Some(part) = begun.pop() {
            whole += u32::from(rebuild.done(part, now));
            begun.extend(rebuild.next(now).map(|(step, _)| step.part));
        }
        assert_eq!((whole, rebuild.bytes()), (3, (100_000, 100_000)));
        assert!(rebuild.seconds(now).1);
    }

    #[test]
    fn parts_go_to_drives_that_have_none_of_the_partition() {
        let mut random = fastrand::Rng::with_seed(1);
        for (nodes, per_node) in [(8, 1), (4, 2), (3, 4)] {
            let places = Places {
                nodes,
                drives_per_node: per_node,
                failure_zones: 1,
            };
            let ring = Ring::new(places, (3, 100), &mut random);
            let targets = targets(&ring, 1, nodes * per_node, per_node, &mut random);
            assert_eq!(targets.len(), ring.parts_of(1).len());
            for (part, to) in targets {
                let row = ring.drives(part.partition);
                assert!(!row.contains(&to));
                if nodes > 3 {
                    let others = row.iter().filter(|drive| **drive != 1);
                    assert!(
                        others
                            .clone()
                            .all(|drive| drive / per_node != to / per_node)
                    );
                }
            }
        }
    }
}
