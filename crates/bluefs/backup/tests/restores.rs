//! Restores into a file system whose drive fails.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

#[path = "../../bluefs/tests/support/mod.rs"]
mod support;

use backup::tree::replace;
use backup::{Error, Left, Packer, compare, end_left, restore};
use bluefs::{BlueFs, Role};
use device::wrap::faults::{Fault, Faults, Plan};
use device::{MemoryDrive, ZonedDevice};
use std::io;
use std::sync::Arc;
use support::{format, geometry, mount};
use zone::ZoneCommand;

const FAULT: Fault = Fault::Io(io::ErrorKind::Other);

/// An empty file system on a drive with this plan.
fn planned(plan: Plan) -> (Arc<Faults<MemoryDrive>>, BlueFs) {
    let drive = MemoryDrive::new(geometry(64, 0, 0)).unwrap();
    let drive = Arc::new(Faults::new(drive));
    format(&*drive, Role::Alone);
    let device: Arc<dyn ZonedDevice> = drive.clone();
    let fs = mount(device).unwrap();
    drive.add(plan);
    (drive, fs)
}

/// Restores with the `k`-th flush failing. Answers whether names were given, and the error.
fn cut_at(k: u64, archive: &[u8]) -> (bool, Option<Error>) {
    let (_, fs) = planned(Plan::at(ZoneCommand::Flush, k, FAULT));
    let done = restore(&fs, archive, false, &mut |_| {});
    let names = fs.list("/").unwrap();
    (
        names.iter().any(|name| name != ".zonestore-restore"),
        done.err(),
    )
}

#[test]
fn an_error_says_whether_something_was_restored() {
    let mut packer = Packer::new(Vec::new());
    for path in ["/a", "/b"] {
        packer.file(path, 1, 7, &b"content"[..]).unwrap();
    }
    let (archive, _) = packer.finish().unwrap();
    let (mut before, mut behind) = (0, 0);
    for k in 1.. {
        match cut_at(k, &archive) {
            (_, None) => break,
            (true, Some(error)) => {
                assert!(matches!(error, Error::Placing(_)), "{k}: {error}");
                behind += 1;
            }
            (false, Some(_)) => before += 1,
        }
    }
    assert!(before > 0 && behind > 0, "{before} {behind}");
}

fn archive(paths: &[&str]) -> Vec<u8> {
    let mut packer = Packer::new(Vec::new());
    for path in paths {
        packer.file(path, 1, 7, &b"content"[..]).unwrap();
    }
    packer.finish().unwrap().0
}

/// Whatever was durable when the process was killed: another restore of the same archive ends with all of it.
#[test]
fn a_restore_that_is_killed_at_any_step_goes_on() {
    let (paths, mut seen) = (["/a", "/b/c", "/b/d", "/e"], Vec::new());
    let archive = archive(&paths);
    for command in [ZoneCommand::Write, ZoneCommand::Flush] {
        for k in 1.. {
            let (drive, fs) = planned(Plan::from(command, k, FAULT));
            let _ = restore(&fs, &archive[..], false, &mut |_| {});
            let is_over = drive.struck() == 0;
            drop(fs);
            drive.clear();
            let fs = mount(drive).unwrap();
            let left = end_left(&fs).unwrap();
            seen.push(left);
            let is_there = left == Left::Named || !fs.list("/").unwrap().is_empty();
            let end = if is_there { compare } else { restore };
            let contents = end(&fs, &mut &archive[..], false, &mut |_| {}).unwrap();
            assert_eq!(contents.files.len(), paths.len());
            assert_eq!(fs.list("/").unwrap(), ["a", "b", "e"]);
            assert_eq!(fs.list("/b").unwrap(), ["c", "d"]);
            if is_over {
                break;
            }
        }
    }
    assert!(
        seen.contains(&Left::Nothing) && seen.contains(&Left::Removed),
        "{seen:?}"
    );
}

