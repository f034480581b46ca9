//! One direction of a network interface: first in, first out.

use drive_model::{Span, Time};

/// A link with a queue.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Bytes a second; 0 for no limit.
    rate: u64,
    free_at: Time,
    bytes: u64,
}

impl Link {
    /// A link of `rate` bytes a second; 0 for no limit.
    pub const fn new(rate: u64) -> Self {
        Self {
            rate,
            free_at: Time::START,
            bytes: 0,
        }
    }

    /// Sends at `now`, after all that is still being sent. Returns when the last byte has passed.
    pub fn send(&mut self, bytes: u64, now: Time) -> Time {
        self.bytes += bytes;
        if self.rate == 0 {
            return now;
        }
        self.free_at = now.max(self.free_at) + Span::transfer(bytes, self.rate);
        self.free_at
    }

    /// Bytes that were sent so far.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_one_after_the_other() {
        let mut link = Link::new(1_000_000);
        let ms = |n: u64| Time::from_nanos(n * 1_000_000);
        assert_eq!(link.send(1_000, ms(5)), ms(6));
        assert_eq!(link.send(2_000, ms(5)), ms(8));
        assert_eq!(link.send(1_000, ms(20)), ms(21));
        assert_eq!(link.bytes(), 4_000);
        assert_eq!(Link::new(0).send(1 << 40, ms(3)), ms(3));
    }
}
