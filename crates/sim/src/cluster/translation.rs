//! What a translation layer with a persistent cache does behind the host's back, as a few numbers: every write goes
//! to the cache, a full cache has writes wait until a band is cleaned, and idle time is used to clean.

use super::service::Service;
use drive_model::{Span, Time};

/// A persistent cache in front of bands.
#[derive(Clone, PartialEq, Debug)]
pub struct Translation {
    /// Bytes of the host's that it takes until cleaning begins.
    pub cache_bytes: u64,
    /// Bytes of them that cleaning a band frees.
    pub band_frees_bytes: u64,
    /// How long that takes.
    pub band: Service,
    /// Without a request for so long, the drive begins to clean.
    pub idle: Span,
    /// Bytes in the cache.
    pub cached_bytes: u64,
}

impl Translation {
    /// So many bytes are written: how long the write waits for cleaning.
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

    /// Nothing was asked since `from`; something comes at `until`: when the drive can begin with it. A band that
    /// it has begun to clean, it cleans.
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
