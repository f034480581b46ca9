//! Objects held for clients between calls (staged data, open readers), under ids that are never reused.

use parking_lot::Mutex;
use runtime::{HashMap, Runtime};
use std::time::Duration;

/// Time after which a held object that is not used is dropped.
pub const KEPT: Duration = Duration::from_secs(600);

/// Held objects of one kind.
pub struct Held<T> {
    /// Random for each start of the daemon, so that an id of an earlier start means nothing.
    prefix: String,
    runtime: Runtime,
    most: usize,
    state: Mutex<State<T>>,
}

struct State<T> {
    next: u64,
    things: HashMap<u64, (Duration, T)>,
}

impl<T> Held<T> {
    /// Holds at most `most` objects at a time.
    pub fn new(runtime: Runtime, most: usize) -> std::io::Result<Self> {
        let prefix = u64::from_le_bytes(runtime.bytes()?);
        Ok(Self {
            prefix: format!("{prefix:016x}"),
            runtime,
            most,
            state: Mutex::new(State {
                next: 0,
                things: HashMap::default(),
            }),
        })
    }

    /// Holds `thing` and returns its id; `None` if too many are held.
    pub fn keep(&self, thing: T) -> Option<String> {
        let now = self.runtime.now();
        let mut state = self.state.lock();
        if state.things.len() >= self.most {
            return None;
        }
        let number = state.next;
        state.next += 1;
        state.things.insert(number, (now, thing));
        Some(format!("{}-{number}", self.prefix))
    }

    /// Removes a held object and returns it.
    pub fn take(&self, id: &str) -> Option<T> {
        let number = self.number(id)?;
        let (_, thing) = self.state.lock().things.remove(&number)?;
        Some(thing)
    }

    /// Holds an object that was taken, under its former id.
    pub fn put_back(&self, id: &str, thing: T) {
        if let Some(number) = self.number(id) {
            let now = self.runtime.now();
            self.state.lock().things.insert(number, (now, thing));
        }
    }

    /// A copy of a held object, which stays; its time limit begins again.
    pub fn get(&self, id: &str) -> Option<T>
    where
        T: Clone,
    {
        let (number, now) = (self.number(id)?, self.runtime.now());
        let mut state = self.state.lock();
        let (used, thing) = state.things.get_mut(&number)?;
        *used = now;
        Some(thing.clone())
    }

    /// Drops objects that were not used for [`KEPT`]; returns their number. Those that are `in_use` now are used.
    pub fn sweep(&self, in_use: impl Fn(&T) -> bool) -> usize {
        let now = self.runtime.now();
        let mut state = self.state.lock();
        let old = state.things.extract_if(|_, (used, thing)| {
            if in_use(thing) {
                *used = now;
            }
            now.saturating_sub(*used) >= KEPT
        });
        let old: Vec<_> = old.collect();
        drop(state);
        // They are dropped without the lock, because that gives space back to the store.
        old.len()
    }

    fn number(&self, id: &str) -> Option<u64> {
        let digits = id.strip_prefix(&self.prefix)?.strip_prefix('-')?;
        digits.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::SimulatedClock;
    use std::sync::Arc;

    #[test]
    fn what_is_left_alone_goes() {
        let clock = Arc::new(SimulatedClock::default());
        let runtime = Runtime::seeded(1).with_clock(clock.clone());
        let held = Held::new(runtime.clone(), 2).unwrap();
        let (first, second) = (held.keep(1).unwrap(), held.keep(2).unwrap());
        assert_eq!(held.keep(3), None);
        runtime.wait_until(KEPT / 2);
        assert_eq!(held.get(&second), Some(2));
        runtime.wait_until(KEPT);
        assert_eq!(held.sweep(|_| false), 1);
        assert_eq!((held.take(&first), held.take(&second)), (None, Some(2)));
        assert_eq!(held.take(&second), None);
        held.put_back(&second, 2);
        assert_eq!(held.take(&second), Some(2));
    }

    #[test]
    fn an_id_of_another_start_means_nothing() {
        let one = Held::new(Runtime::seeded(1), 8).unwrap();
        let other = Held::new(Runtime::seeded(2), 8).unwrap();
        let id = one.keep("mine").unwrap();
        other.keep("theirs").unwrap();
        assert_eq!(other.take(&id), None);
        for id in ["", "-", "0", "é-0", &id[..id.len() - 1]] {
            assert_eq!(one.take(id), None, "{id}");
        }
    }
}
