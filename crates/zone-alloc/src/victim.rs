//! Which zone to clean next: a function from what is known of the zones to a choice.

use serde::{Deserialize, Serialize};
use zone::ZoneId;

/// What is known of a zone that could be cleaned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// The zone.
    pub zone: ZoneId,
    /// Bytes in it that are still wanted.
    pub live: u64,
    /// Bytes in it up to the write pointer, padding included.
    pub written: u64,
    /// When it was filled, as a counter that only grows; smaller is older.
    pub filled_at: u64,
}

/// How to choose.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VictimPolicy {
    /// The zone with the most dead bytes (main document § 5.7.1).
    #[default]
    Greedy,
    /// The zone that was filled first.
    Fifo,
}

/// The zone to clean, or `None` if no candidate has a dead byte. Ties go to the lower zone, so
/// that the same state always gives the same choice.
pub fn choose_victim(
    policy: VictimPolicy,
    candidates: impl IntoIterator<Item = Candidate>,
) -> Option<Candidate> {
    let dirty = candidates.into_iter().filter(|c| c.live < c.written);
    match policy {
        VictimPolicy::Greedy => {
            dirty.max_by_key(|c| (c.written - c.live, std::cmp::Reverse(c.zone)))
        }
        VictimPolicy::Fifo => dirty.min_by_key(|c| (c.filled_at, c.zone)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn zone(id: u32, live: u64, filled_at: u64) -> Candidate {
        Candidate {
            zone: ZoneId(id),
            live,
            written: 100,
            filled_at,
        }
    }

    #[test]
    fn greedy_takes_the_most_dead_and_the_lower_of_equals() {
        let zones = [zone(1, 50, 1), zone(2, 10, 2), zone(3, 10, 0)];
        assert_eq!(
            choose_victim(VictimPolicy::Greedy, zones).unwrap().zone,
            ZoneId(2)
        );
    }

    #[test]
    fn fifo_takes_the_oldest_that_has_anything_dead() {
        let zones = [zone(1, 50, 5), zone(2, 10, 4), zone(3, 100, 0)];
        assert_eq!(
            choose_victim(VictimPolicy::Fifo, zones).unwrap().zone,
            ZoneId(2)
        );
    }

    #[test]
    fn a_drive_without_dead_bytes_has_no_victim() {
        assert_eq!(choose_victim(VictimPolicy::Greedy, [zone(1, 100, 0)]), None);
    }
}
