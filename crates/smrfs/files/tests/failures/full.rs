//! A file system or a disk of the host that is full.

use super::{Disk, mkfs, new_file};
use crate::common::{KIB, assert_clean, contents, geometry};
use device::MemoryDrive;
use device::changed::Changed;
use smrfs::{Error, FileSystem, MkfsOptions, MountOptions, ROOT};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[test]
fn a_full_file_system_says_so_and_can_be_emptied() {
    for whole_files in [false, true] {
        let device = Arc::new(MemoryDrive::new(geometry(24, 4)).unwrap());
        let options = MkfsOptions {
            whole_files,
            ..MkfsOptions::default()
        };
        let runtime = mkfs(&device, &options);
        let mount =
            || FileSystem::mount(device.clone(), runtime.clone(), MountOptions::default()).unwrap();
        let mut fs = mount();
        for round in 0..3 {
            let mut files = Vec::new();
            for n in 0_u32.. {
                let name = format!("{n}").into_bytes();
                let ino = match fs.create(ROOT, &name, new_file()) {
                    Ok(attributes) => attributes.ino,
                    Err(error) => {
                        assert_eq!(error.errno(), libc::ENOSPC);
                        break;
                    }
                };
                let byte = (n + round) as u8;
                match fs.write(ino, 0, &vec![byte; 30_000]) {
                    Ok(()) => files.push((name, ino, byte)),
                    Err(Error::NoSpace) => {
                        fs.unlink(ROOT, &name).unwrap();
                        break;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            let stored = files.len() as u64 * 32 * KIB;
            let space = fs.space();
            let least = if whole_files { 60 } else { 95 };
            assert!(
                stored * 100 >= space.capacity_bytes * least,
                "{stored} of {space:?}"
            );
            fs.sync().unwrap();
            // What is there is overwritten, and stays the same size.
            for (_, ino, byte) in files.iter().take(20) {
                fs.write(*ino, 10_000, &[*byte; 5000]).unwrap();
            }
            fs.sync().unwrap();
            drop(fs);
            fs = mount();
            for (_, ino, byte) in &files {
                assert_eq!(contents(&fs, *ino).unwrap(), vec![*byte; 30_000]);
            }
            assert_clean(&fs);
            for (name, ..) in files {
                fs.unlink(ROOT, &name).unwrap();
            }
            fs.sync().unwrap();
            assert_eq!(fs.space().used_bytes, 0);
        }
    }
}

#[test]
fn metadata_that_is_full_can_be_removed() {
    let device = Arc::new(MemoryDrive::new(geometry(24, 4)).unwrap());
    let runtime = mkfs(&device, &MkfsOptions::default());
    let mount =
        || FileSystem::mount(device.clone(), runtime.clone(), MountOptions::default()).unwrap();
    let fs = mount();
    let name = |n: u32| format!("{n:0>200}").into_bytes();
    let mut count = 0;
    while fs.create(ROOT, &name(count), new_file()).is_ok() {
        count += 1;
    }
    assert!(count > 500, "{count}");
    fs.sync().unwrap();
    drop(fs);
    let fs = mount();
    assert_clean(&fs);
    for n in 0..count {
        fs.unlink(ROOT, &name(n)).unwrap();
    }
    fs.sync().unwrap();
    assert_eq!(fs.space().inodes, 1);
}

/// What was accepted without a sync is there after an unmount although the host's disk is full, and files can be removed.
#[test]
fn a_full_disk_of_the_host_refuses_writes_and_loses_none() {
    for whole in [false, true] {
        let inner = Arc::new(MemoryDrive::new(geometry(300, 24)).unwrap());
        let made = MkfsOptions {
            whole_files: whole,
            ..MkfsOptions::default()
        };
        let runtime = mkfs(&inner, &made);
        let device = Arc::new(Changed {
            drive: inner,
            change: Disk(AtomicU64::new(20 << 20)),
        });
        let mount = || {
            let options = MountOptions::default();
            FileSystem::mount(device.clone(), runtime.clone(), options).unwrap()
        };
        let fs = mount();
        let mut accepted = Vec::new();
        let refused = loop {
            let name = format!("{}", accepted.len());
            let ino = fs.create(ROOT, name.as_bytes(), new_file()).unwrap().ino;
            let bytes = vec![accepted.len() as u8; 10_000];
            match fs.write(ino, 0, &bytes) {
                Ok(_) => accepted.push((ino, bytes)),
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, Error::HostFull), "{refused}");
        assert!(accepted.len() > 500, "{}", accepted.len());
        fs.seal().unwrap();
        drop(fs);
        let fs = mount();
        for (number, (ino, bytes)) in accepted.iter().enumerate() {
            assert!(contents(&fs, *ino).unwrap() == *bytes, "{number}");
            fs.unlink(ROOT, format!("{number}").as_bytes()).unwrap();
        }
        fs.sync().unwrap();
        // Others take the rest: nothing begins that could not be ended.
        device.change.0.store(100 << 10, Ordering::Relaxed);
        fs.create(ROOT, b"late", new_file()).unwrap();
        assert!(matches!(fs.sync(), Err(Error::HostFull)));
        device.change.0.store(20 << 20, Ordering::Relaxed);
        fs.sync().unwrap();
        assert_clean(&fs);
    }
}
