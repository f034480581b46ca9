//! Blocks of a tar archive: headers (ustar). Nothing here does I/O.

use tar::{EntryType, Header};

/// Size of a block in bytes; headers and contents start at a multiple of it.
pub const BLOCK: usize = 512;
/// Bytes of zeros after the last member.
pub const END: usize = 2 * BLOCK;
/// Most bytes of a name in a header; a longer one is in an extended header.
pub const NAME: usize = 100;

/// Type of a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    File = b'0' as isize,
    Directory = b'5' as isize,
    /// Extended header: records for the next member.
    Extended = b'x' as isize,
}

/// A decoded header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    pub kind: Type,
    /// The name, truncated to [`NAME`] bytes.
    pub name: Vec<u8>,
    /// Bytes of content after the header, without padding.
    pub size: u64,
    /// Unix time in seconds.
    pub modified: u64,
}

impl Member {
    pub fn new(kind: Type, name: &[u8], size: u64, modified: u64) -> Self {
        Self {
            kind,
            name: name[..name.len().min(NAME)].to_vec(),
            size,
            modified,
        }
    }

    pub fn encode(&self) -> [u8; BLOCK] {
        let mut header = Header::new_ustar();
        header.as_mut_bytes()[..self.name.len()].copy_from_slice(&self.name);
        header.set_entry_type(EntryType::new(self.kind as u8));
        let is_folder = self.kind == Type::Directory;
        header.set_mode(if is_folder { 0o755 } else { 0o644 });
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(self.size);
        header.set_mtime(self.modified);
        header.set_cksum();
        *header.as_bytes()
    }

    /// Decodes a header; `None` unless [`Self::encode`] makes exactly these bytes.
    pub fn decode(block: &[u8; BLOCK]) -> Option<Self> {
        let header = Header::from_byte_slice(block);
        let kinds = [Type::File, Type::Directory, Type::Extended];
        let is_it = |kind: &Type| *kind as u8 == header.entry_type().as_byte();
        let name = &block[..NAME];
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(NAME);
        let member = Self {
            kind: kinds.into_iter().find(is_it)?,
            name: name[..end].to_vec(),
            size: header.entry_size().ok()?,
            modified: header.mtime().ok()?,
        };
        (member.encode() == *block).then_some(member)
    }

    /// Bytes of content after the header, with padding; `None` if that overflows.
    pub fn padded(&self) -> Option<u64> {
        self.size.checked_next_multiple_of(BLOCK as u64)
    }
}

#[cfg(test)]
// A failed unwrap is a failed test.
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn decoding_inverts_encoding(name in "[a-z/%]{1,120}", size in 0..u64::MAX / 2, modified in 0..u64::MAX / 2) {
            for kind in [Type::File, Type::Directory, Type::Extended] {
                let member = Member::new(kind, name.as_bytes(), size, modified);
                prop_assert_eq!(Member::decode(&member.encode()), Some(member));
            }
        }

        #[test]
        fn any_block_is_a_header_or_not(block in proptest::collection::vec(any::<u8>(), BLOCK)) {
            let block: &[u8; BLOCK] = block.as_slice().try_into().unwrap();
            prop_assert_eq!(Member::decode(block), None);
        }
    }

    #[test]
    fn every_changed_bit_of_a_header_is_noticed() {
        let block = Member::new(Type::File, b"c/object", 77, 1_700_000_000).encode();
        for bit in 0..8 * BLOCK {
            let mut bad = block;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Member::decode(&bad), None, "{bit}");
        }
    }
}
