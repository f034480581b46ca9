//! Noise of a disk: what it does to times, and that it is the same for the same seed.

use drive_model::profile::names;
use drive_model::state::{load, save};
use drive_model::{
    AnyProfile, DiskDrive, Lba, Model, NoiseShape, Profile, Random, Request, Span, Time,
};

fn drive(name: &str, noise: Option<NoiseShape>, seed: u64) -> DiskDrive {
    let mut profile = Profile::named(name).unwrap();
    profile.noise = noise;
    let mut drive = profile.drive(seed).unwrap();
    drive.set_volatile_cache(false);
    drive.set_look_ahead(false);
    drive
}

const READS: u64 = 2_000;

/// When random reads are answered that come so many milliseconds after each other, or one behind the other.
fn answers(drive: &mut DiskDrive, every_ms: Option<f64>) -> Vec<(Time, Time)> {
    let (blocks, mut random, mut now) = (drive.blocks(), Random::new(3), Time::START);
    let mut all = Vec::new();
    for _ in 0..READS {
        let done = drive.submit(Request::read(Lba(random.below(blocks)), 1), now);
        all.push((now, done.at));
        now = every_ms.map_or(done.at, |every| now + Span::from_millis(every));
    }
    all
}

/// Milliseconds by which each answer is later than without noise, with so long between requests that none is
/// there while another is served.
fn later(noise: NoiseShape, every_ms: f64) -> Vec<f64> {
    let quiet = answers(&mut drive("seagate-cmr", None, 1), Some(every_ms));
    let noisy = answers(&mut drive("seagate-cmr", Some(noise), 1), Some(every_ms));
    let late = |(noisy, quiet): (&(Time, Time), &(Time, Time))| {
        noisy.1.seconds() * 1e3 - quiet.1.seconds() * 1e3
    };
    noisy.iter().zip(&quiet).map(late).collect()
}

#[test]
fn jitter_is_one_sided_and_even() {
    let late = later(
        NoiseShape {
            jitter_most_us: 500.0,
            ..NoiseShape::default()
        },
        200.0,
    );
    assert!(
        late.iter().all(|late| (-1e-6..0.5).contains(late)),
        "{late:?}"
    );
    let mean = late.iter().sum::<f64>() / late.len() as f64;
    assert!((0.24..0.26).contains(&mean), "{mean}");
    let first_quarter = late.iter().filter(|late| **late < 0.125).count();
    assert!((450..550).contains(&first_quarter), "{first_quarter}");
}

#[test]
fn a_retry_takes_whole_turns() {
    let late = later(
        NoiseShape {
            retries_per_million: 100_000.0,
            retry_most_turns: 3,
            ..NoiseShape::default()
        },
        200.0,
    );
    let turn = 60e3 / f64::from(Profile::named("seagate-cmr").unwrap().shape.rpm);
    let mut turns = [0; 4];
    for late in &late {
        let whole = (late / turn).round();
        assert!((late / turn - whole).abs() < 1e-3, "{late} ms");
        turns[whole as usize] += 1;
    }
    println!("{turns:?}");
    assert!((1_740..1_860).contains(&turns[0]), "{turns:?}");
    assert!(turns[1..].iter().all(|count| *count > 40), "{turns:?}");
}

#[test]
fn an_outlier_holds_up_what_comes_next() {
    let shape = NoiseShape {
        outliers_per_million: 10_000.0,
        outlier_least_ms: 100.0,
        outlier_most_ms: 150.0,
        ..NoiseShape::default()
    };
    let all = answers(&mut drive("seagate-cmr", Some(shape), 1), None);
    let millis = |(asked, answered): &(Time, Time)| answered.since(*asked).millis();
    let late: Vec<f64> = all.iter().map(millis).filter(|late| *late > 60.0).collect();
    assert!((10..35).contains(&late.len()), "{}", late.len());
    assert!(
        late.iter().all(|late| (100.0..200.0).contains(late)),
        "{late:?}"
    );
}

#[test]
fn a_scan_begins_after_a_while_and_is_not_broken_off() {
    let shape = NoiseShape {
        scan_idle_ms: 500.0,
        scan_every_ms: 100.0,
        scan_blocks: 64,
        ..NoiseShape::default()
    };
    let late = later(shape.clone(), 400.0);
    assert!(
        late.iter().all(|late| late.abs() < 1e-9),
        "it did not begin yet"
    );
    // A step and a seek later at most; where the arm is, makes a turn more or less.
    let late = later(shape, 907.0);
    let other = late.iter().filter(|late| late.abs() > 1.0).count();
    let most = late.iter().copied().fold(0.0, f64::max);
    println!("{other} of {READS} at another time, the last {most:.1} ms later");
    assert!(other as u64 > READS / 4, "{other}");
    assert!(most < 80.0, "{most}");
}

