//! Identifies a controller and a zoned namespace (NVMe base, NVM and ZNS command sets). Decoding accepts any
//! bytes.

use super::passthrough::{Data, Failure, Queue, Words, submit};
use crate::linux::shape::Limits;
use std::fs::File;

const IDENTIFY: u8 = 0x06;
const BYTES: usize = 4096;
/// Command set identifier of the Zoned Namespace Command Set.
const ZONED: u32 = 2;
/// Unit of transfer limits: the smallest memory page of the controller, which is 4 KiB on every known one.
const PAGE: u64 = 4096;
/// Most bytes of one command, even if the drive accepts more: the kernel has limits too.
const MOST_AT_ONCE: u64 = 256 << 10;

/// The properties of a namespace that are needed to use it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Namespace {
    pub block_size: u32,
    /// Bytes of the whole namespace.
    pub bytes: u64,
    pub zone_size: u64,
    pub max_open_zones: u32,
    pub max_active_zones: u32,
    /// Most bytes of one read or write.
    pub transfer_bytes: u64,
    /// Most bytes of one zone append.
    pub append_bytes: u64,
}

impl Namespace {
    pub fn limits(&self) -> Limits {
        Limits {
            block_size: self.block_size,
            zone_size: self.zone_size,
            max_open_zones: self.max_open_zones,
            max_active_zones: self.max_active_zones,
            max_append_bytes: self.append_bytes as u32,
        }
    }
}

/// The data structures that identify a namespace and its controller.
pub(super) struct Identity {
    controller: [u8; BYTES],
    zoned_controller: [u8; BYTES],
    namespace: [u8; BYTES],
    zoned_namespace: [u8; BYTES],
}

/// Requests the data structures. Fails for a namespace that is not zoned.
pub(super) fn ask(file: &File, nsid: u32) -> Result<Identity, Failure> {
    let identify = |structure: u32, nsid: u32, set: u32| {
        let mut bytes = [0; BYTES];
        let words = Words {
            opcode: IDENTIFY,
            nsid,
            cdw10: u64::from(structure) | u64::from(set) << 56,
            ..Words::default()
        };
        submit(file, Queue::Admin, words, Data::FromDrive(&mut bytes)).map(|_| bytes)
    };
    Ok(Identity {
        zoned_namespace: identify(5, nsid, ZONED)?,
        namespace: identify(0, nsid, 0)?,
        controller: identify(1, 0, 0)?,
        zoned_controller: identify(6, 0, ZONED)?,
    })
}

/// Decodes the data structures. `None` if they do not describe a usable zoned namespace: its blocks carry
/// metadata, or its values are invalid.
pub(super) fn decode(identity: &Identity) -> Option<Namespace> {
    let namespace = &identity.namespace;
    let zoned = &identity.zoned_namespace;
    let flbas = namespace[26];
    let format = usize::from(flbas & 0xf | (flbas >> 1) & 0x30);
    let lba_format = u32_at(namespace, 128 + 4 * format);
    let (metadata, shift) = (lba_format & 0xffff, lba_format >> 16 & 0xff);
    if metadata != 0 || !(9..=16).contains(&shift) {
        return None;
    }
    let block = 1u64 << shift;
    let zone_size = u64_at(zoned, 2816 + 16 * format).checked_mul(block)?;
    let power = |exponent: u8| PAGE.checked_shl(exponent.into()).unwrap_or(u64::MAX);
    let transfer = match identity.controller[77] {
        0 => MOST_AT_ONCE,
        exponent => power(exponent).min(MOST_AT_ONCE),
    };
    let append = match identity.zoned_controller[0] {
        0 => transfer,
        exponent => power(exponent).min(transfer),
    };
    (zone_size > 0 && append >= block).then_some(Namespace {
        block_size: block as u32,
        bytes: u64_at(namespace, 0).saturating_mul(block),
        zone_size,
        // Counted from 0; all ones, which means no limit, becomes 0.
        max_open_zones: u32_at(zoned, 8).wrapping_add(1),
        max_active_zones: u32_at(zoned, 4).wrapping_add(1),
        transfer_bytes: transfer,
        append_bytes: append,
    })
}

fn u32_at(bytes: &[u8; BYTES], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

fn u64_at(bytes: &[u8; BYTES], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        let mut identity = Identity {
            controller: [0; BYTES],
            zoned_controller: [0; BYTES],
            namespace: [0; BYTES],
            zoned_namespace: [0; BYTES],
        };
        identity.namespace[..8].copy_from_slice(&6144u64.to_le_bytes());
        identity.namespace[26] = 1;
        identity.namespace[128 + 4 + 2] = 12;
        identity.zoned_namespace[4..8].copy_from_slice(&9u32.to_le_bytes());
        identity.zoned_namespace[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        identity.zoned_namespace[2816 + 16..][..8].copy_from_slice(&2048u64.to_le_bytes());
        identity.controller[77] = 5;
        identity
    }

    #[test]
    fn a_zoned_namespace_is_decoded() {
        let mut identity = identity();
        let expected = Namespace {
            block_size: 4096,
            bytes: 24 << 20,
            zone_size: 8 << 20,
            max_open_zones: 0,
            max_active_zones: 10,
            transfer_bytes: 128 << 10,
            append_bytes: 128 << 10,
        };
        assert_eq!(decode(&identity), Some(expected));
        identity.zoned_controller[0] = 2;
        identity.controller[77] = 0;
        let found = decode(&identity).unwrap();
        assert_eq!(found.transfer_bytes, MOST_AT_ONCE);
        assert_eq!(found.append_bytes, 16 << 10);
    }

    #[test]
    fn what_cannot_be_used_or_be_is_refused() {
        let refused = |change: fn(&mut Identity)| {
            let mut identity = identity();
            change(&mut identity);
            decode(&identity).is_none()
        };
        assert!(refused(|i| i.namespace[128 + 4] = 8));
        assert!(refused(|i| i.namespace[128 + 4 + 2] = 8));
        assert!(refused(|i| i.namespace[26] = 0));
        assert!(refused(|i| i.zoned_namespace[2816 + 16..][..8].fill(0)));
        assert!(refused(|i| i.zoned_namespace[2816 + 16..][..8].fill(0xff)));
        for byte in 0..=u8::MAX {
            let mut identity = identity();
            identity.namespace.fill(byte);
            identity.zoned_namespace.fill(byte);
            identity.controller[77] = byte;
            let _ = decode(&identity);
        }
    }
}
