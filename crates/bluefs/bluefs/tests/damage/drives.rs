//! Blocks of drives: reading and replacing them.

use super::*;

/// Bytes of a block of the drives of these tests.
pub(super) const BLOCK: usize = 512;

pub(super) fn block(device: &MemoryDrive, at: ZoneAddress) -> Vec<u8> {
    let mut bytes = vec![0; BLOCK];
    device
        .read(device.geometry().absolute(at), &mut bytes)
        .unwrap();
    bytes
}

/// A copy of the drive with other bytes in some of its blocks.
pub(super) fn changed(device: &MemoryDrive, blocks: &[(ZoneAddress, Vec<u8>)]) -> Arc<MemoryDrive> {
    let copy = device.snapshot();
    let g = copy.geometry().clone();
    for (at, bytes) in blocks {
        if g.kind(at.zone) == ZoneKind::Conventional {
            copy.write(g.absolute(*at), bytes).unwrap();
            continue;
        }
        let end = copy.report_zone(at.zone).unwrap().write_pointer;
        let mut zone = vec![0; end as usize];
        copy.read(g.start(at.zone), &mut zone).unwrap();
        zone[at.offset as usize..][..BLOCK].copy_from_slice(bytes);
        copy.reset(at.zone).unwrap();
        copy.write(g.start(at.zone), &zone).unwrap();
    }
    Arc::new(copy)
}

pub(super) fn image(device: &MemoryDrive) -> Vec<Vec<u8>> {
    let g = device.geometry();
    let zone = |zone: ZoneId| {
        let mut bytes = vec![0; g.capacity(zone) as usize];
        device.read(g.start(zone), &mut bytes).unwrap();
        bytes
    };
    g.zones().map(zone).collect()
}
