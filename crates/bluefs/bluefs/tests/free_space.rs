//! The reported free space is what fits, on an empty drive and on one full of deleted data.

use crate::support::{assert_clean, format, mount};
use bluefs::{BlueFs, Error, Role};
use device::MemoryDrive;
use std::sync::Arc;
use zone::{Geometry, ZoneKind};

/// Zones by which the space that fits may exceed the reported one (two that compactions leave to others) or fall short
/// of it (as many as may be partly written when the drive is full).
const ZONES_MORE: u64 = 4;
const ZONES_LESS: u64 = 4;

fn geometry(zone_count: u32, conventional_zones: u32, max_active_zones: u32) -> Geometry {
    Geometry {
        block_size: 4096,
        zone_size: 256 << 10,
        zone_capacity: 256 << 10,
        zone_count,
        conventional_zones,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: max_active_zones,
        max_active_zones,
        max_append_bytes: 0,
    }
}

fn padded(size: u64) -> u64 {
    size.next_multiple_of(4096)
}

/// Writes files until there is no space. Returns the bytes written, in whole blocks.
fn fill(fs: &BlueFs, sizes: &[u64], names: &mut Vec<(String, u64)>) -> u64 {
    let mut fits = 0;
    for round in 0.. {
        let size = sizes[round % sizes.len()];
        let name = format!("/{:06}-{}.sst", names.len(), fits);
        let mut writer = match fs.create(&name) {
            Ok(writer) => writer,
            Err(error) => panic!("{error}"),
        };
        writer.set_expected_size(size);
        let written = writer
            .append(&vec![round as u8; size as usize])
            .and_then(|()| writer.close())
            .and_then(|()| fs.sync_metadata());
        match written {
            Ok(()) => {
                fits += padded(size);
                names.push((name, size));
            }
            Err(Error::NoSpace { .. }) => {
                drop(writer);
                fs.delete(&name).unwrap();
                fs.sync_metadata().unwrap();
                return fits;
            }
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!()
}

#[track_caller]
fn agree(said: u64, fits: u64, largest: u64, g: &Geometry, told: &str) {
    let more = ZONES_MORE * g.zone_capacity;
    let less = ZONES_LESS * g.zone_capacity + largest;
    assert!(
        fits <= said + more && fits + less >= said,
        "{told}: {said} said, {fits} fit, zones of {}",
        g.zone_capacity
    );
}

#[test]
fn what_is_said_to_be_free_fits() {
    let zone = 256 << 10;
    let kinds: [&[u64]; 5] = [
        &[30_000],
        &[zone / 2],
        &[zone + 1],
        &[zone * 3],
        &[700, zone * 2, 9_000, zone - 1, 20_000],
    ];
    for (conventional, active) in [(0, 0), (6, 0), (0, 14)] {
        for zones in [60, 150] {
            for sizes in kinds {
                let g = geometry(zones, conventional, active);
                let device = Arc::new(MemoryDrive::new(g.clone()).unwrap());
                format(&*device, Role::Alone);
                let fs = mount(device.clone()).unwrap();
                let mut names = Vec::new();
                let largest = sizes.iter().copied().max().unwrap();
                let told =
                    |what: &str| format!("{what}, {zones} {conventional} {active} {sizes:?}");
                let said = fs.usage().free_bytes;
                let fits = fill(&fs, sizes, &mut names);
                agree(said, fits, largest, &g, &told("empty"));
                // Deleted data counts as free at once, before anything has been cleaned.
                for nth in [2, 3] {
                    let mut index = 0;
                    names.retain(|(name, _)| {
                        index += 1;
                        let keep = index % nth == 0;
                        if !keep {
                            fs.delete(name).unwrap();
                        }
                        keep
                    });
                    fs.sync_metadata().unwrap();
                    let said = fs.usage().free_bytes;
                    let fits = fill(&fs, sizes, &mut names);
                    agree(
                        said,
                        fits,
                        largest,
                        &g,
                        &told(&format!("one in {nth} kept")),
                    );
                }
                assert_clean(&fs);
            }
        }
    }
}
