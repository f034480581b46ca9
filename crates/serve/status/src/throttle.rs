//! Limits guesses of secrets: counts wrong ones by key and address, and refuses more after [`MOST`]. Pure.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// Wrong secrets of a key from an address that are allowed within [`WINDOW`].
const MOST: u32 = 10;
/// Time that wrong secrets count, from the first of them.
const WINDOW: Duration = Duration::from_secs(60);
/// Pairs of key and address that are remembered; all further pairs share one entry.
const GUESSERS: usize = 1024;
/// Characters kept of an access key, which may be as long as a header.
const NAME_CHARS: usize = 64;

/// `None` is the entry that all further pairs share.
type Guesser = Option<(IpAddr, String)>;

/// Wrong secrets by key and address. Times count from any fixed point.
#[derive(Default)]
pub(crate) struct Throttle {
    wrong: BTreeMap<Guesser, (Duration, u32)>,
}

impl Throttle {
    /// Counts a wrong secret of `key`. If there were too many already, returns how long to wait.
    pub(crate) fn note(&mut self, asker: IpAddr, key: &str, now: Duration) -> Option<Duration> {
        let guesser = Some((asker, key.chars().take(NAME_CHARS).collect()));
        self.wrong.retain(|_, (since, _)| *since + WINDOW > now);
        let is_known = self.wrong.contains_key(&guesser);
        let guesser = guesser.filter(|_| is_known || self.wrong.len() < GUESSERS);
        let (since, wrong) = self.wrong.entry(guesser).or_insert((now, 0));
        if *wrong >= MOST {
            return Some(*since + WINDOW - now);
        }
        *wrong += 1;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn address(n: u32) -> IpAddr {
        IpAddr::V4(std::net::Ipv4Addr::from_bits(n))
    }

    #[test]
    fn who_guesses_waits_and_others_do_not() {
        let (mut throttle, second) = (Throttle::default(), Duration::from_secs(1));
        for _ in 0..MOST {
            assert_eq!(throttle.note(address(1), "key", second), None);
        }
        assert_eq!(
            throttle.note(address(1), "key", second * 2),
            Some(WINDOW - second)
        );
        // Behind one proxy everybody has its address.
        assert_eq!(throttle.note(address(1), "another", second * 2), None);
        assert_eq!(throttle.note(address(2), "key", second * 2), None);
        // And from there on it counts anew.
        for _ in 0..MOST {
            assert_eq!(throttle.note(address(1), "key", second * 62), None);
        }
        assert!(throttle.note(address(1), "key", second * 62).is_some());
    }

    #[test]
    fn a_crowd_takes_no_memory() {
        let mut throttle = Throttle::default();
        let long = "k".repeat(1 << 16);
        for n in 0..10_000 {
            throttle.note(address(n), &long, Duration::ZERO);
        }
        assert_eq!(throttle.wrong.len(), GUESSERS + 1);
        let names = throttle.wrong.keys().flatten().map(|(_, key)| key.len());
        assert_eq!(names.max(), Some(NAME_CHARS));
        assert!(throttle.note(address(20_000), "", Duration::ZERO).is_some());
        assert_eq!(throttle.note(address(1), "", WINDOW), None);
        assert_eq!(throttle.wrong.len(), 1);
    }
}