/// Its process can be killed between any two names.
#[test]
fn names_that_are_missing_are_given() {
    let paths = ["/a", "/b/c", "/b/d", "/e"];
    let archive = archive(&paths);
    for named in 0..=3 {
        let (drive, fs) = planned(Plan::from(ZoneCommand::Flush, u64::MAX, FAULT));
        restore(&fs, &archive[..], false, &mut |_| {}).unwrap();
        fs.create_directory("/.zonestore-restored").unwrap();
        for name in ["/e", "/b", "/a"].iter().take(3 - named) {
            fs.rename(name, &format!("/.zonestore-restored{name}"))
                .unwrap();
        }
        fs.sync_metadata().unwrap();
        let half = backup::pack(&fs, Vec::new(), &mut |_| {}).err();
        assert!(matches!(half, Some(Error::Unfinished)), "{half:?}");
        drop(fs);
        let fs = mount(drive).unwrap();
        assert_eq!(end_left(&fs).unwrap(), Left::Named);
        compare(&fs, &archive[..], false, &mut |_| {}).unwrap();
        assert_eq!(fs.list("/").unwrap(), ["a", "b", "e"]);
    }
}

#[test]
fn files_that_were_made_since_stay_and_are_named() {
    let (_, fs) = planned(Plan::from(ZoneCommand::Flush, u64::MAX, FAULT));
    for folder in ["/.zonestore-restored", "/a"] {
        fs.create_directory(folder).unwrap();
        replace(&fs, &format!("{folder}/x"), &mut &b"content"[..], None).unwrap();
    }
    replace(&fs, "/x", &mut &b"mine"[..], None).unwrap();
    let error = end_left(&fs).unwrap_err();
    assert!(
        matches!(&error, Error::NameTaken { name } if name == "/x"),
        "{error}"
    );
    fs.delete("/x").unwrap();
    assert_eq!(end_left(&fs).unwrap(), Left::Named);
    fs.create_directory("/.zonestore-restore").unwrap();
    let error = end_left(&fs).unwrap_err();
    assert!(matches!(error, Error::LeftBesideOthers), "{error}");
}

#[test]
fn only_the_files_of_the_archive_are_taken_for_restored() {
    let (_, fs) = planned(Plan::from(ZoneCommand::Flush, u64::MAX, FAULT));
    let (two, one) = (archive(&["/a", "/b"]), archive(&["/a"]));
    let mut packer = Packer::new(Vec::new());
    for path in ["/a", "/b"] {
        packer.file(path, 1, 7, &b"CONTENT"[..]).unwrap();
    }
    let (other, _) = packer.finish().unwrap();
    restore(&fs, &two[..], false, &mut |_| {}).unwrap();
    compare(&fs, &two[..], false, &mut |_| {}).unwrap();
    for wrong in [one, other, archive(&["/a", "/b", "/c"])] {
        let refused = compare(&fs, &wrong[..], false, &mut |_| {});
        assert!(matches!(refused, Err(Error::NotEmpty)), "{refused:?}");
    }
}

#[test]
fn a_clean_up_that_fails_does_not_hide_why_it_was_needed() {
    let mut packer = Packer::new(Vec::new());
    packer.file("/a", 1, 7, &b"content"[..]).unwrap();
    let (mut archive, _) = packer.finish().unwrap();
    // The first byte of the content.
    archive[512] ^= 1;
    let mut shown = 0;
    for k in 1.. {
        let (drive, fs) = planned(Plan::from(ZoneCommand::Flush, k, FAULT));
        let error = restore(&fs, &archive[..], false, &mut |_| {}).unwrap_err();
        if drive.struck() == 0 {
            break;
        }
        shown += u64::from(matches!(error, Error::Different { .. }));
    }
    assert!(shown > 0);
    let (_, fs) = planned(Plan::from(ZoneCommand::Flush, 1, FAULT));
    let error = replace(&fs, "/a", &mut &b"content"[..], None).unwrap_err();
    let first = matches!(error, Error::BlueFs(bluefs::Error::Drive(_)));
    assert!(first, "{error:?}");
}
