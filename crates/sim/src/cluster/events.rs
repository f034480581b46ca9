//! A queue of events in order of time, with the virtual clock that it drives.

use drive_model::Time;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    at: Time,
    /// Order of entry. Of two events at one time, the one entered first happens first: the order never depends on the
    /// heap.
    number: u64,
    event: E,
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    /// The earlier one is greater, so that it is on top of the heap.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

/// Events and the clock that they drive.
#[derive(Clone, Debug)]
pub struct Events<E> {
    heap: BinaryHeap<Entry<E>>,
    entered: u64,
    now: Time,
}

impl<E> Default for Events<E> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            entered: 0,
            now: Time::START,
        }
    }
}

impl<E> Events<E> {
    /// The time of the last event.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// Number of events entered so far.
    pub const fn entered(&self) -> u64 {
        self.entered
    }

    /// Enters an event. One that should have happened before now happens now.
    pub fn at(&mut self, at: Time, event: E) {
        let (at, number) = (at.max(self.now), self.entered);
        self.entered += 1;
        self.heap.push(Entry { at, number, event });
    }

    /// The time of the next event.
    pub fn next_at(&self) -> Option<Time> {
        self.heap.peek().map(|entry| entry.at)
    }

    /// Takes the next event, and sets the clock to its time.
    pub fn next(&mut self) -> Option<E> {
        let entry = self.heap.pop()?;
        self.now = entry.at;
        Some(entry.event)
    }

    /// Sets the clock to `at`, before which no event is due.
    pub fn pass_until(&mut self, at: Time) {
        debug_assert!(self.next_at().is_none_or(|next| next >= at));
        self.now = self.now.max(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_happen_in_order_and_equals_as_they_were_entered() {
        let mut events = Events::default();
        for (at, name) in [(3, 'd'), (1, 'a'), (3, 'e'), (2, 'b')] {
            events.at(Time::from_nanos(at), name);
        }
        assert_eq!((events.next(), events.next()), (Some('a'), Some('b')));
        events.at(Time::START, 'c');
        let rest: String = std::iter::from_fn(|| events.next()).collect();
        assert_eq!(rest, "cde", "the past is now");
        assert_eq!(events.now(), Time::from_nanos(3));
    }
}
