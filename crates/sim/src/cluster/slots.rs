//! Objects of one size on a drive that takes any write: each new one gets the next free slot, cyclically.

/// The live slots of such a drive, and where the search for a free one begins.
#[derive(Clone, Debug)]
pub struct Slots {
    is_live: Vec<bool>,
    live: usize,
    next: usize,
}

impl Slots {
    /// A drive with this many free slots.
    pub fn new(slots: u64) -> Self {
        Self {
            is_live: vec![false; slots as usize],
            live: 0,
            next: 0,
        }
    }

    /// Live objects.
    pub const fn live(&self) -> u64 {
        self.live as u64
    }

    /// Takes the next free slot; `None` if all are live.
    pub fn write(&mut self) -> Option<u64> {
        if self.live == self.is_live.len() {
            return None;
        }
        let all = self.is_live.len();
        let place = (self.next..self.next + all)
            .map(|n| n % all)
            .find(|n| !self.is_live[*n])?;
        self.is_live[place] = true;
        self.live += 1;
        self.next = place + 1;
        Some(place as u64)
    }

    /// A live slot, drawn at random; `None` if there is none.
    pub fn any_live(&self, random: &mut fastrand::Rng) -> Option<u64> {
        if self.live == 0 {
            return None;
        }
        // Slots are drawn until a live one is found. There is one.
        loop {
            let place = random.usize(..self.is_live.len());
            if self.is_live[place] {
                return Some(place as u64);
            }
        }
    }

    /// Makes a live object dead, drawn at random.
    pub fn kill(&mut self, random: &mut fastrand::Rng) {
        if let Some(place) = self.any_live(random) {
            self.is_live[place as usize] = false;
            self.live -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_taken_in_turn_and_again_when_they_are_free() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut slots = Slots::new(3);
        let taken: Vec<_> = (0..4).map(|_| slots.write()).collect();
        assert_eq!(taken, [Some(0), Some(1), Some(2), None]);
        slots.kill(&mut random);
        assert_eq!(slots.live(), 2);
        let again = slots.write();
        assert!(again.is_some() && slots.write().is_none());
        (0..3).for_each(|_| slots.kill(&mut random));
        assert_eq!(slots.any_live(&mut random), None);
    }
}