fn all_of_it() -> NoiseShape {
    NoiseShape {
        jitter_most_us: 500.0,
        outliers_per_million: 1_000.0,
        outlier_least_ms: 10.0,
        outlier_most_ms: 100.0,
        retries_per_million: 1_000.0,
        retry_most_turns: 2,
        scan_idle_ms: 100.0,
        scan_every_ms: 100.0,
        scan_blocks: 32,
    }
}

#[test]
fn noise_follows_from_the_seed_and_none_is_none() {
    for name in names() {
        if name == "caveat-scriptor" {
            continue;
        }
        let run = |noise, seed| answers(&mut drive(name, noise, seed), Some(150.0));
        assert_eq!(
            run(Some(all_of_it()), 1),
            run(Some(all_of_it()), 1),
            "{name}"
        );
        assert_ne!(
            run(Some(all_of_it()), 1),
            run(Some(all_of_it()), 2),
            "{name}"
        );
        assert_eq!(run(Some(NoiseShape::default()), 1), run(None, 1), "{name}");
    }
}

/// The table of docs/models.md.
fn documented() -> &'static str {
    let document = include_str!("../../../../docs/models.md");
    let begin = document.find("```toml\n[noise]").unwrap() + "```toml\n".len();
    let end = begin + document[begin..].find("```").unwrap();
    &document[begin..end]
}

fn noisy_text(table: &str) -> String {
    format!(
        "{}\n{table}",
        AnyProfile::named("seagate-cmr").unwrap().text()
    )
}

/// Whatever was asked of it, a saved drive goes on as it would have.
#[test]
fn a_saved_drive_goes_on_with_its_noise() {
    let profile = AnyProfile::parse(noisy_text(documented())).unwrap();
    let mut model = profile.model(4).unwrap();
    let mut random = Random::new(9);
    let mut now = Time::START;
    let ask = |model: &mut dyn Model, random: &mut Random, now| {
        let lba = Lba(random.below(model.blocks()));
        model.submit(Request::read(lba, 1), now).at
    };
    for n in 0..300 {
        now = ask(&mut *model, &mut random, now) + Span::from_millis(f64::from(n % 7) * 120.0);
    }
    let bytes = save(&profile, &*model, now).unwrap();
    let (mut other, _) = load(&profile, &bytes).unwrap();
    let mut same = random.clone();
    let (mut one, mut two) = (now, now);
    for n in 0..300 {
        one = ask(&mut *model, &mut random, one) + Span::from_millis(f64::from(n % 7) * 120.0);
        two = ask(&mut *other, &mut same, two) + Span::from_millis(f64::from(n % 7) * 120.0);
        assert_eq!(one, two, "request {n}");
    }
}

#[test]
fn noise_that_cannot_be_is_refused_in_one_line() {
    let built = |table: &str| AnyProfile::parse(noisy_text(table)).and_then(|mine| mine.model(1));
    built(documented()).unwrap();
    for (table, says) in [
        ("jitter_most_us = -1.0", "noise.jitter_most_us is -1.0: "),
        ("jitter_most_us = nan", "noise.jitter_most_us is NaN: "),
        (
            "outliers_per_million = 2e6",
            "noise.outliers_per_million is 2000000.0: ",
        ),
        (
            "outliers_per_million = 10.0",
            "noise.outlier_most_ms is 0: ",
        ),
        ("outlier_least_ms = 9.0", "noise.outlier_most_ms is 0: "),
        ("outlier_most_ms = 9.0", "noise.outlier_most_ms is 9: "),
        (
            "retries_per_million = 10.0",
            "noise.retry_most_turns is 0: ",
        ),
        (
            "retries_per_million = 1.0\nretry_most_turns = 4000000000",
            "noise.retry_most_turns is 4000000000: ",
        ),
        ("scan_idle_ms = 10.0", "noise.scan_blocks is 0: "),
        (
            "scan_idle_ms = 10.0\nscan_blocks = 100000",
            "noise.scan_blocks is 100000: ",
        ),
        (
            "scan_idle_ms = 10.0\nscan_blocks = 10",
            "noise.scan_every_ms is 0: ",
        ),
        ("jitter = 1.0", "jitter"),
    ] {
        let error = built(&format!("[noise]\n{table}")).unwrap_err().to_string();
        assert!(error.contains(says), "{table}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}
