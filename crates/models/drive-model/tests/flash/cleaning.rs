use super::*;

fn fill(drive: &mut FlashDrive) -> Time {
    let blocks = drive.blocks();
    (0..blocks).fold(Time::START, |now, lba| {
        drive.submit(Request::write(Lba(lba), 1), now).at
    })
}

/// Random single-block overwrites; the write amplification of the last `count`.
fn overwrite(drive: &mut FlashDrive, mut now: Time, warm: u64, count: u64) -> f64 {
    let mut random = Random::new(0x2545_F491_4F6C_DD1D);
    let mut before = drive.statistics();
    for n in 0..warm + count {
        if n == warm {
            before = drive.statistics();
        }
        let lba = Lba(random.below(drive.blocks()));
        now = drive.submit(Request::write(lba, 1), now).at;
    }
    let after = drive.statistics();
    (after.flash.programmed_blocks - before.flash.programmed_blocks) as f64
        / (after.written_blocks - before.written_blocks) as f64
}

/// The principal branch of the inverse of w·e^w, for −1/e < x < 0.
fn lambert(x: f64) -> f64 {
    (0..200).fold(0.0, |w: f64, _| {
        let e = w.exp();
        w - (w * e - x) / (e * (w + 1.0))
    })
}

/// Greedy cleaning of erase blocks of `np` blocks (Desnoyers, SYSTOR'12).
fn greedy(np: f64, utilisation: f64) -> f64 {
    let alpha = 1.0 / utilisation;
    let a = (1.0 + 1.0 / (2.0 * np)) * alpha;
    let x0 = 0.5 - np / alpha * lambert(-a * (-a).exp());
    np / (np - (x0 - 1.0))
}

#[test]
fn uniform_overwrites_cost_what_the_closed_form_of_greedy_cleaning_says() {
    for (utilisation, table) in [(0.70, 1.833), (0.80, 2.598), (0.90, 4.816)] {
        let expected = greedy(64.0, utilisation);
        assert!((expected / table - 1.0).abs() < 0.002, "{expected} {table}");
        let mut drive = drive(3_000, 64, utilisation);
        let now = fill(&mut drive);
        assert_eq!(drive.statistics().write_amplification(), 1.0);
        let found = overwrite(&mut drive, now, 600_000, 400_000);
        let off = found / expected - 1.0;
        println!(
            "Np 64, u {utilisation}: {found:.3}, closed form {expected:.3}, {:+.1} %",
            off * 100.0
        );
        assert!(off.abs() < 0.02, "u {utilisation}: {found}, {expected}");
    }
    let expected = greedy(256.0, 0.8);
    let mut drive = drive(1_500, 256, 0.8);
    let now = fill(&mut drive);
    let found = overwrite(&mut drive, now, 1_000_000, 500_000);
    println!("Np 256, u 0.8: {found:.3}, closed form {expected:.3}");
    assert!((found / expected - 1.0).abs() < 0.02, "{found}, {expected}");
}

#[test]
fn sequential_overwrites_move_nothing() {
    let mut drive = drive(200, 64, 0.9);
    let mut now = fill(&mut drive);
    let blocks = drive.blocks();
    for lba in (0..3).flat_map(|_| 0..blocks) {
        now = drive.submit(Request::write(Lba(lba), 1), now).at;
    }
    assert_eq!(drive.statistics().flash.moved_blocks, 0);
    let wear = drive.wear();
    assert!(wear.most - wear.least <= 1, "{wear:?}");
    assert!(wear.mean > 2.0, "{wear:?}");
}

#[test]
fn erasing_goes_around() {
    let mut drive = drive(400, 64, 0.8);
    let now = fill(&mut drive);
    overwrite(&mut drive, now, 0, 500_000);
    let wear = drive.wear();
    assert!(wear.mean > 20.0, "{wear:?}");
    let erases = drive.statistics().flash.erases;
    assert_eq!((wear.mean * 400.0).round() as u64, erases);
    assert!(f64::from(wear.most) < 1.5 * wear.mean, "{wear:?}");
    assert!(f64::from(wear.least) > 0.5 * wear.mean, "{wear:?}");
}

/// Half of the drive is given up: overwriting the other half costs as much as at half of its
/// utilisation.
#[test]
fn what_was_trimmed_is_not_moved() {
    let mut drive = drive(1_000, 64, 0.9);
    let mut now = fill(&mut drive);
    let half = drive.blocks() / 2;
    now = drive.submit(Request::trim(Lba(half), half as u32), now).at;
    let mut random = Random::new(7);
    let mut write = |drive: &mut FlashDrive, count: u32| {
        for _ in 0..count {
            let lba = Lba(random.below(half));
            now = drive.submit(Request::write(lba, 1), now).at;
        }
    };
    write(&mut drive, 200_000);
    let before = drive.statistics();
    write(&mut drive, 100_000);
    let after = drive.statistics();
    let moved = after.flash.moved_blocks - before.flash.moved_blocks;
    let expected = greedy(64.0, 0.45) - 1.0;
    assert!(
        (moved as f64 / 1e5 - expected).abs() < 0.02,
        "{moved} {expected}"
    );
    let trimmed = drive.submit(Request::read(Lba(half), 1), now);
    let kept = drive.submit(Request::read(Lba(0), 1), trimmed.at);
    assert!(trimmed.latency() < kept.latency());
}

#[test]
fn a_drive_goes_on_from_where_it_was_saved() {
    let mut drive = drive(200, 64, 0.8);
    let now = fill(&mut drive);
    overwrite(&mut drive, now, 0, 20_000);
    let mut copy: FlashDrive =
        serde_json::from_str(&serde_json::to_string(&drive).unwrap()).unwrap();
    let mut random = Random::new(3);
    let mut now = Time::from_nanos(now.nanos() * 10);
    for _ in 0..20_000 {
        let lba = Lba(random.below(drive.blocks()));
        let request = if random.below(2) == 0 {
            Request::write(lba, 1)
        } else {
            Request::read(lba, 1)
        };
        let completion = drive.submit(request, now);
        assert_eq!(completion, copy.submit(request, now));
        now = completion.at;
    }
    assert_eq!(drive.statistics(), copy.statistics());
}
