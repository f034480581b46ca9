//! The superblock: one block, appended to two rings of two zones each; the highest generation counts.

use super::{FORMAT_VERSION, ONE_COPY_VERSION, crc32c};
use codec::Reader;
use zone::{Bytes, ZoneId};

/// First bytes of a superblock.
pub const MAGIC: [u8; 8] = *b"ZSBLUEFS";
/// Encoded bytes; the rest of the block is zero.
pub const ENCODED: usize = 104;
/// Encoded bytes of a superblock with one copy of the metadata.
const ENCODED_ONE_COPY: usize = 96;
/// Encodes the absence of a twin.
const NO_ZONE: u32 = u32::MAX;

/// The other owner of zones on the drive, if any.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// None: zones that BlueFS does not own are free, and are reset at mount if they are not empty.
    Alone,
    /// An object store, which claims its zones itself.
    Shared,
}

/// The contents of a superblock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Superblock {
    /// The format version in which it was written.
    pub version: u32,
    /// The file system's identity.
    pub uuid: [u8; 16],
    /// Whether an object store shares the drive.
    pub role: Role,
    /// Grows by at least one with every superblock written.
    pub generation: u64,
    /// The drive's block size when it was formatted.
    pub block_size: u32,
    /// The drive's zone size in bytes.
    pub zone_size: u64,
    /// The drive's zone capacity in bytes.
    pub zone_capacity: u64,
    /// The drive's number of zones, where each conventional zone counts as one.
    pub zone_count: u32,
    /// Parts into which each conventional zone is divided, each used as a zone; 1 if they are whole.
    pub conventional_parts: u32,
    /// The epoch of the journal.
    pub journal_epoch: u64,
    /// The zone in which the journal begins.
    pub journal_zone: ZoneId,
    /// Frames that were durable before this superblock was written: if there are fewer, that is damage, not a torn
    /// tail.
    pub journal_frames: u64,
    /// The zone in which the next epoch's journal will begin; its present content does not count.
    pub spare_zone: ZoneId,
    /// The twin of the journal's first zone.
    pub journal_twin: Option<ZoneId>,
    /// The twin of the spare zone.
    pub spare_twin: Option<ZoneId>,
}

/// Result of decoding a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decoded {
    /// A superblock.
    Valid(Superblock),
    /// A superblock of another format version with a valid checksum.
    OtherVersion(u32),
    /// No superblock, or an incomplete one.
    Nothing,
}

impl Superblock {
    /// The UUID in hexadecimal digits.
    pub fn identity(&self) -> String {
        self.uuid.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Names and values of its fields, for output.
    pub fn in_words(&self) -> Vec<(&'static str, String)> {
        let role = match self.role {
            Role::Alone => "alone on the drive, for programs",
            Role::Shared => "the metadata of an object store",
        };
        let (epoch, begins) = (self.journal_epoch, self.journal_zone);
        let zones = format!("{} of {} each", self.zone_count, Bytes(self.zone_capacity));
        vec![
            ("identity", self.identity()),
            ("format", format!("version {}", self.version)),
            ("role", role.to_owned()),
            ("superblock", format!("generation {}", self.generation)),
            ("journal", format!("epoch {epoch}, begins in zone {begins}")),
            ("next journal", format!("in zone {}", self.spare_zone)),
            ("zones", zones),
            ("copies of metadata", self.copies().to_string()),
        ]
    }

    /// Zones that hold each byte of metadata.
    pub fn copies(&self) -> u32 {
        if self.version == FORMAT_VERSION { 2 } else { 1 }
    }

    /// The same superblock with the next generation.
    pub(crate) fn next(&self) -> Self {
        Self {
            generation: self.generation.saturating_add(1),
            ..*self
        }
    }

    /// Encodes one block of `block_size` bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.block_size as usize);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend_from_slice(&[0; 4]); // checksum, below
        out.extend_from_slice(&self.uuid);
        out.extend_from_slice(&self.generation.to_le_bytes());
        out.extend_from_slice(&self.zone_size.to_le_bytes());
        out.extend_from_slice(&self.zone_capacity.to_le_bytes());
        out.extend_from_slice(&self.zone_count.to_le_bytes());
        out.extend_from_slice(&self.block_size.to_le_bytes());
        out.extend_from_slice(&self.journal_epoch.to_le_bytes());
        out.extend_from_slice(&self.journal_frames.to_le_bytes());
        out.extend_from_slice(&self.journal_zone.0.to_le_bytes());
        let role: u32 = match self.role {
            Role::Alone => 1,
            Role::Shared => 2,
        };
        out.extend_from_slice(&role.to_le_bytes());
        out.extend_from_slice(&self.spare_zone.0.to_le_bytes());
        let more_parts = self.conventional_parts.saturating_sub(1);
        out.extend_from_slice(&more_parts.to_le_bytes());
        if self.copies() > 1 {
            for twin in [self.journal_twin, self.spare_twin] {
                let twin = twin.map_or(NO_ZONE, |zone| zone.0);
                out.extend_from_slice(&twin.to_le_bytes());
            }
        }
        let sum = crc32c(&out);
        out[12..16].copy_from_slice(&sum.to_le_bytes());
        out.resize(self.block_size as usize, 0);
        out
    }

