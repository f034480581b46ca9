//! Tests of a mount's threads, the cleaner and the reader of begun reads, beside files that are created and deleted.
//! Reads return what was written, no thread waits for ever, and both threads end.

use super::drive::formatted;
use crate::{BlueFs, Cleaning, MountOptions, Result};
use device::ZonedDevice;
use runtime::Runtime;
use runtime::schedules::{Rng, explore, spawn, thread_rng};
use std::sync::Arc;
use zone::ZoneId;
use zone_alloc::ZonePool;

fn mounted() -> BlueFs {
    let drive = formatted(24, 8);
    let g = drive.geometry().clone();
    let report = drive.report(ZoneId(0), g.zone_count).unwrap();
    // Cleans whenever there is anything to gain.
    let cleaning = Cleaning {
        percent: 1000,
        tidy_per_mille: 1000,
        begin_below: Some(g.zone_count),
        ..Cleaning::default()
    };
    let options = MountOptions {
        runtime: Runtime::seeded(0),
        cleaning: Some(cleaning),
        ..MountOptions::default()
    };
    BlueFs::mount(drive, Arc::new(ZonePool::new(g, &report)), options).unwrap()
}

fn create(fs: &BlueFs, number: u8) -> Result<String> {
    let name = format!("/{number:06}.sst");
    let mut writer = fs.create(&name)?;
    writer.append(&vec![number; 5_000])?;
    writer.sync()?;
    writer.close()?;
    Ok(name)
}

#[test]
fn a_cleaner_and_later_reads_get_on_with_files_that_go() {
    explore(60, 1_000_000, || {
        let fs = mounted();
        let names: Vec<_> = (0..4).map(|n| create(&fs, n).unwrap()).collect();
        let reading = {
            let readers: Vec<_> = names.iter().map(|name| fs.open(name).unwrap()).collect();
            move || {
                for _ in 0..2 {
                    let begun = readers.iter().map(|reader| reader.read_later(100, 4_000));
                    let begun: Vec<_> = begun.collect();
                    for (number, pending) in (0..).zip(begun) {
                        assert_eq!(pending.wait().unwrap(), vec![number; 4_000]);
                    }
                }
            }
        };
        let changing = {
            let fs = fs.clone();
            move || {
                for number in 4..10 {
                    fs.delete(&format!("/{:06}.sst", number - 4)).unwrap();
                    create(&fs, number).unwrap();
                    if thread_rng().gen_bool(0.3) {
                        fs.sync_metadata().unwrap();
                    }
                }
            }
        };
        let threads = [spawn(reading), spawn(changing)];
        threads.into_iter().for_each(|t| t.join().unwrap());
        assert!(fs.check(true).unwrap().is_clean());
        fs.unmount().unwrap();
    });
}
