//! Wrong keys, counted by address: who guesses is not listened to for a while. Pure.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// So many wrong answers of an address within [`WINDOW`] are too many.
const MOST: u32 = 10;
/// Since the first of them.
const WINDOW: Duration = Duration::from_secs(60);
/// Addresses that are remembered; beyond, all are one.
const ADDRESSES: usize = 1024;

/// Wrong keys by address. Times are since any one moment.
#[derive(Default)]
pub(crate) struct Throttle {
    wrong: BTreeMap<Option<IpAddr>, (Duration, u32)>,
}

impl Throttle {
    /// How long the address has to wait before it is listened to; `None` if it need not.
    pub(crate) fn wait(&self, asker: IpAddr, now: Duration) -> Option<Duration> {
        [Some(asker), None].iter().find_map(|key| {
            let (since, wrong) = self.wrong.get(key)?;
            let left = (*since + WINDOW).checked_sub(now)?;
            (*wrong >= MOST).then_some(left)
        })
    }

    /// The address gave wrong keys.
    pub(crate) fn note(&mut self, asker: IpAddr, now: Duration) {
        self.wrong.retain(|_, (since, _)| *since + WINDOW > now);
        let is_known = self.wrong.contains_key(&Some(asker));
        let key = (is_known || self.wrong.len() < ADDRESSES).then_some(asker);
        self.wrong.entry(key).or_insert((now, 0)).1 += 1;
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
            assert_eq!(throttle.wait(address(1), second), None);
            throttle.note(address(1), second);
        }
        assert_eq!(throttle.wait(address(1), second * 2), Some(WINDOW - second));
        assert_eq!(throttle.wait(address(2), second * 2), None);
        assert_eq!(throttle.wait(address(1), second * 62), None);
        // And from there on it counts anew.
        throttle.note(address(1), second * 62);
        assert_eq!(throttle.wait(address(1), second * 62), None);
    }

    #[test]
    fn a_crowd_of_addresses_takes_no_memory() {
        let mut throttle = Throttle::default();
        (0..10_000).for_each(|n| throttle.note(address(n), Duration::ZERO));
        assert_eq!(throttle.wrong.len(), ADDRESSES + 1);
        assert!(throttle.wait(address(20_000), Duration::ZERO).is_some());
        throttle.note(address(1), WINDOW);
        assert_eq!(throttle.wrong.len(), 1);
    }
}
