//! The drive in a file as its users see it: locking, reopening, space, and files that are no
//! drives. What its commands do is the conformance suite's matter.

#![allow(clippy::unwrap_used)]

use device::file::format::{self, Entry};
use device::file::{CreateOptions, DriveUuid};
use device::rules::RestedZone;
use device::{FileDrive, FileDriveError, ZonedDevice};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use zone::{ByteOffset, Geometry, ZoneCondition, ZoneError, ZoneId, ZoneKind};

fn geometry() -> Geometry {
    Geometry {
        block_size: 4096,
        zone_size: 1 << 20,
        zone_capacity: 3 << 18,
        zone_count: 12,
        conventional_zones: 2,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 4,
        max_active_zones: 6,
        max_append_bytes: 1 << 17,
    }
}

struct Place {
    _directory: tempfile::TempDir,
    path: PathBuf,
}

fn place() -> Place {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.zoned");
    Place {
        _directory: directory,
        path,
    }
}

#[test]
fn content_and_write_pointers_survive_reopening_and_open_zones_are_closed() {
    let place = place();
    let g = geometry();
    let drive = FileDrive::create(&place.path, &g, "test-small").unwrap();
    let uuid = drive.uuid();
    drive.write(g.start(ZoneId(1)), &[7; 8192]).unwrap();
    drive.write(g.start(ZoneId(2)), &[1; 4096]).unwrap();
    assert_eq!(
        drive.append(ZoneId(2), &[2; 4096]).unwrap().0,
        g.start(ZoneId(2)).0 + 4096
    );
    drive.open(ZoneId(3)).unwrap();
    drive.finish(ZoneId(4)).unwrap();
    drive.flush().unwrap();
    drop(drive);

    let drive = FileDrive::open(&place.path).unwrap();
    assert_eq!(drive.uuid(), uuid);
    assert_eq!(drive.profile_name(), "test-small");
    assert_eq!(drive.path(), place.path);
    let zones = drive.report(ZoneId(0), 100).unwrap();
    let seen: Vec<_> = zones[1..5]
        .iter()
        .map(|z| (z.condition, z.write_pointer))
        .collect();
    assert_eq!(
        seen,
        [
            (ZoneCondition::NotWritePointer, 0),
            (ZoneCondition::Closed, 8192),
            (ZoneCondition::Empty, 0),
            (ZoneCondition::Full, g.zone_capacity),
        ]
    );
    let mut out = vec![9; 12288];
    drive.read(g.start(ZoneId(2)), &mut out).unwrap();
    assert_eq!(out, [vec![1; 4096], vec![2; 4096], vec![0; 4096]].concat());
    drive.read(g.start(ZoneId(1)), &mut out).unwrap();
    assert_eq!(out, [vec![7; 8192], vec![0; 4096]].concat());
}

#[test]
fn a_second_opener_is_refused_until_the_first_is_gone_and_readers_share() {
    let place = place();
    let drive = FileDrive::create(&place.path, &geometry(), "p").unwrap();
    let refused = |r: Result<FileDrive, FileDriveError>| {
        assert!(matches!(r.unwrap_err(), FileDriveError::InUse { .. }));
    };
    refused(FileDrive::open(&place.path));
    refused(FileDrive::open_read_only(&place.path));
    drop(drive);
    let reader = FileDrive::open_read_only(&place.path).unwrap();
    let other = FileDrive::open_read_only(&place.path).unwrap();
    refused(FileDrive::open(&place.path));
    drop((reader, other));
    FileDrive::open(&place.path).unwrap();
}

/// Everything that opening can say, without the path.
fn verdict(path: &Path) -> &'static str {
    let says = |opened: Result<FileDrive, FileDriveError>| match opened {
        Ok(_) => "opened",
        Err(FileDriveError::Missing { .. }) => "missing",
        Err(FileDriveError::NotADrive { .. }) => "not a drive",
        Err(FileDriveError::Damaged { .. }) => "damaged",
        Err(FileDriveError::Length { .. }) => "length",
        Err(FileDriveError::UnsupportedVersion { .. }) => "version",
        Err(error) => panic!("{error}"),
    };
    let before = std::fs::read(path).ok();
    let verdict = says(FileDrive::open(path));
    assert_eq!(says(FileDrive::open_read_only(path)), verdict);
    assert!(
        verdict == "opened" || std::fs::read(path).ok() == before,
        "written to"
    );
    verdict
}

