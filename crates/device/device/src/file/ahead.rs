//! What lies ahead of a zone's write pointer, where small writes follow each other.
//!
//! Zeros are written there before they come, so that the host's file system has blocks for them. Once a
//! flush has made these zeros durable, the zone's entry says how far they go; and once that is durable, data
//! tells by itself how far the write pointer got, for it ends where the zeros begin. Such a write costs one request
//! to the disk and not two. Data whose last block is zero cannot tell, and has the entry written.

use std::io;

/// No larger block tells: a killed process leaves whole pages of the host, and a block has to be
/// there wholly or not at all.
const LARGEST_BLOCK: usize = 4096;
/// Part of any block.
const STRETCH: usize = 64;
/// How much is looked at at once for the end of the data.
const LOOK: u64 = 64 << 10;

/// How far a zone is prepared. Ends are bytes from its start; what a flush makes durable is so after the
/// flush of that number or any later one.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) enum Ahead {
    /// Not at all.
    #[default]
    Nothing,
    /// There are zeros up to `end`, which `flush` makes durable.
    Prepared { end: u64, flush: u64 },
    /// Besides, the zone's entry names `end`, which `flush` makes durable.
    Named { end: u64, flush: u64 },
}

impl Ahead {
    const fn end(self) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Prepared { end, .. } | Self::Named { end, .. } => end,
        }
    }

    /// Whether a write that ended at `end` has used up what was prepared.
    pub const fn is_used_up(self, end: u64) -> bool {
        end >= self.end()
    }

    /// Whether `data`, which ends at `end` of the zone, is all that is needed to find the write pointer
    /// behind it, if flushes up to `finished` are done. Where the zone ends, the entry has to tell that
    /// it is full.
    pub fn is_witnessed_by(self, data: &[u8], end: u64, block_size: usize, finished: u64) -> bool {
        let last = data.rchunks(block_size).next().unwrap_or(&[]);
        let is_durably_named = matches!(self, Self::Named { flush, .. } if flush <= finished);
        is_durably_named && block_size <= LARGEST_BLOCK && end < self.end() && !is_zero(last)
    }

    /// What the entry of a zone that is written up to `end` may name, if flushes up to `finished` are
    /// done; `None`: the entry has the write pointer itself.
    pub fn nameable(self, end: u64, finished: u64) -> Option<u64> {
        let has_durable_zeros = match self {
            Self::Nothing => false,
            Self::Prepared { flush, .. } => flush <= finished,
            Self::Named { .. } => true,
        };
        (has_durable_zeros && end < self.end()).then(|| self.end())
    }
}

/// The end of the last block from `from` to `to` that is not all zeros; `from` if there is none. `read`
/// fills a buffer from a place on.
pub(super) fn find_end(
    from: u64,
    to: u64,
    block_size: u64,
    read: &mut dyn FnMut(&mut [u8], u64) -> io::Result<()>,
) -> io::Result<u64> {
    let mut buffer = vec![0; LOOK.max(block_size) as usize];
    let mut end = to;
    while end > from {
        let length = (end - from).min(buffer.len() as u64);
        let bytes = &mut buffer[..length as usize];
        read(bytes, end - length)?;
        let mut stretches = bytes.chunks(STRETCH);
        if let Some(last) = stretches.rposition(|stretch| !is_zero(stretch)) {
            let used = ((last * STRETCH) as u64 + 1).next_multiple_of(block_size);
            return Ok(end - length + used);
        }
        end -= length;
    }
    Ok(from)
}

/// By stretches, which the compiler compares at once. A mount looks through a MiB of zeros for every
/// zone that is written in small pieces.
fn is_zero(bytes: &[u8]) -> bool {
    let mut stretches = bytes.chunks(STRETCH);
    stretches.all(|stretch| stretch.iter().fold(0, |all, byte| all | byte) == 0)
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
            .unwrap()
        };
        assert_eq!(find(&medium, 8192, 300 << 10), 8192);
        for at in [8192, 12287, 65535, 65536, 150_000, (300 << 10) - 1] {
            medium[at] = 1;
            let expected = (at as u64 + 1).next_multiple_of(4096);
            assert_eq!(find(&medium, 8192, 300 << 10), expected);
            assert_eq!(find(&medium, expected, 300 << 10), expected);
        }
    }
}