    /// Decodes the first [`ENCODED`] bytes of a block.
    pub fn decode(block: &[u8]) -> Decoded {
        Self::try_decode(block).unwrap_or(Decoded::Nothing)
    }

    fn try_decode(block: &[u8]) -> Option<Decoded> {
        let version = Reader(block.get(8..12)?).u32()?;
        let length = match version {
            FORMAT_VERSION => ENCODED,
            _ => ENCODED_ONE_COPY,
        };
        let mut encoded = block.get(..length)?.to_vec();
        let stored = u32::from_le_bytes([encoded[12], encoded[13], encoded[14], encoded[15]]);
        encoded[12..16].fill(0);
        if encoded[..8] != MAGIC || crc32c(&encoded) != stored {
            return None;
        }
        if !(ONE_COPY_VERSION..=FORMAT_VERSION).contains(&version) {
            return Some(Decoded::OtherVersion(version));
        }
        let mut b = Reader(&encoded[12..]);
        b.u32()?;
        let uuid = b.take(16)?.try_into().ok()?;
        let generation = b.u64()?;
        let (zone_size, zone_capacity, zone_count, block_size) =
            (b.u64()?, b.u64()?, b.u32()?, b.u32()?);
        let (journal_epoch, journal_frames) = (b.u64()?, b.u64()?);
        let journal_zone = ZoneId(b.u32()?);
        let role = match b.u32()? {
            1 => Role::Alone,
            2 => Role::Shared,
            _ => return None,
        };
        let spare_zone = ZoneId(b.u32()?);
        let conventional_parts = b.u32()?.checked_add(1)?;
        let mut twin = || b.u32().filter(|zone| *zone != NO_ZONE).map(ZoneId);
        let (journal_twin, spare_twin) = (twin(), twin());
        Some(Decoded::Valid(Self {
            version,
            uuid,
            role,
            generation,
            block_size,
            zone_size,
            zone_capacity,
            zone_count,
            conventional_parts,
            journal_epoch,
            journal_zone,
            journal_frames,
            spare_zone,
            journal_twin,
            spare_twin,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn sample() -> Superblock {
        Superblock {
            version: FORMAT_VERSION,
            uuid: [9; 16],
            role: Role::Shared,
            generation: 3,
            block_size: 4096,
            zone_size: 1 << 28,
            zone_capacity: 1 << 27,
            zone_count: 256,
            conventional_parts: 4,
            journal_epoch: 5,
            journal_zone: ZoneId(4),
            journal_frames: 2,
            spare_zone: ZoneId(7),
            journal_twin: Some(ZoneId(8)),
            spare_twin: None,
        }
    }

    #[test]
    fn decoding_inverts_encoding() {
        assert_eq!(
            Superblock::decode(&sample().encode()),
            Decoded::Valid(sample())
        );
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let good = sample().encode();
        for at in 0..ENCODED {
            let mut bad = good.clone();
            bad[at] ^= 0x40;
            assert_eq!(Superblock::decode(&bad), Decoded::Nothing, "byte {at}");
        }
    }

    #[test]
    fn another_version_is_named() {
        for version in [1, 4, ONE_COPY_VERSION, 8] {
            let written = Superblock {
                version,
                journal_twin: None,
                ..sample()
            };
            let expected = match version {
                ONE_COPY_VERSION => Decoded::Valid(written),
                _ => Decoded::OtherVersion(version),
            };
            assert_eq!(Superblock::decode(&written.encode()), expected);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_do_not(block in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Superblock::decode(&block);
        }
    }
}