/// Gives the file another version, with the right checksum.
fn set_version(bytes: &mut [u8], version: u8) {
    bytes[8] = version;
    bytes[12..16].fill(0);
    let checksum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &bytes[..4096]) as u32;
    bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
}

#[test]
fn foreign_short_and_damaged_files_are_told_apart_and_left_alone() {
    let place = place();
    let path = &place.path;
    assert_eq!(verdict(path), "missing");
    assert_eq!(verdict(path.parent().unwrap()), "not a drive");
    std::fs::write(path, b"").unwrap();
    assert_eq!(verdict(path), "not a drive");
    std::fs::write(path, vec![0xa5; 3 << 20]).unwrap();
    assert_eq!(verdict(path), "not a drive");
    std::fs::remove_file(path).unwrap();

    let drive = FileDrive::create(path, &geometry(), "").unwrap();
    drive
        .write(geometry().start(ZoneId(3)), &[1; 4096])
        .unwrap();
    drop(drive);
    let good = std::fs::read(path).unwrap();
    assert_eq!(verdict(path), "opened");
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        std::fs::write(path, bytes).unwrap();
        verdict(path)
    };
    assert_eq!(with(&|bytes| bytes[3] ^= 1), "not a drive");
    // A rotten version is damage; one whose checksum is right is a drive of the future.
    assert_eq!(with(&|bytes| bytes[8] = 3), "damaged");
    for version in [0, format::VERSION as u8 + 1] {
        assert_eq!(with(&|bytes| set_version(bytes, version)), "version");
    }
    assert_eq!(with(&|bytes| set_version(bytes, 1)), "opened");
    assert_eq!(with(&|bytes| bytes[40] ^= 1), "damaged");
    assert_eq!(with(&|bytes| bytes[4000] ^= 1), "damaged");
    for zone in 0..12 {
        for at in [0, 5, 9, 30, 63] {
            assert_eq!(
                with(&|bytes| bytes[4096 + zone * 64 + at] ^= 0x10),
                "damaged"
            );
        }
    }
    // Two entries changed round: right checksums in wrong places.
    let swapped = |bytes: &mut Vec<u8>| bytes[4096 + 2 * 64..4096 + 4 * 64].rotate_left(64);
    assert_eq!(with(&swapped), "damaged");
    for length in [7, 8, 100, 4095, 4096, 5000, 1 << 20, good.len() - 1] {
        let expected = if length < 8 { "not a drive" } else { "length" };
        assert_eq!(
            with(&|bytes| bytes.truncate(length)),
            expected,
            "{length} bytes"
        );
    }
    for more in [1, 999, 4096] {
        assert_eq!(with(&|bytes| bytes.extend(vec![0; more])), "length");
    }
}

#[test]
fn what_is_damaged_is_named_with_its_place() {
    let place = place();
    drop(FileDrive::create(&place.path, &geometry(), "").unwrap());
    let good = std::fs::read(&place.path).unwrap();
    // Sound entries of what cannot be.
    let found = |version: u8, condition, write_pointer, prepared_end| {
        let entry = Entry {
            rested: RestedZone {
                condition,
                write_pointer,
            },
            prepared_end,
        };
        let entry = format::encode_entry(ZoneId(4), ZoneKind::SequentialWriteRequired, entry);
        let mut bytes = good.clone();
        set_version(&mut bytes, version);
        bytes[4096 + 4 * 64..][..64].copy_from_slice(&entry);
        std::fs::write(&place.path, bytes).unwrap();
        match FileDrive::open(&place.path) {
            Err(FileDriveError::Damaged { at, found, .. }) => Some((at - 4096 - 4 * 64, found)),
            Err(error) => panic!("{error}"),
            Ok(_) => None,
        }
    };
    use ZoneCondition::{Closed, Empty, Full, ReadOnly};
    let capacity = geometry().zone_capacity;
    assert_eq!(found(2, Empty, 8192, 0), Some((8, 8192)), "half written");
    assert_eq!(found(2, Closed, 8192, capacity), None);
    for end in [4096, 8192, 8193, 12289, capacity + 4096, u64::MAX] {
        assert_eq!(found(2, Closed, 8192, end), Some((16, end)));
    }
    assert_eq!(found(1, Closed, 8192, 12288), Some((16, 12288)), "reserved");
    assert_eq!(found(2, Empty, 0, 4096), Some((16, 4096)));
    assert_eq!(found(2, Full, capacity, capacity), Some((16, capacity)));
    assert_eq!(found(2, ReadOnly, 4096, 8192), Some((16, 8192)));
}

