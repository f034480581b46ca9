//! `Ssummaries`: the batch up to which segment summaries have a copy of every row.

use codec::{Put, Reader};

const VERSION: u8 = 1;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CopiedRecord {
    /// Rows that this batch and earlier ones changed are in summaries, or have changed again since.
    pub batch: u64,
    /// No later batch was written.
    pub is_all: bool,
}

impl CopiedRecord {
    /// The record of a store without objects.
    pub const NEW: Self = Self {
        batch: 0,
        is_all: true,
    };

    /// The record if any row may be in no summary.
    pub const UNKNOWN: Self = Self {
        batch: 0,
        is_all: false,
    };

    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION, u8::from(self.is_all), 0, 0];
        out.put_u64(self.batch);
        out
    }

    pub fn decode(value: &[u8]) -> Option<Self> {
        let mut r = Reader(value);
        let is_all = match r.take(4)? {
            [VERSION, 0, 0, 0] => false,
            [VERSION, 1, 0, 0] => true,
            _ => return None,
        };
        let batch = r.u64()?;
        r.end()?;
        Some(Self { batch, is_all })
    }
}
