//! Which drives have the parts of an object: by partition, as in a ring of OpenStack Swift.

use super::groups::Groups;

/// The drives of each partition.
#[derive(Clone, Debug)]
pub struct Ring {
    width: usize,
    /// `width` drives for each partition, one partition after the other.
    rows: Vec<u32>,
}

/// One replica or fragment of all objects of a partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// Its partition.
    pub partition: u32,
    /// Its number among the replicas or fragments, from 0.
    pub index: u32,
}

/// Nodes, their drives, and the zones that may fail as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Places {
    /// Machines with drives.
    pub nodes: u32,
    /// Drives of each node.
    pub drives_per_node: u32,
    /// Failure zones, such as racks, to which the nodes belong in turn.
    pub failure_zones: u32,
}

impl Places {
    /// Drives in all.
    pub const fn drives(self) -> u32 {
        self.nodes * self.drives_per_node
    }

    /// The node of a drive.
    pub const fn node_of(self, drive: u32) -> u32 {
        drive / self.drives_per_node
    }

    /// The failure zone of a drive.
    pub const fn zone_of(self, drive: u32) -> u32 {
        self.node_of(drive) % self.failure_zones
    }
}

/// Deals out numbers evenly: each once a round, in an order of its own each round.
struct Deck {
    all: std::ops::Range<u32>,
    step: usize,
    left: Vec<u32>,
}

impl Deck {
    const fn new(all: std::ops::Range<u32>, step: usize) -> Self {
        Self {
            all,
            step,
            left: Vec::new(),
        }
    }

    /// Deals the next number for which `may_be` holds. If none is left in this round, another round is shuffled, and
    /// the rest of this one is dealt first.
    fn deal(&mut self, random: &mut fastrand::Rng, may_be: impl Fn(u32) -> bool) -> Option<u32> {
        let place = |left: &[u32]| left.iter().rposition(|each| may_be(*each));
        if place(&self.left).is_none() {
            let mut round: Vec<u32> = self.all.clone().step_by(self.step).collect();
            random.shuffle(&mut round);
            round.append(&mut self.left);
            self.left = round;
        }
        place(&self.left).map(|place| self.left.remove(place))
    }
}

impl Ring {
    /// Draws `width` drives for each partition, and at least `partitions_a_drive` partitions for each drive.
    ///
    /// The drives are in different zones where there are enough, else on different nodes, else merely different. All
    /// drives have the same number of partitions, except for a few.
    pub fn new(
        places: Places,
        (width, partitions_a_drive): (u32, u32),
        random: &mut fastrand::Rng,
    ) -> Self {
        let (zones, each) = (places.failure_zones, places.drives_per_node);
        let partitions = (places.drives() * partitions_a_drive)
            .div_ceil(width)
            .next_power_of_two();
        let mut of_zones = Deck::new(0..zones, 1);
        let mut of_nodes: Vec<Deck> = (0..zones)
            .map(|zone| Deck::new(zone..places.nodes, zones as usize))
            .collect();
        let mut of_drives: Vec<Deck> = (0..places.nodes)
            .map(|node| Deck::new(node * each..(node + 1) * each, 1))
            .collect();
        let mut rows = Vec::with_capacity((partitions * width) as usize);
        for _ in 0..partitions {
            let mut row: Vec<u32> = Vec::with_capacity(width as usize);
            // A zone or node gets another part only when the others have as many.
            let count = |row: &[u32], is_there: &dyn Fn(u32) -> bool| {
                row.iter().filter(|drive| is_there(**drive)).count() as u32
            };
            while (row.len() as u32) < width {
                let (had, nodes) = (row.len() as u32, places.nodes / zones);
                let in_zone = |zone: u32| count(&row, &|drive| places.zone_of(drive) == zone);
                let Some(zone) = of_zones.deal(random, |zone| in_zone(zone) <= had / zones) else {
                    break;
                };
                let most = in_zone(zone) / nodes.max(1);
                let in_node = |node: u32| count(&row, &|drive| places.node_of(drive) == node);
                let Some(node) = of_nodes[zone as usize].deal(random, |node| in_node(node) <= most)
                else {
                    break;
                };
                match of_drives[node as usize].deal(random, |drive| !row.contains(&drive)) {
                    Some(drive) => row.push(drive),
                    // All drives of the node have a part.
                    None => match (0..places.drives()).find(|drive| !row.contains(drive)) {
                        Some(drive) => row.push(drive),
                        None => break,
                    },
                }
            }
            rows.extend(row);
        }
        Self {
            width: width as usize,
            rows,
        }
    }

