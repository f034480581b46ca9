//! Which drives have an object: partitions, as in a ring of OpenStack Swift.

/// See the head of this file.
#[derive(Clone, Debug)]
pub struct Ring {
    width: usize,
    /// The drives of each partition, one partition behind the other.
    rows: Vec<u32>,
}

/// A part of a partition that was on a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// Of which partition.
    pub partition: u32,
    /// Which of its replicas or fragments.
    pub index: u32,
}

impl Ring {
    /// `width` drives for each partition, and so many partitions a drive at least: on different nodes where there are so many, else different drives. All
    /// drives have as many partitions, but for a few.
    pub fn new(
        (nodes, drives_per_node): (u32, u32),
        (width, partitions_a_drive): (u32, u32),
        random: &mut fastrand::Rng,
    ) -> Self {
        let drives = nodes * drives_per_node;
        let partitions = (drives * partitions_a_drive)
            .div_ceil(width)
            .next_power_of_two();
        let mut decks: Vec<Vec<u32>> = vec![Vec::new(); nodes as usize];
        let mut deck: Vec<u32> = Vec::new();
        let mut rows = Vec::with_capacity((partitions * width) as usize);
        for _ in 0..partitions {
            let mut row: Vec<u32> = Vec::with_capacity(width as usize);
            while row.len() < width as usize {
                if deck.is_empty() {
                    deck = (0..nodes).collect();
                    random.shuffle(&mut deck);
                }
                // The next node that has none yet; where all have one, any.
                let has = |node: u32| row.iter().any(|drive| drive / drives_per_node == node);
                let place = deck.iter().rposition(|node| !has(*node));
                let node = match place {
                    Some(place) => deck.remove(place),
                    None if row.len() < nodes as usize => {
                        deck.clear();
                        continue;
                    }
                    None => deck.pop().unwrap_or_default(),
                };
                // Its drives in turn, in an order of its own each time.
                let drives = &mut decks[node as usize];
                if !drives.iter().any(|drive| !row.contains(drive)) {
                    *drives = (node * drives_per_node..(node + 1) * drives_per_node).collect();
                    random.shuffle(drives);
                }
                if let Some(place) = drives.iter().rposition(|drive| !row.contains(drive)) {
                    row.push(drives.remove(place));
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

    /// What a drive has.
    pub fn parts_of(&self, drive: u32) -> Vec<Part> {
        let all = self.rows.iter().enumerate();
        let its = all.filter(|(_, other)| **other == drive);
        its.map(|(place, _)| Part {
            partition: (place / self.width) as u32,
            index: (place % self.width) as u32,
        })
        .collect()
    }

    /// Another drive has this part from now on.
    pub fn hand_over(&mut self, part: Part, to: u32) {
        self.rows[part.partition as usize * self.width + part.index as usize] = to;
    }

    /// By drive: the others that have a part of one of its partitions.
    pub fn sharing(&self, drives: u32) -> Vec<Vec<u32>> {
        let mut sharing = vec![Vec::new(); drives as usize];
        for row in self.rows.chunks(self.width) {
            for drive in row {
                let others = row.iter().filter(|other| *other != drive);
                sharing[*drive as usize].extend(others);
            }
        }
        for all in &mut sharing {
            all.sort_unstable();
            all.dedup();
        }
        sharing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_on_different_nodes_and_drives_have_as_many() {
        for (nodes, per_node, width) in [
            (8, 1, 3),
            (4, 2, 3),
            (20, 5, 12),
            (3, 4, 3),
            (2, 3, 3),
            (2, 6, 9),
        ] {
            let ring = Ring::new(
                (nodes, per_node),
                (width, 100),
                &mut fastrand::Rng::with_seed(1),
            );
            let drives = nodes * per_node;
            for partition in 0..ring.partitions() {
                let mut row = ring.drives(partition).to_vec();
                row.sort_unstable();
                row.dedup();
                assert_eq!(row.len(), width as usize, "{nodes} {per_node} {width}");
                row.iter_mut().for_each(|drive| *drive /= per_node);
                row.dedup();
                assert_eq!(
                    row.len() as u32,
                    width.min(nodes),
                    "{nodes} {per_node} {width}"
                );
            }
            let fair = f64::from(ring.partitions() * width) / f64::from(drives);
            for drive in 0..drives {
                let has = ring.parts_of(drive).len() as f64;
                assert!(
                    (has / fair - 1.0).abs() < 0.06,
                    "{nodes} {per_node} {width}: {has} of {fair}"
                );
            }
        }
    }

    #[test]
    fn drives_share_what_partitions_they_have() {
        let mut ring = Ring::new((2, 2), (2, 100), &mut fastrand::Rng::with_seed(1));
        assert_eq!(ring.sharing(4)[0].len(), 2);
        for part in ring.parts_of(0) {
            ring.hand_over(part, 1);
        }
        assert!(ring.parts_of(0).is_empty());
        assert!(ring.sharing(4)[0].is_empty());
    }
}
