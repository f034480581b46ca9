//! Compares one SST through BlueFS with the same bytes straight to a drive of the same shape.

use super::{Bench, Figure};
use crate::error::Result;
use crate::paced::Pace;
use crate::raw::RawDrive;
use bluefs::{BlueFs, Lifetime, MountOptions};
use device::{Drive, ZonedDevice};
use runtime::Runtime;
use std::sync::Arc;
use std::time::Duration;

/// Bytes that RocksDB appends at once.
const PIECE: usize = 1 << 20;

/// Runs the rounds.
pub fn run(bench: &Bench<'_>) -> Result<Vec<Figure>> {
    let pieces = bench.options.stream_bytes.div_ceil(PIECE as u64).max(1);
    let bytes = pieces * PIECE as u64;
    // Room for the SST, the one before it and BlueFS's metadata.
    let place = bench.place((bytes * 4).max(16 << 30), None)?;
    place.make_drive()?;
    let drive = Drive::open(&place.drive)?;
    let geometry = drive.geometry().clone();
    let raw = RawDrive::beside(
        &place.drive,
        &geometry,
        drive.profile_name(),
        Pace::default(),
    )?;
    let fs = BlueFs::mount_alone(Arc::new(drive), MountOptions::default())?;
    let piece: Vec<u8> = (0..PIECE).map(|n| (n * 131 + n / 251) as u8).collect();
    let (mut rates, mut ratios) = (Vec::new(), Vec::new());
    for round in 0..=bench.options.rounds {
        bench.watch.measures(format!(
            "one SST, round {round} of {}",
            bench.options.rounds
        ));
        let measure_raw = || raw.write(&piece, pieces, None, bench.watch);
        let measure_table = || table(&fs, &piece, pieces);
        let (ours, plain) = if round % 2 == 0 {
            let ours = measure_table()?;
            (ours, measure_raw()?)
        } else {
            let plain = measure_raw()?;
            (measure_table()?, plain)
        };
        bench.watch.check()?;
        // The first one warms up.
        if round > 0 {
            rates.push(bytes as f64 / (1 << 20) as f64 / ours.as_secs_f64());
            ratios.push(plain.as_secs_f64() / ours.as_secs_f64());
        }
    }
    fs.unmount()?;
    Ok(vec![
        Figure::median("one SST", " MiB/s", rates, None),
        Figure::median(
            "  for each MiB/s straight to the drive",
            "",
            ratios,
            Some("≥ 0.95"),
        ),
    ])
}

/// Writes an SST as RocksDB does, and removes it again outside of the measured time. Returns the time taken.
fn table(fs: &BlueFs, piece: &[u8], pieces: u64) -> Result<Duration> {
    const PATH: &str = "/000001.sst";
    let clock = Runtime::system();
    let start = clock.now();
    let mut writer = fs.create(PATH)?;
    writer.set_lifetime(Lifetime::Medium);
    for _ in 0..pieces {
        writer.append(piece)?;
    }
    writer.sync()?;
    writer.close()?;
    let took = clock.now() - start;
    drop(writer);
    fs.delete(PATH)?;
    fs.sync_metadata()?;
    Ok(took)
}