    /// How many partitions there are.
    pub fn partitions(&self) -> u32 {
        (self.rows.len() / self.width) as u32
    }

    /// The drives of a partition.
    pub fn drives(&self, partition: u32) -> &[u32] {
        let first = partition as usize * self.width;
        &self.rows[first..first + self.width]
    }

    /// The parts on a drive.
    pub fn parts_of(&self, drive: u32) -> Vec<Part> {
        let all = self.rows.iter().enumerate();
        let its = all.filter(|(_, other)| **other == drive);
        its.map(|(place, _)| Part {
            partition: (place / self.width) as u32,
            index: (place % self.width) as u32,
        })
        .collect()
    }

    /// Gives a part to another drive.
    pub fn hand_over(&mut self, part: Part, to: u32) {
        self.rows[part.partition as usize * self.width + part.index as usize] = to;
    }

    /// The groups of drives with parts of the same objects, of each of which `limit` may clean at once.
    pub fn groups(&self, places: Places, limit: u32) -> Groups {
        let drives = places.drives();
        let tiers: [Vec<u32>; 2] = [
            (0..drives).map(|drive| places.zone_of(drive)).collect(),
            (0..drives).map(|drive| places.node_of(drive)).collect(),
        ];
        let rows = self.rows.chunks(self.width).map(|row| (row, limit));
        Groups::new(drives, rows, &tiers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn places(nodes: u32, drives_per_node: u32, failure_zones: u32) -> Places {
        Places {
            nodes,
            drives_per_node,
            failure_zones,
        }
    }

    #[test]
    fn parts_are_apart_and_drives_have_as_many() {
        for (nodes, per_node, zones, width) in [
            (8, 1, 1, 3),
            (4, 2, 1, 3),
            (20, 5, 1, 12),
            (3, 4, 1, 3),
            (2, 3, 1, 3),
            (2, 6, 1, 9),
            (12, 4, 3, 3),
            (30, 2, 5, 3),
            (16, 2, 4, 12),
            (4, 2, 2, 3),
        ] {
            let places = places(nodes, per_node, zones);
            let ring = Ring::new(places, (width, 100), &mut fastrand::Rng::with_seed(1));
            let drives = nodes * per_node;
            for partition in 0..ring.partitions() {
                let row = ring.drives(partition);
                let different = |of: &dyn Fn(u32) -> u32| {
                    let of: std::collections::BTreeSet<u32> = row.iter().map(|n| of(*n)).collect();
                    of.len() as u32
                };
                let found = (
                    different(&|drive| drive),
                    different(&|drive| places.node_of(drive)),
                    different(&|drive| places.zone_of(drive)),
                );
                let wanted = (width, width.min(nodes), width.min(zones));
                assert_eq!(found, wanted, "{places:?} {width}");
            }
            let fair = f64::from(ring.partitions() * width) / f64::from(drives);
            for drive in 0..drives {
                let has = ring.parts_of(drive).len() as f64;
                assert!(
                    (has / fair - 1.0).abs() < 0.06,
                    "{places:?} {width}: {has} of {fair}"
                );
            }
        }
    }

    #[test]
    fn drives_share_what_partitions_they_have() {
        let places = places(2, 2, 1);
        let mut ring = Ring::new(places, (2, 100), &mut fastrand::Rng::with_seed(1));
        assert!(ring.groups(places, 1).has(0));
        for part in ring.parts_of(0) {
            ring.hand_over(part, 1);
        }
        assert!(ring.parts_of(0).is_empty());
        assert!(!ring.groups(places, 1).has(0));
    }

    #[test]
    fn a_zone_cleans_at_once_where_no_object_has_two_replicas_in_one() {
        let of = |zones, width, limit| {
            let places = places(60, 4, zones);
            let ring = Ring::new(places, (width, 100), &mut fastrand::Rng::with_seed(1));
            let groups = ring.groups(places, limit);
            groups.shift_count()
        };
        assert_eq!(of(3, 3, 1), Some(3));
        assert_eq!(of(6, 3, 1), Some(6), "any two zones share objects");
        assert_eq!(of(12, 12, 3), Some(4), "three zones at once");
        assert_eq!(of(1, 3, 1), None, "60 machines are too many");
        assert_eq!(of(2, 3, 1), None, "two of three are in one");
    }
}
