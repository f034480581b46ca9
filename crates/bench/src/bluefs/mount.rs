//! Measures how long a mount of a large drive with many files takes, and a snapshot of it by `inspect`.

use super::{Bench, Figure};
use crate::error::Result;
use bluefs::{BlueFs, MountOptions};
use device::Drive;
use inspect::{Nobody, Source};
use runtime::Runtime;
use std::path::Path;
use std::sync::Arc;

/// Bytes of a zone; most of the drive is a hole.
const ZONE: u64 = 16 << 20;
/// Bytes of a file.
const FILE: usize = 16 << 10;
/// Bytes of the log when the process dies, and of each of its records.
const LOG: usize = 64 << 20;
const RECORD: usize = 64 << 10;

/// Runs the rounds.
pub fn run(bench: &Bench<'_>) -> Result<Vec<Figure>> {
    let options = bench.options;
    let place = bench.place(u64::from(options.zones) * ZONE, Some(ZONE))?;
    place.make_drive()?;
    bench
        .watch
        .measures(format!("writing {} files", options.files));
    let (fs, _) = mount(&place.drive)?;
    fs.create_directory("/db")?;
    for number in 0..options.files {
        bench.watch.check()?;
        let mut writer = fs.create(&format!("/db/{number:06}.sst"))?;
        writer.append(&vec![number as u8; FILE])?;
        writer.close()?;
    }
    fs.sync_metadata()?;
    fs.unmount()?;
    drop(fs);
    let (mut clean, mut crashed, mut looks) = (Vec::new(), Vec::new(), Vec::new());
    let clock = Runtime::system();
    let mut source = Source::<Nobody>::alone(&place.drive, clock.clone());
    for round in 1..=options.rounds {
        bench.watch.check()?;
        bench
            .watch
            .measures(format!("mounting, round {round} of {}", options.rounds));
        let (fs, seconds) = mount(&place.drive)?;
        clean.push(seconds);
        let start = clock.now();
        source.look()?;
        looks.push((clock.now() - start).as_secs_f64());
        // A log that is not closed, and files that are renamed and renamed back.
        let mut log = fs.create("/db/000001.log")?;
        for _ in 0..LOG / RECORD {
            log.append(&vec![round as u8; RECORD])?;
            log.flush()?;
        }
        log.sync()?;
        for number in 0..options.files / 10 {
            let name = format!("/db/{number:06}.sst");
            fs.rename(&name, "/db/x")?;
            fs.rename("/db/x", &name)?;
        }
        fs.sync_metadata()?;
        // Dropped without an unmount, as when the process is killed.
        drop((log, fs));
        let (fs, seconds) = mount(&place.drive)?;
        crashed.push(seconds);
        fs.delete("/db/000001.log")?;
        fs.unmount()?;
    }
    Ok(vec![
        Figure::median("mount after a clean stop", " s", clean, Some("≤ 1 s")),
        Figure::median("mount after a crash", " s", crashed, Some("≤ 5 s")),
        Figure::median("one look of `fs top`", " s", looks, None),
    ])
}

/// Opens the drive and mounts the file system. Returns it with the seconds that this took.
fn mount(path: &Path) -> Result<(BlueFs, f64)> {
    let clock = Runtime::system();
    let start = clock.now();
    let fs = BlueFs::mount_alone(Arc::new(Drive::open(path)?), MountOptions::default())?;
    Ok((fs, (clock.now() - start).as_secs_f64()))
}
