//! The handle to clock, random numbers and threads that a program or a test passes down.

use crate::clock::{Clock, SimulatedClock, SystemClock};
use crate::hash::KeyedHash;
use crate::random::Random;
use crate::thread::{self, JoinHandle};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

/// Clock, random numbers and threads. Cheap to clone; clones share both clock and generator.
#[derive(Clone)]
pub struct Runtime {
    clock: Arc<dyn Clock>,
    random: Arc<Random>,
}

impl Runtime {
    /// The host's clock and random numbers.
    pub fn system() -> Self {
        Self {
            clock: Arc::new(SystemClock::default()),
            random: Arc::new(Random::System),
        }
    }

    /// Random numbers from `seed`, and a [`SimulatedClock`]: a single-threaded run is the same each time.
    pub fn seeded(seed: u64) -> Self {
        Self {
            clock: Arc::new(SimulatedClock::default()),
            random: Arc::new(Random::seeded(seed)),
        }
    }

    /// The same random numbers with another clock.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Unix time in microseconds.
    pub fn unix_micros(&self) -> u64 {
        self.clock.unix_micros()
    }

    /// Minutes since midnight in the local time zone.
    pub fn minute_of_day(&self) -> u16 {
        self.clock.minute_of_day()
    }

    /// Minutes that the local time zone is ahead of UTC.
    pub fn utc_offset_minutes(&self) -> i16 {
        self.clock.utc_offset_minutes()
    }

    /// Monotonic time since some fixed moment.
    pub fn now(&self) -> Duration {
        self.clock.now()
    }

    /// Returns when [`Self::now`] is at least `moment`.
    pub fn wait_until(&self, moment: Duration) {
        self.clock.wait_until(moment);
    }

    /// `N` random bytes, for identities. Fails if the host's random source does.
    pub fn bytes<const N: usize>(&self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.random.fill(&mut bytes)?;
        Ok(bytes)
    }

    /// A hash whose values cannot be predicted by those who choose the hashed values.
    pub fn keyed_hash(&self) -> KeyedHash {
        KeyedHash::new(self.random.number())
    }

    /// Starts a thread named `name`. Fails if the host can start no more threads.
    pub fn spawn<T: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        thread::Builder::new().name(name.to_owned()).spawn(work)
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_every_number() {
        let draw = |seed| {
            let runtime = Runtime::seeded(seed);
            let hash = runtime.keyed_hash().hash_one("name");
            (runtime.bytes::<16>().unwrap(), hash, runtime.unix_micros())
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let system = Runtime::system();
        assert_ne!(system.bytes::<16>().unwrap(), system.bytes().unwrap());
        assert_ne!(
            system.keyed_hash().hash_one("name"),
            system.keyed_hash().hash_one("name")
        );
    }
}
