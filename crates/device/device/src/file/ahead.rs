//! Zeros ahead of a zone's write pointer, which make small sequential writes cheaper.
//!
//! The zeros are written before the data comes, so that the host's file system has allocated blocks for it.
//! Once a flush has made them durable, the zone's entry names their end; and once the entry is durable, the
//! data itself shows where the write pointer is, because it ends where the zeros begin. Such a write costs one
//! request to the disk instead of two. Data whose last block is zero cannot show that, so for it the entry is
//! written.

use codec::is_zero;
use std::io;

/// Largest block for which data may stand for the write pointer: a killed process leaves whole pages of the
/// host, and a block has to be there completely or not at all.
pub(super) const LARGEST_BLOCK: usize = 4096;
/// Bytes of zeros that are written at once. No entry of the zone table names an end that is further ahead.
pub(super) const PREPARED_BYTES: u64 = 1 << 20;
/// Bytes compared at once; every block is a multiple of it.
const STRETCH: usize = 512;
/// Bytes read at once in the search for the end of the data.
const LOOK: u64 = 64 << 10;

/// How far a zone is prepared with zeros. Ends are bytes from its start; `flush` is the number of the first
/// flush that makes the state durable, as does any later one.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) enum Ahead {
    /// No zeros have been written.
    #[default]
    Nothing,
    /// Zeros go up to `end` and are durable after `flush`.
    Prepared { end: u64, flush: u64 },
    /// In addition, the zone's entry names `end`, and is durable after `flush`.
    Named { end: u64, flush: u64 },
}

impl Ahead {
    const fn end(self) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Prepared { end, .. } | Self::Named { end, .. } => end,
        }
    }

    /// Whether a write that ended at `end` has used all prepared zeros.
    pub const fn is_used_up(self, end: u64) -> bool {
        end >= self.end()
    }

    /// Whether `data`, which ends at `end` of the zone, suffices to find the write pointer at its end, if
    /// flushes up to `finished` are done. At the end of the prepared zeros it does not: the entry has to record
    /// the write pointer, or that the zone is full.
    pub fn is_witnessed_by(self, data: &[u8], end: u64, block_size: usize, finished: u64) -> bool {
        let last = data.rchunks(block_size).next().unwrap_or(&[]);
        let is_durably_named = matches!(self, Self::Named { flush, .. } if flush <= finished);
        is_durably_named && block_size <= LARGEST_BLOCK && end < self.end() && !is_zero(last)
    }

    /// The prepared end that the entry of a zone may name, if the zone is written up to `end` and flushes up to
    /// `finished` are done; `None` if the entry has to hold the write pointer itself.
    pub fn nameable(self, end: u64, finished: u64) -> Option<u64> {
        let has_durable_zeros = match self {
            Self::Nothing => false,
            Self::Prepared { flush, .. } => flush <= finished,
            Self::Named { .. } => true,
        };
        (has_durable_zeros && end < self.end()).then(|| self.end())
    }
}

/// The end of the last block from `from` to `to` that is not all zeros; `from` if there is none. `read` fills a
/// buffer from an offset. A block that cannot be read counts as data.
pub(super) fn find_end(
    from: u64,
    to: u64,
    block_size: u64,
    read: &mut dyn FnMut(&mut [u8], u64) -> io::Result<()>,
) -> u64 {
    let mut buffer = vec![0; LOOK.max(block_size) as usize];
    let (mut end, mut look) = (to, buffer.len() as u64);
    while end > from {
        let length = (end - from).min(look);
        let bytes = &mut buffer[..length as usize];
        if read(bytes, end - length).is_err() {
            if length <= block_size {
                return end;
            }
            // The blocks behind the one that cannot be read may be zeros.
            look = block_size;
            continue;
        }
        let mut stretches = bytes.chunks(STRETCH);
        if let Some(last) = stretches.rposition(|stretch| !is_zero(stretch)) {
            let used = ((last * STRETCH) as u64 + 1).next_multiple_of(block_size);
            return end - length + used;
        }
        end -= length;
    }
    from
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: u64 = 16384;

    #[test]
    fn data_tells_only_in_front_of_zeros_that_a_durable_entry_names() {
        let one = [&[0; 4096][..], &[1], &[0; 4095]].concat();
        let (prepared, named) = (
            Ahead::Prepared { end: END, flush: 7 },
            Ahead::Named { end: END, flush: 7 },
        );
        assert!(named.is_witnessed_by(&one, 12288, 4096, 7));
        assert!(!named.is_witnessed_by(&one, 12288, 4096, 6), "not durable");
        assert!(
            !named.is_witnessed_by(&one, END, 4096, 7),
            "nothing behind it"
        );
        assert!(!named.is_witnessed_by(&[0; 4096], 12288, 4096, 7), "zeros");
        assert!(!named.is_witnessed_by(&one, 12288, 8192, 7), "large block");
        assert!(!prepared.is_witnessed_by(&one, 12288, 4096, 7));
        assert!(!Ahead::Nothing.is_witnessed_by(&one, 12288, 4096, 7));
        let zeros_behind = [&one[..], &[0; 4096]].concat();
        assert!(!named.is_witnessed_by(&zeros_behind, 12288, 4096, 7));
    }

    #[test]
    fn an_entry_names_no_zeros_that_may_be_lost() {
        let prepared = Ahead::Prepared { end: END, flush: 7 };
        assert_eq!(prepared.nameable(4096, 6), None);
        assert_eq!(prepared.nameable(4096, 7), Some(END));
        assert_eq!(prepared.nameable(END, 7), None);
        let named = Ahead::Named { end: END, flush: 7 };
        assert_eq!(named.nameable(4096, 0), Some(END));
        assert_eq!(Ahead::Nothing.nameable(4096, 7), None);
    }

    #[test]
    fn the_end_is_behind_the_last_block_that_is_not_zero() {
        let mut medium = vec![0; 300 << 10];
        let find = |medium: &[u8], from, to| {
            find_end(from, to, 4096, &mut |bytes, at| {
                bytes.copy_from_slice(&medium[at as usize..][..bytes.len()]);
                Ok(())
            })
        };
        assert_eq!(find(&medium, 8192, 300 << 10), 8192);
        for at in [8192, 12287, 65535, 65536, 150_000, (300 << 10) - 1] {
            medium[at] = 1;
            let expected = (at as u64 + 1).next_multiple_of(4096);
            assert_eq!(find(&medium, 8192, 300 << 10), expected);
            assert_eq!(find(&medium, expected, 300 << 10), expected);
        }
    }

    #[test]
    fn a_block_that_cannot_be_read_counts_as_data() {
        let (to, data) = (300 << 10, 150_000);
        let data_end = (data as u64 + 1).next_multiple_of(4096);
        let mut medium = vec![0; to as usize];
        medium[data] = 1;
        for (bad, expected) in [
            (200 << 10, 204 << 10),
            (to - 4096, to),
            (data_end - 4096, data_end),
            // In one stretch with the data, in front of it.
            (data_end - 8192, data_end),
            (8192, data_end),
        ] {
            let end = find_end(8192, to, 4096, &mut |bytes, at| {
                if (at..at + bytes.len() as u64).contains(&bad) {
                    return Err(io::ErrorKind::Other.into());
                }
                bytes.copy_from_slice(&medium[at as usize..][..bytes.len()]);
                Ok(())
            });
            assert_eq!(end, expected, "{bad}");
        }
    }
}
