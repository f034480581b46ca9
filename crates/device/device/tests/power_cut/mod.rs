//! What a power cut leaves: what was flushed, a prefix of each sequential zone, any blocks of a
//! conventional one, and nothing else.

mod after_the_cut;
mod histories;
mod what_is_left;

use device::power_cut::{CrashLimits, CrashState, ZoneChoice};
use device::{MemoryDrive, PowerCut, ZonedDevice};
use proptest::prelude::*;
use std::collections::BTreeSet;
use zone::{ByteOffset, Geometry, ZoneAddress, ZoneCondition, ZoneError, ZoneId, ZoneKind};

const BLOCK: u64 = 512;

const ZONE_BLOCKS: u64 = 8;

const CONVENTIONAL: ZoneId = ZoneId(0);

const A: ZoneId = ZoneId(1);

const B: ZoneId = ZoneId(2);

const C: ZoneId = ZoneId(3);

fn geometry() -> Geometry {
    Geometry {
        block_size: BLOCK as u32,
        zone_size: ZONE_BLOCKS * BLOCK,
        zone_capacity: ZONE_BLOCKS * BLOCK,
        zone_count: 6,
        conventional_zones: 1,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 0,
        max_active_zones: 0,
        max_append_bytes: 4 * BLOCK as u32,
    }
}

fn at(zone: ZoneId, block: u64) -> ByteOffset {
    geometry().absolute(ZoneAddress::new(zone, block * BLOCK))
}

fn put(drive: &dyn ZonedDevice, zone: ZoneId, block: u64, fills: &[u8]) {
    let data: Vec<u8> = fills
        .iter()
        .flat_map(|fill| [*fill; BLOCK as usize])
        .collect();
    drive.write(at(zone, block), &data).unwrap();
}

/// The first byte of each block of a zone, for every block is filled with one value.
fn blocks(drive: &dyn ZonedDevice, zone: ZoneId) -> Vec<u8> {
    let mut bytes = vec![0; (ZONE_BLOCKS * BLOCK) as usize];
    drive.read(at(zone, 0), &mut bytes).unwrap();
    let blocks = bytes.chunks(BLOCK as usize);
    assert!(
        blocks
            .clone()
            .all(|block| block.iter().all(|byte| *byte == block[0]))
    );
    blocks.map(|block| block[0]).collect()
}

fn written(drive: &dyn ZonedDevice, zone: ZoneId) -> Vec<u8> {
    let pointer = drive.report_zone(zone).unwrap().write_pointer / BLOCK;
    let blocks = blocks(drive, zone);
    assert!(blocks[pointer as usize..].iter().all(|fill| *fill == 0));
    blocks[..pointer as usize].to_vec()
}

fn outcomes(drive: &PowerCut, zone: ZoneId) -> BTreeSet<Vec<u8>> {
    let states = drive.crash_states(CrashLimits::default());
    states
        .iter()
        .map(|state| written(&drive.image(state), zone))
        .collect()
}

fn same(one: &dyn ZonedDevice, other: &dyn ZonedDevice) -> bool {
    geometry()
        .zones()
        .all(|zone| blocks(one, zone) == blocks(other, zone))
}
