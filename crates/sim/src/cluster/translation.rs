//! The translation layer of a drive with a persistent cache, reduced to a few numbers: every write goes to the cache,
//! a write to a full cache waits until a band is cleaned, and the drive cleans in idle time.

use super::service::Service;
use drive_model::{Span, Time};

/// A persistent cache and the bands that it is cleaned into.
#[derive(Clone, PartialEq, Debug)]
pub struct Translation {
    /// Bytes of the host's writes that it takes before cleaning begins.
    pub cache_bytes: u64,
    /// Bytes in the cache that cleaning one band frees.
    pub band_frees_bytes: u64,
    /// How long cleaning one band takes.
    pub band: Service,
    /// The drive begins to clean after this long without a request.
    pub idle: Span,
    /// Bytes in the cache.
    pub cached_bytes: u64,
}

impl Translation {
    /// Writes `bytes` to the cache. Returns how long the write waits for cleaning.
    pub fn write(&mut self, bytes: u64, random: &mut fastrand::Rng) -> Span {
        let mut waits = Span::ZERO;
        while self.cached_bytes > 0 && self.cached_bytes + bytes > self.cache_bytes {
            waits += self.clean(random);
        }
        self.cached_bytes += bytes;
        waits
    }

    fn clean(&mut self, random: &mut fastrand::Rng) -> Span {
        let frees = self.band_frees_bytes.max(1);
        self.cached_bytes = self.cached_bytes.saturating_sub(frees);
        self.band.draw(random)
    }

    /// Cleans between `from`, when the last request ended, and `until`, when the next arrives. Returns when the drive
    /// can begin that request: it first finishes a band that it has begun.
    pub fn idle(&mut self, from: Time, until: Time, random: &mut fastrand::Rng) -> Time {
        let mut at = from + self.idle;
        while at < until && self.cached_bytes > 0 {
            at += self.clean(random);
        }
        // With nothing left to clean, it waits for the host.
        if at > until && until.since(from) >= self.idle {
            at
        } else {
            until
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_cache_has_writes_wait_and_idle_time_empties_it() {
        let mut random = fastrand::Rng::with_seed(1);
        let ms = |n: u32| Span::from_millis(f64::from(n));
        let mut cache = Translation {
            cache_bytes: 100,
            band_frees_bytes: 30,
            band: Service::Constant(ms(500)),
            idle: ms(1_000),
            cached_bytes: 0,
        };
        let waits: Vec<Span> = (0..4).map(|_| cache.write(40, &mut random)).collect();
        assert_eq!(waits, [ms(0), ms(0), ms(500), ms(500)]);
        let at = |n: u32| Time::START + ms(n);
        assert_eq!(cache.idle(at(0), at(900), &mut random), at(900));
        assert_eq!(cache.idle(at(0), at(1_200), &mut random), at(1_500));
        assert_eq!(cache.idle(at(2_000), at(60_000), &mut random), at(60_000));
        assert_eq!(cache.cached_bytes, 0);
    }
}
