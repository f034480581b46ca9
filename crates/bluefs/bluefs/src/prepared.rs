//! A zone on its way from the pool to a file, and one on its way back.

use zone::ZoneId;

/// An empty zone that is ours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prepared {
    pub zone: ZoneId,
    /// The batch that takes it.
    pub taken_in: u64,
    /// The flush after which it may be written to, known once that batch is in the journal: by then
    /// its frames and the zone's last reset are durable.
    pub ready: Option<u64>,
}

/// A zone without live data, not reset yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Freed {
    pub zone: ZoneId,
    /// It still holds an active resource of the drive.
    pub active: bool,
}