/// A version 1 file is used as it is, and stays what older programs understand.
#[test]
fn an_older_file_never_leaves_its_write_pointers_to_the_data() {
    let write = |version: u8| {
        let place = place();
        drop(FileDrive::create(&place.path, &geometry(), "").unwrap());
        let mut bytes = std::fs::read(&place.path).unwrap();
        set_version(&mut bytes, version);
        std::fs::write(&place.path, bytes).unwrap();
        let drive = FileDrive::open(&place.path).unwrap();
        for block in 0..4 {
            let at = geometry().start(ZoneId(3)).0 + block * 4096;
            drive.write(ByteOffset(at), &[1; 4096]).unwrap();
            drive.flush().unwrap();
        }
        drop(drive);
        let bytes = std::fs::read(&place.path).unwrap();
        let entry = bytes[4096 + 3 * 64..][..64].try_into().unwrap();
        let kind = ZoneKind::SequentialWriteRequired;
        let entry = format::decode_entry(ZoneId(3), kind, entry).unwrap();
        let pointer = FileDrive::open(&place.path)
            .unwrap()
            .report_zone(ZoneId(3))
            .unwrap()
            .write_pointer;
        assert_eq!(pointer, 4 * 4096);
        (entry.rested.write_pointer, entry.prepared_end)
    };
    assert_eq!(write(1), (4 * 4096, 0));
    assert_eq!(write(2), (2 * 4096, geometry().zone_capacity));
}

#[test]
fn creating_refuses_what_is_there_and_leaves_nothing_behind() {
    let place = place();
    let directory = place.path.parent().unwrap();
    std::fs::write(&place.path, b"precious").unwrap();
    let error = FileDrive::create(&place.path, &geometry(), "").unwrap_err();
    assert!(matches!(error, FileDriveError::Exists { .. }), "{error}");
    assert_eq!(std::fs::read(&place.path).unwrap(), b"precious");
    let other = directory.join("other");
    let error = FileDrive::create(&other, &geometry(), &"n".repeat(64)).unwrap_err();
    assert!(
        matches!(
            error,
            FileDriveError::NameTooLong {
                length: 64,
                max: 63,
                ..
            }
        ),
        "{error}"
    );
    let error = FileDrive::create(directory.join("no/where"), &geometry(), "").unwrap_err();
    assert!(matches!(error, FileDriveError::Io { .. }), "{error}");
    let impossible = Geometry {
        block_size: 1000,
        ..geometry()
    };
    let error = FileDrive::create(&other, &impossible, "").unwrap_err();
    assert!(matches!(error, FileDriveError::Geometry(_)), "{error}");
    let many = Geometry {
        zone_size: 4096,
        zone_capacity: 4096,
        zone_count: 1 << 25,
        ..geometry()
    };
    let error = FileDrive::create(&other, &many, "").unwrap_err();
    assert!(
        matches!(error, FileDriveError::TooManyZones { .. }),
        "{error}"
    );
    let beyond = Geometry {
        zone_size: 1 << 59,
        zone_count: 16,
        ..geometry()
    };
    let error = FileDrive::create(&other, &beyond, "").unwrap_err();
    assert!(!matches!(error, FileDriveError::Io { .. }), "{error}");
    let left: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(left, ["a.zoned"]);
}

#[test]
fn what_was_chosen_at_creation_is_found_again() {
    let place = place();
    let uuid = DriveUuid([0xab; 16]);
    let options = CreateOptions {
        profile_name: "p".repeat(63),
        label: "Prüfstand 3".into(),
        uuid: Some(uuid),
    };
    drop(FileDrive::create_with(&place.path, &geometry(), options).unwrap());
    let drive = FileDrive::open(&place.path).unwrap();
    assert_eq!((drive.uuid(), drive.label()), (uuid, "Prüfstand 3"));
    assert_eq!(drive.profile_name(), "p".repeat(63));
    assert_eq!(
        drive.uuid().to_string(),
        "abababab-abab-abab-abab-abababababab"
    );
    assert_eq!(drive.geometry(), &geometry());
}

