//! Tests of an unmount beside threads that append: what a file has taken is there at the next mount.

use super::drive::formatted;
use super::zones::{mount, part};
use crate::Writer;
use runtime::schedules::{explore, spawn};

/// Appends parts until one is refused; syncs or writes out after each. Returns how many the file has taken.
fn append(mut writer: Writer, name: &str, syncs: bool) -> usize {
    for number in 0..4 {
        if writer.append(&part(name, number)).is_err() {
            return number;
        }
        let written = match syncs {
            true => writer.sync(),
            false => writer.write_out(true),
        };
        if written.is_err() {
            return number + 1;
        }
    }
    4
}

/// A write that is under way has emptied the file's tail, and has not registered its bytes yet.
#[test]
fn what_a_file_took_before_an_unmount_or_beside_it_is_there() {
    explore(1000, 100_000, || {
        let drive = formatted(30, 8);
        let fs = mount(drive.clone());
        let threads =
            [("/000001.log", true), ("/1.sst", false), ("/2.sst", true)].map(|(name, syncs)| {
                let writer = fs.create(name).unwrap();
                (name, spawn(move || append(writer, name, syncs)))
            });
        fs.unmount().unwrap();
        let taken = threads.map(|(name, thread)| (name, thread.join().unwrap()));
        drop(fs);
        let fs = mount(drive);
        for (name, taken) in taken {
            let expected: Vec<u8> = (0..taken).flat_map(|number| part(name, number)).collect();
            let mut found = vec![0; expected.len() + 1];
            let length = fs.open(name).unwrap().read_at(0, &mut found).unwrap();
            assert!(
                found[..length] == expected,
                "{name}: {length} bytes of {taken} parts"
            );
        }
    });
}
