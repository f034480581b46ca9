//! A drive with direct I/O gives the same bytes as one in memory, whatever goes past the host's page cache and whatever
//! goes through it.

use device::{FileDrive, MemoryDrive, ZonedDevice};
use fastrand::Rng;
use zone::{ByteOffset, Geometry, ZoneId, ZoneKind};

const BLOCK: u64 = 4096;
const ZONES: u32 = 4;

const GEOMETRY: Geometry = Geometry {
    block_size: BLOCK as u32,
    zone_size: 4 << 20,
    zone_capacity: 4 << 20,
    zone_count: ZONES,
    conventional_zones: 1,
    conventional_parts: 1,
    sequential_kind: ZoneKind::SequentialWriteRequired,
    max_open_zones: 0,
    max_active_zones: 0,
    max_append_bytes: 0,
};

/// A length that is now small and now large, up to `most` blocks.
fn blocks(rng: &mut Rng, most: u64) -> u64 {
    let most = if rng.bool() { most.min(4) } else { most };
    rng.u64(1..=most)
}

/// A page-aligned part of `memory`, or one that is not.
fn part<'a>(rng: &mut Rng, memory: &'a mut [u8], length: u64) -> &'a mut [u8] {
    let aligned = memory.as_ptr().align_offset(BLOCK as usize);
    let from = aligned + if rng.bool() { 0 } else { 8 };
    &mut memory[from..][..length as usize]
}

#[test]
fn direct_and_cached_requests_see_the_same_bytes() {
    let mut rng = Rng::with_seed(5);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.zoned");
    let mut drive = FileDrive::create(&path, &GEOMETRY, "test")
        .unwrap()
        .with_direct_io();
    let memory = MemoryDrive::new(GEOMETRY).unwrap();
    let (mut one, mut other) = (vec![0; (2 << 20) + 8192], vec![0; (2 << 20) + 8192]);
    for step in 0..600 {
        let zone = ZoneId(rng.u32(0..ZONES));
        let start = GEOMETRY.start(zone);
        let found = memory.report(zone, 1).unwrap()[0];
        let pointer = found.write_pointer_valid().then_some(found.write_pointer);
        match rng.u32(0..10) {
            0..4 => {
                let offset = pointer.unwrap_or_else(|| rng.u64(0..512) * BLOCK);
                let room = (GEOMETRY.zone_capacity - offset) / BLOCK;
                if room == 0 {
                    memory.reset(zone).unwrap();
                    drive.reset(zone).unwrap();
                    continue;
                }
                let length = blocks(&mut rng, room.min(512)) * BLOCK;
                let data = part(&mut rng, &mut one, length);
                rng.fill(data);
                let at = ByteOffset(start.0 + offset);
                memory.write(at, data).unwrap();
                drive.write(at, data).unwrap();
            }
            4 => drive.flush().unwrap(),
            5 if rng.u32(0..10) == 0 => {
                drop(drive);
                drive = FileDrive::open(&path).unwrap().with_direct_io();
            }
            _ => {
                let from = rng.u64(0..GEOMETRY.zone_capacity / BLOCK);
                let most = (GEOMETRY.zone_capacity / BLOCK - from).min(512);
                let length = blocks(&mut rng, most) * BLOCK;
                let at = ByteOffset(start.0 + from * BLOCK);
                let (found, expected) = (
                    part(&mut rng, &mut one, length),
                    part(&mut rng, &mut other, length),
                );
                drive.read(at, found).unwrap();
                memory.read(at, expected).unwrap();
                assert!(found == expected, "step {step}: {length} bytes at {at:?}");
            }
        }
    }
}