#[test]
fn a_drive_opened_for_reading_reads_and_does_nothing_else() {
    let place = place();
    let g = geometry();
    let drive = FileDrive::create(&place.path, &g, "").unwrap();
    drive.write(g.start(ZoneId(2)), &[5; 4096]).unwrap();
    drop(drive);
    let before = std::fs::read(&place.path).unwrap();
    let drive = FileDrive::open_read_only(&place.path).unwrap();
    assert!(drive.is_read_only());
    let mut out = [0; 4096];
    drive.read(g.start(ZoneId(2)), &mut out).unwrap();
    assert_eq!(out, [5; 4096]);
    drive.flush().unwrap();
    let zone = ZoneId(2);
    for refused in [
        drive.write(g.start(ZoneId(3)), &out),
        drive.write(g.start(ZoneId(0)), &out),
        drive.append(zone, &out).map(drop),
        drive.open(zone),
        drive.close(zone),
        drive.finish(zone),
        drive.reset(zone),
        drive.set_condition(zone, ZoneCondition::Offline),
    ] {
        let error = refused.unwrap_err();
        let ZoneError::Io { source, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!(source.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    }
    assert!(std::fs::read(&place.path).unwrap() == before);
}

#[test]
fn an_empty_drive_takes_little_space_and_a_reset_gives_it_back() {
    let place = place();
    let g = Geometry {
        zone_count: 1 << 12,
        zone_size: 8 << 20,
        ..geometry()
    };
    let drive = FileDrive::create(&place.path, &g, "").unwrap();
    let empty = drive.host_bytes().unwrap();
    assert!(
        (4096 + (64 << 12)..1 << 20).contains(&empty),
        "{empty} bytes for nothing"
    );
    let data = vec![1; g.zone_capacity as usize];
    for zone in [2, 3] {
        drive.write(g.start(ZoneId(zone)), &data).unwrap();
    }
    drive.flush().unwrap();
    let full = drive.host_bytes().unwrap();
    assert!(full >= empty + 2 * g.zone_capacity);
    drive.reset(ZoneId(2)).unwrap();
    drive.flush().unwrap();
    let half = drive.host_bytes().unwrap();
    assert!(
        half <= full - g.zone_capacity,
        "{half} of {full} bytes left"
    );
    assert!(half >= empty + g.zone_capacity);
}

/// What a kill leaves between a reset's entry and its hole, and in a write between data and entry.
#[test]
fn bytes_above_a_write_pointer_never_show_and_empty_zones_give_them_back() {
    let place = place();
    let g = geometry();
    let drive = FileDrive::create(&place.path, &g, "").unwrap();
    drive.write(g.start(ZoneId(3)), &[1; 4096]).unwrap();
    drop(drive);
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(&place.path)
        .unwrap();
    let in_file = |zone: u32| (1 << 20) + g.start(ZoneId(zone)).0;
    for zone in [2, 5, 11] {
        file.write_all_at(&[0xee; 1 << 16], in_file(zone)).unwrap();
    }
    file.write_all_at(&[0xee; 1 << 16], in_file(3) + 4096)
        .unwrap();
    drop(file);

    let check = |drive: &FileDrive| {
        let mut out = vec![9; 1 << 20];
        for zone in [2, 3, 5, 11] {
            drive.read(g.start(ZoneId(zone)), &mut out).unwrap();
            let written = if zone == 3 { 4096 } else { 0 };
            assert!(out[..written].iter().all(|byte| *byte == 1));
            assert!(out[written..].iter().all(|byte| *byte == 0), "zone {zone}");
        }
    };
    let reader = FileDrive::open_read_only(&place.path).unwrap();
    let before = reader.host_bytes().unwrap();
    check(&reader);
    drop(reader);
    let drive = FileDrive::open(&place.path).unwrap();
    check(&drive);
    drive.flush().unwrap();
    assert!(drive.host_bytes().unwrap() <= before - 3 * (1 << 16));
    drive.finish(ZoneId(3)).unwrap();
    check(&drive);
}

/// In the environment: this process is the victim of the next test and writes to this drive,
/// counting its rounds from that number.
const VICTIM: &str = "DEVICE_TEST_VICTIM";
const FIRST_ROUND: &str = "DEVICE_TEST_FIRST_ROUND";

/// Has a test binary run one test.
fn only(test: &str) -> [&str; 4] {
    ["--exact", test, "--nocapture", "--test-threads=1"]
}

/// Blocks of a zone. Writes are large, so that most kills hit the middle of one.
const KILL_BLOCKS: u64 = 1024;

fn kill_geometry() -> Geometry {
    Geometry {
        zone_size: KILL_BLOCKS * 4096,
        zone_capacity: KILL_BLOCKS * 4096,
        zone_count: 10,
        max_open_zones: 0,
        max_active_zones: 0,
        ..geometry()
    }
}

/// A block that tells its zone, the round of resets it was written in, and its place.
fn told(zone: u32, round: u64, block: u64) -> Vec<u8> {
    let words = [u64::from(zone) + 1, round + 1, block + 1, 0x5a5a_5a5a];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.repeat(4096 / bytes.len())
}

/// Not a test of its own: what is killed by the next one. Two threads write, finish and reset, and
/// print the round of each zone after its reset was answered.
#[test]
fn victim() {
    let Ok(path) = std::env::var(VICTIM) else {
        return;
    };
    let first_round: u64 = std::env::var(FIRST_ROUND).unwrap().parse().unwrap();
    let drive = FileDrive::open(path).unwrap();
    let g = kill_geometry();
    std::thread::scope(|scope| {
        for first in [2, 3] {
            let (drive, g) = (&drive, &g);
            scope.spawn(move || {
                for round in first_round.. {
                    for zone in (first..g.zone_count).step_by(2) {
                        drive.reset(ZoneId(zone)).unwrap();
                        println!("reset {zone} {round}");
                        let mut block = 0;
                        while block < KILL_BLOCKS {
                            let blocks = (block * 7 + round * 97) % 300;
                            let blocks = 1 + blocks % if block % 3 == 0 { 300 } else { 12 };
                            let end = (block + blocks).min(KILL_BLOCKS);
                            let data: Vec<u8> = (block..end)
                                .flat_map(|block| told(zone, round, block))
                                .collect();
                            let at = g.start(ZoneId(zone)).0 + block * 4096;
                            drive.write(ByteOffset(at), &data).unwrap();
                            println!("wrote {zone} {round} {end}");
                            // From then on small writes are found by their data.
                            if blocks % 3 == 0 {
                                drive.flush().unwrap();
                            }
                            block = end;
                        }
                    }
                }
            });
        }
    });
}

#[test]
fn a_killed_process_leaves_everything_answered_and_only_whole_blocks() {
    let place = place();
    let g = kill_geometry();
    drop(FileDrive::create(&place.path, &g, "").unwrap());
    for lines in [1, 20, 30, 40, 50, 60, 70, 80, 90, 200] {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(only("victim"))
            .env(VICTIM, &place.path)
            .env(FIRST_ROUND, (lines * 1_000_000).to_string())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut answered: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        let mut note = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["reset", zone, round] => {
                    answered.insert(zone.parse().unwrap(), (round.parse().unwrap(), 0));
                }
                ["wrote", zone, round, end] => {
                    let progress = (round.parse().unwrap(), end.parse().unwrap());
                    answered.insert(zone.parse().unwrap(), progress);
                }
                _ => {}
            }
        };
        let mut output = output.lines().map(Result::unwrap);
        output.by_ref().take(lines + 3).for_each(|line| note(&line));
        child.kill().unwrap();
        // What was still in the pipe had been answered too; its last line may be cut short.
        let rest: Vec<String> = output.collect();
        rest.iter()
            .take(rest.len().saturating_sub(1))
            .for_each(|line| note(line));
        child.wait().unwrap();

        let drive = FileDrive::open(&place.path).unwrap();
        for (zone, (round, blocks)) in &answered {
            let pointer = drive.report_zone(ZoneId(*zone)).unwrap().write_pointer / 4096;
            let mut found = vec![0; (pointer * 4096) as usize];
            if pointer > 0 {
                drive.read(g.start(ZoneId(*zone)), &mut found).unwrap();
            }
            // At least what was answered, or the next round's reset and more.
            let found_round = if pointer == 0 {
                None
            } else {
                Some(u64::from_le_bytes(found[8..16].try_into().unwrap()) - 1)
            };
            match found_round {
                Some(found_round) if found_round == *round => assert!(pointer >= *blocks),
                Some(found_round) => {
                    assert!(
                        *blocks == KILL_BLOCKS && found_round == round + 1,
                        "zone {zone} went back"
                    );
                }
                None => assert!(
                    *blocks == 0 || *blocks == KILL_BLOCKS,
                    "zone {zone} lost {blocks} blocks"
                ),
            }
            for (block, bytes) in found.chunks(4096).enumerate() {
                let expected = told(*zone, found_round.unwrap(), block as u64);
                assert!(bytes == expected, "zone {zone}, block {block} of {pointer}");
            }
        }
        assert!(!answered.is_empty());
    }
}

