//! Who may clean: at most one replica of an object cleans at once, within a budget, and a drive that must clean
//! is forced to.
//!
//! Pure: of what drives ask for follows who cleans next. Whoever carries it out asks again each time it has news.

use serde::Serialize;
use std::cmp::Reverse;

/// How much a drive needs to clean.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub enum Need {
    /// It would like to, and can wait.
    Wants,
    /// It has to: writes wait, or soon will.
    Must,
}

/// What a drive asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wish {
    /// Its number.
    pub drive: u32,
    /// How much.
    pub need: Need,
    /// Zones that it can still fill: who has fewer goes first.
    pub free: u32,
    /// It cleans, and is not through.
    pub cleans: bool,
}

/// A turn that is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turn {
    /// Whose.
    pub drive: u32,
    /// It is beyond the budget, or beside a replica that cleans: only for a drive that must.
    pub forced: bool,
}

/// Which drives have replicas of one object, and how many drives may clean.
#[derive(Clone, Debug)]
pub struct Turns {
    /// By drive: those that share an object with it.
    sharing: Vec<Vec<u32>>,
    budget: u32,
}

impl Turns {
    /// `sharing` has, for each drive, those that hold a replica of one of its objects; `budget` drives clean at
    /// once at most, and one in any case.
    pub fn new(sharing: Vec<Vec<u32>>, budget: u32) -> Self {
        Self {
            sharing,
            budget: budget.max(1),
        }
    }

    /// Those that share an object with `drive`.
    pub fn sharing(&self, drive: u32) -> &[u32] {
        self.sharing.get(drive as usize).map_or(&[], Vec::as_slice)
    }

    /// So many clean at once at most, but for those that must.
    pub const fn budget(&self) -> u32 {
        self.budget
    }

    /// Both have a replica of an object from now on.
    pub fn share(&mut self, one: u32, other: u32) {
        for (a, b) in [(one, other), (other, one)] {
            if let Some(all) = self.sharing.get_mut(a as usize)
                && !all.contains(&b)
            {
                all.push(b);
            }
        }
    }

    /// Who cleans from now on, of those who ask; the others do not, or stop until they are given a turn again.
    ///
    /// First all that must. Then, while the budget lasts, those none of whose objects has a replica on a drive
    /// that cleans: who cleans already goes on, then comes who has the fewest free zones, then the lower number.
    pub fn choose(&self, wishes: &[Wish]) -> Vec<Turn> {
        let mut order: Vec<&Wish> = wishes.iter().collect();
        order.sort_unstable_by_key(|w| (Reverse(w.need), !w.cleans, w.free, w.drive));
        let mut beside = vec![false; self.sharing.len()];
        let mut turns: Vec<Turn> = Vec::new();
        for wish in order {
            let is_beside = beside.get(wish.drive as usize).is_none_or(|beside| *beside);
            let is_beyond = turns.len() >= self.budget as usize;
            let forced = is_beside || is_beyond;
            if forced && wish.need != Need::Must {
                continue;
            }
            for other in self.sharing(wish.drive) {
                if let Some(beside) = beside.get_mut(*other as usize) {
                    *beside = true;
                }
            }
            turns.push(Turn {
                drive: wish.drive,
                forced,
            });
        }
        turns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Need::{Must, Wants};
    use proptest::prelude::*;

    /// A ring of six: each shares objects with the one before and the one behind it.
    fn ring(budget: u32) -> Turns {
        let of = |n: u32| vec![(n + 5) % 6, (n + 1) % 6];
        Turns::new((0..6).map(of).collect(), budget)
    }

    const fn wish(drive: u32, need: Need, free: u32, cleans: bool) -> Wish {
        Wish {
            drive,
            need,
            free,
            cleans,
        }
    }

    fn chosen(turns: &Turns, wishes: &[Wish]) -> Vec<(u32, bool)> {
        let turns = turns.choose(wishes);
        turns.iter().map(|turn| (turn.drive, turn.forced)).collect()
    }

    #[test]
    fn one_replica_of_an_object_cleans_at_once() {
        let all: Vec<Wish> = (0..6).map(|n| wish(n, Wants, 3, false)).collect();
        let expected = [(0, false), (2, false), (4, false)];
        assert_eq!(chosen(&ring(6), &all), expected);
        assert_eq!(chosen(&ring(2), &all), expected[..2], "the budget");
        assert_eq!(chosen(&ring(0), &all), expected[..1], "one in any case");
    }

    #[test]
    fn who_cleans_goes_on_and_then_comes_who_has_the_least() {
        let wishes = [
            wish(0, Wants, 1, false),
            wish(1, Wants, 9, true),
            wish(3, Wants, 5, false),
            wish(4, Wants, 4, false),
        ];
        assert_eq!(chosen(&ring(6), &wishes), [(1, false), (4, false)]);
    }

    #[test]
    fn who_must_is_forced_and_takes_the_turn_of_a_neighbour() {
        let wishes = [
            wish(1, Wants, 9, true),
            wish(2, Must, 0, false),
            wish(3, Must, 1, false),
        ];
        assert_eq!(chosen(&ring(1), &wishes), [(2, false), (3, true)]);
    }

    #[test]
    fn what_is_unknown_shares_with_everybody() {
        assert_eq!(chosen(&ring(6), &[wish(9, Wants, 0, false)]), []);
        assert_eq!(chosen(&ring(6), &[wish(9, Must, 0, false)]), [(9, true)]);
    }

    proptest! {
        #[test]
        fn who_only_wants_never_cleans_beside_a_replica_or_beyond_the_budget(
            pairs in prop::collection::vec((0..12_u32, 0..12_u32), 0..30),
            needs in prop::collection::vec((any::<bool>(), 0..5_u32, any::<bool>()), 12),
            budget in 1..6_u32,
        ) {
            let mut turns = Turns::new(vec![Vec::new(); 12], budget);
            for (a, b) in pairs.into_iter().filter(|(a, b)| a != b) {
                turns.share(a, b);
            }
            let wishes: Vec<Wish> = (0..).zip(needs)
                .map(|(n, (must, free, cleans))| wish(n, if must { Must } else { Wants }, free, cleans))
                .collect();
            let given = turns.choose(&wishes);
            let need = |drive: u32| wishes[drive as usize].need;
            let has = |drive: u32| given.iter().any(|turn| turn.drive == drive);
            for turn in &given {
                let beside = turns.sharing(turn.drive).iter().any(|other| has(*other));
                prop_assert!(need(turn.drive) == Must || (!turn.forced && !beside));
            }
            let unforced = given.iter().filter(|turn| !turn.forced);
            prop_assert!(unforced.count() <= budget as usize);
            prop_assert!(wishes.iter().all(|w| w.need == Wants || has(w.drive)), "who must does");
            // Nobody waits for nothing.
            let free = |w: &&Wish| !has(w.drive) && !turns.sharing(w.drive).iter().any(|other| has(*other));
            prop_assert!(given.len() >= budget as usize || wishes.iter().find(free).is_none());
        }
    }
}
