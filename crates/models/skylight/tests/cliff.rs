//! Figure 3.1 in models of full size: the cliff that every drive-managed drive comes to, and where
//! that leaves it beside a conventional one.
#![allow(clippy::unwrap_used)]

use drive_model::{Lba, Profile, Request, Time};
use skylight::cliff::{Cliff, random_writes};
use skylight::{Model, Random, Target};

fn model(name: &str, volatile_cache: bool) -> Model {
    let mut model = Model::named(name, 1).unwrap();
    model.set_volatile_cache(volatile_cache);
    model
}

fn cliff(name: &str) -> Cliff {
    let mut model = model(name, false);
    let cliff = random_writes(&mut model, &mut Random::new(1), 2_000.0, 20.0).unwrap();
    println!(
        "{name}: {:.1}, {:.1} a second",
        cliff.rate(0.0, 0.05),
        cliff.rate(0.5, 1.0)
    );
    cliff
}

#[test]
fn random_writes_fall_off_a_cliff_on_drive_managed_drives_alone() {
    let conventional = cliff("wd5000ys");
    let (first, last) = (conventional.rate(0.0, 0.05), conventional.rate(0.5, 1.0));
    assert!((last / first - 1.0).abs() < 0.05, "steady: {first}, {last}");
    assert!((50.0..400.0).contains(&last), "low: {last}");
    for name in ["st5000as0011", "st8000as0002", "st4000lm016"] {
        let drive = cliff(name);
        let (first, last) = (drive.rate(0.0, 0.05), drive.rate(0.5, 1.0));
        assert!(
            first > 2.0 * conventional.rate(0.0, 1.0),
            "{name} begins fast: {first}"
        );
        assert!(last < first / 100.0, "{name}: {first}, {last}");
        assert!(last < conventional.rate(0.0, 1.0) / 10.0, "{name}: {last}");
    }
}

/// A conventional disk with its volatile cache on takes what it takes without, once that is full.
#[test]
fn a_volatile_cache_makes_no_cliff() {
    let mut cached = model("wd5000ys", true);
    let cached = random_writes(&mut cached, &mut Random::new(1), 500.0, 20.0).unwrap();
    let (without, with) = (cliff("wd5000ys").rate(0.5, 1.0), cached.rate(0.5, 1.0));
    println!("{without:.1} a second without, {with:.1} with it");
    assert!(with > without * 0.97, "{with}, {without}");
}

/// Section 3.4.3: not as high at first as the Seagates', no drop as sharp as theirs, and higher afterwards. It
/// cleans from the beginning.
#[test]
fn a_drive_that_mixes_cleaning_with_work_falls_less() {
    let conventional = cliff("wd5000ys").rate(0.0, 1.0);
    let seagate = cliff("st5000as0011");
    let (seagate_first, seagate_last) = (seagate.rate(0.0, 0.05), seagate.rate(0.5, 1.0));
    let mut model = model("wd40nmzw", false);
    let mixed = random_writes(&mut model, &mut Random::new(1), 4_000.0, 20.0).unwrap();
    let (first, last) = (mixed.rate(0.0, 0.2), mixed.rate(0.5, 1.0));
    println!("{first:.1}, {last:.1} a second");
    assert!(first > 1.5 * conventional && first < 0.6 * seagate_first);
    assert!(last > 2.0 * seagate_last, "{last}, {seagate_last}");
    assert!(last < conventional / 10.0);
    let (fall, sharp) = (first / last, seagate_first / seagate_last);
    assert!(fall > 20.0 && fall < sharp / 3.0, "{fall}, {sharp}");

    let mut fresh = Profile::named("wd40nmzw").unwrap().drive(1).unwrap();
    fresh.set_volatile_cache(false);
    let mut random = Random::new(2);
    let mut now = Time::START;
    for _ in 0..5_000 {
        let lba = Lba(random.below(fresh.blocks()));
        now = fresh.submit(Request::write(lba, 1), now).at;
    }
    let cleaning = fresh.statistics().cleaning;
    assert_eq!(cleaning.bands, 4, "with every 1,024 writes");
    assert_eq!(cleaning.urgent_bands, 0, "no write had to wait for room");
}