/// Not a test of its own: may not write the file beyond block 2 of zone 5, and is killed by the
/// kernel (SIGXFSZ) in the middle of a write that does.
#[test]
fn victim_of_a_limit() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let Ok(path) = std::env::var(LIMITED_VICTIM) else {
        return;
    };
    let drive = FileDrive::open(path).unwrap();
    let at = geometry().start(ZoneId(5));
    drive.write(at, &[1; 4096]).unwrap();
    let limit = (1 << 20) + at.0 + 2 * 4096;
    let fsize = Rlimit {
        current: Some(limit),
        maximum: Some(limit),
    };
    setrlimit(Resource::Fsize, fsize).unwrap();
    let _ = drive.write(ByteOffset(at.0 + 4096), &[2; 4 * 4096]);
    println!("not reached");
}

const LIMITED_VICTIM: &str = "DEVICE_TEST_LIMITED_VICTIM";

#[test]
fn a_process_killed_between_data_and_entry_has_not_written() {
    use std::os::unix::process::ExitStatusExt;
    let place = place();
    drop(FileDrive::create(&place.path, &geometry(), "").unwrap());
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(only("victim_of_a_limit"))
        .env(LIMITED_VICTIM, &place.path)
        .current_dir(place.path.parent().unwrap())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.signal().is_some(), "{told}");
    assert!(!told.contains("not reached"), "{told}");
    let drive = FileDrive::open(&place.path).unwrap();
    let zone = drive.report_zone(ZoneId(5)).unwrap();
    assert_eq!(
        (zone.condition, zone.write_pointer),
        (ZoneCondition::Closed, 4096)
    );
    let mut out = vec![9; 3 * 4096];
    drive.read(geometry().start(ZoneId(5)), &mut out).unwrap();
    assert_eq!(out, [vec![1; 4096], vec![0; 8192]].concat());
}

