//! Reads a zone sequentially in pieces that grow: a short journal or log takes one small read, a long one few large
//! ones.

use crate::ring::unread;
use device::ZonedDevice;
use zone::{ZoneAddress, ZoneError, ZoneId, ZoneResult};

const FIRST_PIECE: u64 = 64 << 10;
const LARGEST_PIECE: u64 = 1 << 20;

/// A sequential reader of one zone.
pub(crate) struct Forward<'a> {
    device: &'a dyn ZonedDevice,
    zone: ZoneId,
    /// Zone offset where reading ends.
    limit: u64,
    /// Zone offset of `bytes`.
    from: u64,
    bytes: Vec<u8>,
    piece: u64,
}

impl<'a> Forward<'a> {
    /// A reader of `zone` up to offset `limit`.
    pub fn new(device: &'a dyn ZonedDevice, zone: ZoneId, limit: u64) -> Self {
        Self {
            device,
            zone,
            limit,
            from: 0,
            bytes: Vec::new(),
            piece: FIRST_PIECE,
        }
    }

    /// Reads large pieces from the start, for a zone that is known to hold much.
    pub fn large(mut self) -> Self {
        self.piece = LARGEST_PIECE;
        self
    }

    /// Raises the limit, because more has been written meanwhile.
    pub fn extend(&mut self, limit: u64) {
        self.limit = limit.max(self.limit);
    }

    /// `length` bytes at `offset`; `None` if they extend above the limit or cannot be read. Fails only if the drive
    /// answers no reads at all.
    pub fn get(&mut self, offset: u64, length: u64) -> ZoneResult<Option<&[u8]>> {
        if offset.saturating_add(length) > self.limit {
            return Ok(None);
        }
        if offset < self.from || offset + length > self.from + self.bytes.len() as u64 {
            self.read(offset, length)?;
        }
        let begin = (offset - self.from) as usize;
        Ok(self.bytes.get(begin..begin + length as usize))
    }

    fn read(&mut self, offset: u64, length: u64) -> ZoneResult<()> {
        let g = self.device.geometry();
        let at = g.absolute(ZoneAddress::new(self.zone, offset));
        let piece = self.piece.max(length).min(self.limit - offset);
        self.piece = (self.piece * 4).min(LARGEST_PIECE);
        self.from = offset;
        self.bytes
            .resize((piece - piece % u64::from(g.block_size)) as usize, 0);
        let mut result = self.device.read(at, &mut self.bytes);
        if matches!(&result, Err(error) if !matches!(error, ZoneError::PowerLost { .. })) {
            // The bytes after the requested ones may be unreadable, and are perhaps not needed.
            self.bytes.truncate(length as usize);
            result = self.device.read(at, &mut self.bytes);
        }
        result.or_else(|error| {
            self.bytes.clear();
            tracing::warn!(%error, zone = %self.zone, offset, "metadata cannot be read");
            unread(self.device, self.zone, error)
        })
    }
}
