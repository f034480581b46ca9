//! The streams of one kind (user data or moved data), one for each expected lifetime.

use crate::Result;
use crate::stream::Stream;
use zone::ZoneId;

pub(crate) struct Streams(Vec<Stream>);

impl Streams {
    /// `count` streams, but at least one.
    pub fn new(count: usize, make: impl Fn() -> Stream) -> Self {
        Self((0..count.max(1)).map(|_| make()).collect())
    }

    /// The stream of this number, or the last.
    pub fn of(&self, number: usize) -> &Stream {
        &self.0[number.min(self.0.len() - 1)]
    }

    /// Whether `stream` is one of these.
    pub fn has(&self, stream: &Stream) -> bool {
        self.0.iter().any(|one| std::ptr::eq(one, stream))
    }

    /// A stream that can take data without a new zone.
    pub fn with_room(&self) -> Option<&Stream> {
        self.0.iter().find(|stream| stream.has_room())
    }

    /// Makes whichever stream has `zone` open stop using it, as [`Stream::leave`] does: now, or before its next write.
    pub fn leave(&self, zone: ZoneId) {
        self.0.iter().for_each(|stream| stream.leave(zone));
    }

    /// Gives an open zone to `to`, a stream of another kind that has none; false if no stream has one to give.
    pub fn hand_over(&self, to: &Stream) -> bool {
        self.0.iter().any(|stream| stream.hand_over(to))
    }

    /// Stops using the open zones, so that they can be cleaned.
    pub fn seal(&self) -> Result<()> {
        self.0.iter().try_for_each(Stream::seal)
    }
}