/// Not a test of its own: a write fails for it in the middle, in a zone whose data tells how far it is
/// written, and it goes on.
#[test]
fn victim_that_goes_on() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let Ok(path) = std::env::var(FAILING_VICTIM) else {
        return;
    };
    let drive = FileDrive::open(path).unwrap();
    let at = geometry().start(ZoneId(5)).0;
    for block in 0..4 {
        drive
            .write(ByteOffset(at + block * 4096), &[1; 4096])
            .unwrap();
        drive.flush().unwrap();
    }
    let limit = (1 << 20) + at + 6 * 4096;
    let fsize = Rlimit {
        current: Some(limit),
        maximum: Some(limit),
    };
    setrlimit(Resource::Fsize, fsize).unwrap();
    drive
        .write(ByteOffset(at + 4 * 4096), &[2; 4 * 4096])
        .unwrap_err();
    assert_eq!(
        drive.report_zone(ZoneId(5)).unwrap().write_pointer,
        4 * 4096
    );
    println!("went on");
}

const FAILING_VICTIM: &str = "DEVICE_TEST_FAILING_VICTIM";

#[test]
fn a_write_that_failed_in_the_middle_does_not_tell_of_itself() {
    let place = place();
    drop(FileDrive::create(&place.path, &geometry(), "").unwrap());
    let output = std::process::Command::new("sh")
        // What is ignored stays so: the write fails instead of killing.
        .args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(only("victim_that_goes_on"))
        .env(FAILING_VICTIM, &place.path)
        .current_dir(place.path.parent().unwrap())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.contains("went on"), "{told}");
    let drive = FileDrive::open(&place.path).unwrap();
    let zone = drive.report_zone(ZoneId(5)).unwrap();
    assert_eq!(zone.write_pointer, 4 * 4096);
}

