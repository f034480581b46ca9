use super::*;

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

/// All up to a prepared end is read, and a zone of a sparse file may be larger than anybody could read.
#[test]
fn no_prepared_end_is_far_ahead() {
    let place = place();
    let g = Geometry {
        zone_size: 4 << 20,
        zone_capacity: 4 << 20,
        ..geometry()
    };
    drop(FileDrive::create(&place.path, &g, "").unwrap());
    let file = File::options().write(true).open(&place.path).unwrap();
    let most = 4096 + (1 << 20);
    for prepared_end in [most, most + 4096, 4 << 20] {
        let entry = Entry {
            rested: RestedZone {
                condition: ZoneCondition::Closed,
                write_pointer: 4096,
            },
            prepared_end,
        };
        let entry = format::encode_entry(ZoneId(4), ZoneKind::SequentialWriteRequired, entry);
        file.write_all_at(&entry, 4096 + 4 * 64).unwrap();
        match FileDrive::open_read_only(&place.path) {
            Ok(_) => assert_eq!(prepared_end, most),
            Err(FileDriveError::Damaged { found, .. }) => {
                assert!(found == prepared_end && found > most, "{found}");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// A killed process may have left a part of a block above a page. Earlier programs named prepared ends there, too.
#[test]
fn data_in_blocks_above_a_page_tells_no_write_pointer() {
    for block_size in [4096, 8192] {
        let place = place();
        let g = Geometry {
            block_size,
            ..geometry()
        };
        drop(FileDrive::create(&place.path, &g, "").unwrap());
        let entry = Entry {
            rested: RestedZone {
                condition: ZoneCondition::Closed,
                write_pointer: 8192,
            },
            prepared_end: 16384,
        };
        let entry = format::encode_entry(ZoneId(4), ZoneKind::SequentialWriteRequired, entry);
        let file = File::options().write(true).open(&place.path).unwrap();
        file.write_all_at(&entry, 4096 + 4 * 64).unwrap();
        // A part of the block behind the write pointer.
        file.write_all_at(
            &[1; 4096],
            format::data_offset(g.zone_count) + g.start(ZoneId(4)).0 + 8192,
        )
        .unwrap();
        let drive = FileDrive::open(&place.path).unwrap();
        let pointer = drive.report_zone(ZoneId(4)).unwrap().write_pointer;
        assert_eq!(pointer, if block_size == 4096 { 12288 } else { 8192 });
    }
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
