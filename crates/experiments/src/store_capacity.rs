//! Measures how much of a drive a store declares, whether that can be stored, and what overwriting then costs, beside
//! what Linux's zoned XFS declared on drives of the same shapes.

use crate::expected::Expected;
use crate::experiment::{Experiment, Outcome, Run, Stopped};
use crate::filled_store::FilledStore;
use zone::{Geometry, ZoneKind};

const MIB: u64 = 1 << 20;

/// Name; zones of 256 MiB; how many of these are conventional, which come first; per cent of the raw bytes that zoned
/// XFS declares.
const SHAPES: [(&str, u32, u32, f64); 3] = [
    ("64 GiB", 256, 3, 96.9),
    ("256 GiB", 1024, 10, 98.6),
    ("2 TiB", 8192, 82, 98.95),
];

/// Zone size, zones and conventional zones of the drive that is filled: 1.4 GiB.
const SMALL: (u64, u32, u32) = (16 * MIB, 88, 24);
const OBJECTS: u64 = 600;
/// Bytes that zoned XFS wrote to this drive for each byte of these objects, durable or not.
const XFS_COST: f64 = 1.8;

pub const CAPACITY: Experiment = Experiment {
    id: "capacity-store",
    title: "What a store declares can be stored, and is as much as zoned XFS declares",
    source: "Linux's zoned XFS (kernel 7.2) on emulated drives of the same shapes",
    expected: || {
        let declared = SHAPES.map(|(name, .., xfs)| {
            // The store keeps a thousandth for segment summaries, which XFS does not have.
            Expected::at_least(format!("declared of {name}, zones of 256 MiB"), "%", xfs).by(0.1)
        });
        let stored = "1.4 GiB filled with 128 KiB objects: stored ÷ declared";
        let cost = "1.4 GiB, 600 objects of 1 MiB overwritten: drive ÷ object bytes";
        let small = [
            Expected::at_least(stored, "", 1.0).ours(),
            Expected::at_most(cost, "", XFS_COST),
        ];
        declared.into_iter().chain(small).collect()
    },
    measure: |run| {
        let mut measured = Vec::new();
        for (name, zones, conventional, _) in SHAPES {
            run.next(name)?;
            let store = FilledStore::new(drive(256 * MIB, zones, conventional), MIB, run.seed)?;
            let space = store.space();
            measured.push(100.0 * space.capacity_bytes as f64 / space.drive_bytes as f64);
        }
        run.next("filled")?;
        measured.push(stored(run)?);
        run.next("overwritten")?;
        measured.push(cost(run)?);
        Ok(Outcome::from(measured))
    },
};

fn drive(zone: u64, zone_count: u32, conventional_zones: u32) -> Geometry {
    Geometry {
        block_size: 4096,
        zone_size: zone,
        zone_capacity: zone,
        zone_count,
        conventional_zones,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 128,
        max_active_zones: 0,
        max_append_bytes: 0,
    }
}

/// Objects that are stored when there is no more room ÷ objects that fit into the capacity declared at first.
fn stored(run: &Run<'_>) -> Result<f64, Stopped> {
    let (zone, zones, conventional) = SMALL;
    let object = 128 << 10;
    let mut store = FilledStore::new(drive(zone, zones, conventional), object, run.seed)?;
    let declared = store.space().capacity_bytes;
    let whole = declared / object;
    while store.objects < whole && store.space().available_bytes >= object {
        store.add()?;
    }
    Ok(store.objects as f64 / whole as f64)
}

fn cost(run: &Run<'_>) -> Result<f64, Stopped> {
    let (zone, zones, conventional) = SMALL;
    let mut store = FilledStore::new(drive(zone, zones, conventional), MIB, run.seed)?;
    for _ in 0..OBJECTS {
        store.add()?;
    }
    let mut random = run.random(42);
    let settling = 3 * OBJECTS;
    store.overwrite(run, settling, None, &mut random)?;
    let (before, count) = (store.written(), run.scaled(10 * OBJECTS, 2 * OBJECTS));
    store.overwrite(run, count, None, &mut random)?;
    Ok((store.written() - before) as f64 / (count * MIB) as f64)
}