/// Who only looks keeps nobody out, is kept out by nobody, and changes nothing.
#[test]
fn an_observer_needs_no_lock_and_sees_what_was_written_so_far() {
    let place = place();
    let g = geometry();
    let drive = FileDrive::create(&place.path, &g, "").unwrap();
    let before = FileDrive::observe(&place.path).unwrap();
    drive.write(g.start(ZoneId(3)), &[7; 4096]).unwrap();
    let after = FileDrive::observe(&place.path).unwrap();
    let pointer = |drive: &FileDrive| drive.report_zone(ZoneId(3)).unwrap().write_pointer;
    assert_eq!((pointer(&before), pointer(&after)), (0, 4096));
    let mut block = [0; 4096];
    after.read(g.start(ZoneId(3)), &mut block).unwrap();
    assert_eq!(block, [7; 4096]);
    assert!(after.write(g.start(ZoneId(3)), &block).is_err());
    assert!(after.reset(ZoneId(3)).is_err());
    // Neither does one that is there keep a writer out.
    drop(drive);
    let drive = FileDrive::open(&place.path).unwrap();
    drop((before, after));
    assert!(matches!(
        FileDrive::open(&place.path),
        Err(FileDriveError::InUse { .. })
    ));
    drop(drive);
}

const SMALL: &str = "ZONESTORE_TEST_SMALL_DISK";

/// A page of a mapping that finds no block on the disk would end the process. In a mount of its own, where the
/// host lets us have one; or in the directory that the variable names.
#[test]
fn what_is_beside_the_drive_meets_a_full_disk_of_the_host() {
    if let Some(directory) = std::env::var_os(SMALL) {
        fill_a_disk(Path::new(&directory));
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let script = format!(
        "mount -t tmpfs -o size=3m none \"$0\" || exit 77
        {SMALL}=\"$0\" exec \"$1\" --exact what_is_beside_the_drive_meets_a_full_disk_of_the_host"
    );
    let status = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", &script])
        .arg(place.path())
        .arg(std::env::current_exe().unwrap())
        .status();
    // The harness of a failed test answers 101, and a signal has no code.
    match status.map(|status| status.code()) {
        Ok(Some(0)) => {}
        Ok(code) if code.is_none_or(|code| code == 101) => panic!("{code:?}"),
        other => eprintln!("left out: no mounts of our own ({other:?})"),
    }
}

fn fill_a_disk(directory: &Path) {
    let path = directory.join("a.zoned");
    let drive = FileDrive::create(&path, &geometry(), "test-small").unwrap();
    let memory = drive.host_memory().unwrap();
    let piece = |n: u64, round: u64| {
        let bytes = (0..1000).map(|at| (n + at + round) as u8 | 1);
        bytes.collect::<Vec<_>>()
    };
    // Of the first stretch only the first page is used when the disk gets full.
    memory.write(0, &piece(0, 0)).unwrap();
    let ballast = File::create(directory.join("ballast")).unwrap();
    let mut length = 0;
    while ballast.write_all_at(&[1; 4096], length).is_ok() {
        length += 4096;
    }
    let mut written = 1;
    let error = loop {
        match memory.write(written * 1000, &piece(written, 0)) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    assert!(written > 2, "{written}");
    for round in 1..4 {
        for n in 0..written {
            memory.write(n * 1000, &piece(n, round)).unwrap();
        }
        let beside = directory.join("a.zoned.unsynced");
        File::open(beside).unwrap().sync_all().unwrap();
        let left = memory.left_behind().unwrap();
        for n in 0..written {
            assert!(left[n as usize * 1000..][..1000] == piece(n, round));
        }
    }
    // There is room again.
    ballast.set_len(0).unwrap();
    memory.write(written * 1000, &piece(written, 0)).unwrap();
    memory.clear().unwrap();
    assert!(memory.left_behind().is_none());
}
