//! The drives of the main document, found out as in its tables 2.1 to 2.3.
#![allow(clippy::unwrap_used)]

use skylight::finding::{CachePlace, CacheType, CleaningType, DriveType, Mapping, Shingling, Size};
use skylight::{Findings, Model, Options, examine};

fn found(name: &str) -> Findings {
    let mut model = Model::named(name, 1).unwrap();
    let options = Options {
        quick: false,
        seed: 7,
    };
    let (findings, _, result) = examine(&mut model, options, &mut |_| {});
    assert_eq!(result, Ok(()));
    assert!(
        findings.seconds < 86_400.0,
        "{name}: {} s",
        findings.seconds
    );
    findings
}

fn near(found: u64, printed: f64, part: f64) {
    let off = found as f64 / printed - 1.0;
    assert!(off.abs() <= part, "{found}, printed {printed}");
}

fn exact(size: Option<Size>) -> u64 {
    let size = size.unwrap();
    assert_eq!(size.at_least, None);
    size.value
}

const GIB: f64 = 1073741824.0;
const MIB: f64 = 1048576.0;

fn emulated(name: &str, place: Option<CachePlace>, cache_gib: f64, band_mib: f64) -> Findings {
    let f = found(name);
    assert_eq!(f.drive_type.unwrap().value, DriveType::DriveManaged);
    assert_eq!(f.cache_place.map(|f| f.value), place);
    // A cache in parts begins to clean in the last quarter of a band of the last one.
    let parts = place == Some(CachePlace::Multiple);
    near(
        exact(f.cache_bytes),
        cache_gib * GIB,
        if parts { 0.03 } else { 0.005 },
    );
    assert_eq!(f.band_bytes.len(), 3);
    for bytes in &f.band_bytes {
        near(*bytes, band_mib * MIB, 0.002);
    }
    assert_eq!(f.map_limit(), None, "block-mapped");
    assert_eq!(f.surfaces.unwrap().value, 8);
    assert_eq!(f.shingling, None, "strokes of a few tracks");
    assert!(!f.torn_writes.unwrap().value);
    assert!(f.torn_writes.unwrap().confidence < 1.0, "no proof");
    f
}

#[test]
fn the_emulated_drives_are_those_of_table_2_1() {
    let f = emulated("emulated-smr-1", Some(CachePlace::Inner), 37.2, 40.0);
    assert_eq!(f.cache_type.unwrap().value, CacheType::Disk);
    assert_eq!(f.cleaning.unwrap().value, CleaningType::Lazy);
    assert_eq!(f.mapping.unwrap().value, Mapping::Static);

    let f = emulated("emulated-smr-2", None, 9.98, 25.0);
    assert_eq!(f.cache_type.unwrap().value, CacheType::Flash);
    assert_eq!(f.cleaning.unwrap().value, CleaningType::Lazy);
    assert_eq!(f.mapping.unwrap().value, Mapping::Static);

    let f = emulated("emulated-smr-3", Some(CachePlace::Multiple), 37.2, 20.0);
    assert_eq!(f.cache_type.unwrap().value, CacheType::Disk);
    assert_eq!(f.cleaning.unwrap().value, CleaningType::Aggressive);
    assert_eq!(f.mapping.unwrap().value, Mapping::Dynamic);
}

/// Size in GiB, map entries, bands in MiB, zones in GiB.
fn seagate(
    name: &str,
    (cache_gib, map): (f64, f64),
    bands_mib: (f64, f64),
    zones_gib: (f64, f64),
) -> Findings {
    let f = found(name);
    assert_eq!(f.drive_type.unwrap().value, DriveType::DriveManaged);
    assert_eq!(f.cache_type.unwrap().value, CacheType::Disk);
    assert_eq!(f.cache_place.unwrap().value, CachePlace::Outer);
    // What is printed is what the cache and the map have, more than what is written until cleaning.
    near(exact(f.cache_bytes), cache_gib * GIB * 0.84, 0.02);
    near(exact(f.map_entries), map * 0.911, 0.02);
    near(*f.band_bytes.iter().max().unwrap(), bands_mib.1 * MIB, 0.04);
    near(*f.band_bytes.iter().min().unwrap(), bands_mib.0 * MIB, 0.04);
    assert_eq!(f.mapping.unwrap().value, Mapping::Static);
    assert_eq!(f.cleaning.unwrap().value, CleaningType::Aggressive);
    assert!(f.fifo.unwrap().value);
    assert!(f.circular_log.unwrap().value);
    // Printed: 0.6 to 1.6 s.
    let ms = f.band_cleaning_ms.unwrap();
    assert!((500.0..700.0).contains(&ms), "{ms}");
    let many = f.band_cleaning_many_ms.unwrap();
    assert!((1_440.0..1_760.0).contains(&many), "{many}");
    assert_eq!(f.stream_bytes, Some(8 << 20));
    assert_eq!(f.shingling.unwrap().value, Shingling::TowardsMiddle);
    assert!(f.torn_writes.unwrap().value);
    assert!(f.serpentine_middle.unwrap().value, "figure 2.25");
    let (least, most) = f.zone_bytes.unwrap();
    let gib = |bytes: u64| (bytes as f64 / GIB).round();
    assert_eq!((gib(least), gib(most)), zones_gib);
    f
}

#[test]
fn the_seagate_drives_are_those_of_table_2_3() {
    let f = seagate("st5000as0011", (20.0, 200_000.0), (17.0, 36.0), (4.0, 20.0));
    near(f.writes_until_full.unwrap(), 22_800.0, 0.01);
    assert_eq!(f.surfaces.unwrap().value, 8);
    let f = seagate("st8000as0002", (25.0, 250_000.0), (15.0, 40.0), (5.0, 40.0));
    assert_eq!(f.surfaces.unwrap().value, 12);
}

/// It cleans while it is written to, so that its bands take a workload of few writes.
#[test]
fn the_bands_of_a_drive_that_cleans_while_written_to_are_found() {
    let f = found("wd40nmzw");
    assert_eq!(f.mapping.unwrap().value, Mapping::Dynamic);
    // Its map has more entries than test 7 writes: small writes in test 8 meet its end.
    near(exact(f.map_entries), 500_000.0, 0.01);
    near(exact(f.cache_bytes), 48.0 * GIB, 0.01);
    assert_eq!(f.writes_until_full, None);
    assert_eq!(
        f.band_cleaning_many_ms, None,
        "bands are cleaned before the pause"
    );
    assert_eq!(f.band_bytes.len(), 3);
    for bytes in &f.band_bytes {
        near(*bytes, 32.0 * MIB, 0.002);
    }
}

#[test]
fn conventional_drives_are_not_called_drive_managed() {
    for name in ["seagate-cmr", "wd5000ys", "hua72303"] {
        assert_eq!(
            found(name).drive_type.unwrap().value,
            DriveType::Conventional
        );
    }
}

#[test]
fn drives_with_zones_and_flash_are_not_either() {
    let kind = |name| found(name).drive_type.unwrap().value;
    assert_eq!(kind("hm-smr-14tb"), DriveType::HostManaged);
    assert_eq!(kind("zns-zn540"), DriveType::HostManaged);
    assert_eq!(kind("ssd-15gb"), DriveType::Flash);
}
