//! Drives that are empty, hold other data, or have a file system of another version.

use super::*;

#[test]
fn drives_that_are_not_ours_are_told_from_damaged_ones() {
    let device = Arc::new(MemoryDrive::new(geometry(4, 0)).unwrap());
    assert!(matches!(BlueFs::probe(&*device), Err(Error::NotFormatted)));
    let options = FormatOptions {
        uuid: [1; 16],
        role: Role::Alone,
        copies: 1,
        force: false,
    };
    BlueFs::format(&*device, &options).unwrap();
    assert!(matches!(
        BlueFs::format(&*device, &options),
        Err(Error::NotEmpty { .. })
    ));
    let fs = mount(&device);
    put(&fs, "/x", b"data");
    drop(fs);
    BlueFs::format(
        &*device,
        &FormatOptions {
            uuid: [2; 16],
            force: true,
            ..options
        },
    )
    .unwrap();
    assert_eq!(BlueFs::probe(&*device).unwrap().uuid, [2; 16]);
    assert!(mount(&device).list("/").unwrap().is_empty());
}

#[test]
fn another_version_is_refused_by_name() {
    let device = formatted(geometry(0, 0));
    let g = device.geometry().clone();
    let old = SuperblockInfo {
        version: FORMAT_VERSION - 2,
        ..BlueFs::probe(&*device).unwrap()
    };
    for zone in [0, 1, g.zone_count - 2, g.zone_count - 1].map(ZoneId) {
        device.reset(zone).unwrap();
    }
    device.write(g.start(ZoneId(0)), &old.encode()).unwrap();
    let refused = BlueFs::probe(&*device);
    let Err(Error::UnsupportedVersion { found, supported }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!((found, supported), (FORMAT_VERSION - 2, FORMAT_VERSION));
}

#[test]
fn parts_that_cannot_be_are_refused() {
    let device = formatted(geometry(4, 0));
    let g = device.geometry().clone();
    let good = BlueFs::probe(&*device).unwrap();
    let blocks = (g.zone_size / u64::from(g.block_size)) as u32;
    // Parts of one block and of two, then none at all, no power of two, and more parts than can be counted.
    for parts in [blocks, blocks / 2, 2 * blocks, 3, 1 << 31, u32::MAX] {
        let forged = SuperblockInfo {
            conventional_parts: parts,
            generation: good.generation + 1,
            ..good
        };
        device.write(g.start(ZoneId(0)), &forged.encode()).unwrap();
        let refused = BlueFs::mount_alone(device.clone(), MountOptions::default());
        assert!(
            matches!(refused, Err(Error::GeometryChanged { .. })),
            "{parts}"
        );
    }
}
