//! Profiles that somebody wrote: what cannot be is refused in a line that names the field, and what is
//! accepted is a drive. `ZONESTORE_CASES=n` tries n changes of each profile instead of a few.

use drive_model::profile::all_names;
use drive_model::{AnyProfile, Lba, Model, Random, Request, Span, Time};
use toml::{Table, Value};

/// All fields, as their paths.
fn fields(table: &Table) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for (name, value) in table {
        match value {
            Value::Table(inner) => {
                let below = fields(inner).into_iter();
                all.extend(below.map(|path| [vec![name.clone()], path].concat()));
            }
            _ => all.push(vec![name.clone()]),
        }
    }
    all
}

/// Puts a value in a field's place, or nothing.
fn change(table: &mut Table, path: &[String], value: Option<Value>) {
    match path {
        [name] => match value {
            // A list stays one.
            Some(value) if table[name].is_array() => {
                table[name].as_array_mut().unwrap()[0] = value;
            }
            Some(value) => _ = table.insert(name.clone(), value),
            None => _ = table.remove(name),
        },
        [name, below @ ..] => {
            change(table[name].as_table_mut().unwrap(), below, value);
        }
        [] => {}
    }
}

/// What somebody might put there. The first are wrong wherever they are.
fn values() -> Vec<Option<Value>> {
    vec![
        Some(Value::Integer(-1)),
        Some(Value::Float(-0.5)),
        Some(Value::Float(f64::NAN)),
        Some(Value::Float(f64::INFINITY)),
        Some(Value::Float(f64::NEG_INFINITY)),
        Some(Value::Float(1e300)),
        Some(Value::Integer(i64::MAX)),
        Some(Value::Integer(0)),
        Some(Value::Integer(1)),
        Some(Value::Integer(2)),
        Some(Value::Integer(1_000)),
        Some(Value::Integer(1_000_000)),
        Some(Value::Integer(1_000_000_007)),
        Some(Value::Integer(1 << 31)),
        Some(Value::Integer(1 << 62)),
        Some(Value::Float(0.5)),
        Some(Value::Float(0.0)),
        Some(Value::String("much".to_owned())),
        None,
    ]
}

const NEVER: usize = 7;

/// A few hundred requests, one after the other and several at a time.
fn work(model: &mut dyn Model, random: &mut Random, about: &str) {
    let blocks = model.blocks();
    let mut now = Time::START;
    let mut next = 0;
    for n in 0..300 {
        let count = 1 << random.below(9);
        let (lba, count) = match n % 3 {
            // Sequential, from somewhere on.
            0 => (next, count),
            1 => (random.below(blocks), count),
            _ => (random.below(blocks), 1),
        };
        let (lba, count) = (lba.min(blocks - 1), count.min(blocks - lba.min(blocks - 1)));
        next = if random.below(50) == 0 {
            random.below(blocks)
        } else {
            lba + count
        };
        let (lba, count) = (Lba(lba), count as u32);
        let request = match random.below(10) {
            0..4 => Request::read(lba, count),
            4..9 => Request::write(lba, count),
            _ => Request::flush(),
        };
        if n % 4 == 0 {
            let done = model.submit(request, now);
            assert!(done.at >= now && done.submitted == now, "{about}: {done:?}");
            now = done.at;
        } else {
            model.enqueue(request, now);
            if n % 4 == 3 {
                while let Some(done) = model.next_completion() {
                    assert!(done.at >= done.submitted, "{about}: {done:?}");
                    now = now.max(done.at);
                }
            }
        }
        if random.below(40) == 0 {
            now += Span::from_seconds(3.0);
            model.idle_until(now);
        }
    }
}

#[test]
fn a_changed_profile_is_refused_in_a_line_or_is_a_drive() {
    let asked = std::env::var("ZONESTORE_CASES").ok();
    let cases: Option<u64> = asked.map(|cases| cases.parse().unwrap());
    let mut random = Random::new(0x5EED_0F11);
    let (mut refused, mut built) = (0, 0);
    let mut wrong = Vec::new();
    for name in all_names() {
        let text = AnyProfile::named(name).unwrap().text().to_owned();
        let whole: Table = toml::from_str(&text).unwrap();
        let (fields, values) = (fields(&whole), values());
        // Each field once with anything, which a refusal costs next to nothing.
        let many = cases.unwrap_or(3 * fields.len() as u64);
        for case in 0..many {
            let path = &fields[case as usize % fields.len()];
            let which = random.below(values.len() as u64) as usize;
            let mut table = whole.clone();
            change(&mut table, path, values[which].clone());
            let about = format!("{name}, {} = {:?}", path.join("."), values[which]);
            let mine = AnyProfile::parse(toml::to_string(&table).unwrap());
            match mine.and_then(|mine| mine.model(case)) {
                Ok(mut model) => {
                    assert!(which >= NEVER, "{about} was accepted");
                    work(&mut *model, &mut random, &about);
                    built += 1;
                }
                Err(error) => {
                    let line = error.to_string();
                    assert!(!line.contains('\n') && line.len() < 300, "{about}: {line}");
                    let field = path.last().unwrap();
                    let names = line.contains(field.as_str())
                        || GO_TOGETHER.iter().any(|other| line.contains(other));
                    if !names {
                        wrong.push(format!("{about}: {line}"));
                    }
                    refused += 1;
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("{refused} were refused, {built} were drives");
    assert!(refused > 100 && built > 50, "{refused}, {built}");
}

/// A number may be right, and another one not go with it any more: these are named then.
const GO_TOGETHER: [&str; 20] = [
    "conventional_zones",
    "management.superblocks",
    "capacity_bytes",
    "track_skew_us",
    "head_skew_us",
    "average_ms",
    "full_stroke_ms",
    "innermost_zone_width",
    "recording_zones",
    "head_density",
    "layer.band_blocks",
    "zone_data_bands",
    "drive_isolation_distance",
    "drive_no_overlap_range",
    "half_track_payload_blocks",
    "cache_half_tracks",
    "cache_payload_blocks",
    "entry_gap_us",
    "buffer_bytes",
    "zone_size_bytes",
];

/// What was found, each with what it says.
#[test]
fn what_is_wrong_is_said_in_a_line() {
    for (name, field, value, says) in [
        (
            "seagate-cmr",
            "command_us",
            "nan",
            "electronics.command_us is NaN: it must be 1 to 3,600,000,000 (an hour)",
        ),
        (
            "seagate-cmr",
            "command_us",
            "-inf",
            "electronics.command_us is -inf: it must be 1 to",
        ),
        (
            "seagate-cmr",
            "command_us",
            "1e300",
            "electronics.command_us is 1e300: it must be 1 to",
        ),
        (
            "seagate-cmr",
            "interface_bytes_per_second",
            "0",
            "electronics.interface_bytes_per_second is 0: it must be 1 to",
        ),
        (
            "seagate-cmr",
            "capacity_bytes",
            "3",
            "capacity_bytes is 3: it must be 4,096 to",
        ),
        (
            "seagate-cmr",
            "capacity_bytes",
            "17592186040320",
            "capacity_bytes is 17592186040320: with 0 bytes of cache and spare beside it, it must be at most the",
        ),
        (
            "seagate-cmr",
            "heads",
            "\"eight\"",
            "not a profile: line 20: shape.heads: invalid type: string \"eight\", expected u32",
        ),
        (
            "seagate-cmr",
            "track_skew_us",
            "-1",
            "shape.track_skew_us is -1: it must be 0 to",
        ),
        (
            "seagate-cmr",
            "track_skew_us",
            "500",
            "shape.track_skew_us is 500: it must be at least 8",
        ),
        (
            "st5000as0011",
            "map_merge_ms",
            "nan",
            "layer.map_merge_ms is NaN: it must be 0 to 3,600,000 (an hour)",
        ),
        (
            "st5000as0011",
            "capacity_bytes",
            "3",
            "capacity_bytes is 3: it must be 4,096 to",
        ),
        (
            "emulated-smr-1",
            "cache_bands",
            "1000000007",
            "layer.cache_bands is 1000000007: it must be 1 to 4101",
        ),
        (
            "emulated-smr-2",
            "cache_bands",
            "1000000007",
            "layer.cache_bands is 1000000007: it must be 1 to 40",
        ),
        (
            "emulated-smr-3",
            "band_blocks",
            "1",
            "layer.band_blocks is 1: it must be 228 to 1048576, so that there are at most 4194304 bands",
        ),
        (
            "emulated-smr-3",
            "zone_free_bands",
            "1000000007",
            "zone_free_bands is 1958, 20, 1000000007: it must be 44150 or fewer together",
        ),
        (
            "emulated-smr-3",
            "zone_cache_bands",
            "1000000007",
            "zone_free_bands is 1958, 1000000007, 70: it must be 44150 or fewer together",
        ),
        (
            "emulated-smr-3",
            "capacity_bytes",
            "9223372036854775807",
            "capacity_bytes is 9223372036854775807: it must be 4,096 to",
        ),
        (
            "wd40nmzw",
            "band_blocks",
            "1",
            "layer.band_blocks is 1: it must be 233 to",
        ),
        (
            "wd40nmzw",
            "zone_cache_bands",
            "\"x\"",
            "layer.zone_cache_bands: invalid type: string \"x\", expected u32",
        ),
        (
            "hm-smr-14tb",
            "zone_size_bytes",
            "4096",
            "zones.zone_size_bytes is 4096: it must be a multiple of 4096 from",
        ),
        (
            "zns-zn540",
            "program_us",
            "inf",
            "flash.program_us is inf: it must be 0 to",
        ),
        (
            "zns-zn540",
            "zones",
            "1000000007",
            "management.zones is 1000000007: it must be 1 to 4194304",
        ),
        (
            "ssd-15gb",
            "channels",
            "0",
            "flash.channels is 0: it must be 1 to 2048",
        ),
        (
            "ssd-15gb",
            "superblocks",
            "1000000007",
            "management.superblocks is 1000000007: it must be at most 32768",
        ),
    ] {
        let text = AnyProfile::named(name).unwrap().text().to_owned();
        let of_it = |line: &&str| line.starts_with(&format!("{field} = "));
        let old = text.lines().find(of_it).unwrap();
        let mine = text.replace(old, &format!("{field} = {value}"));
        let error = AnyProfile::parse(mine)
            .and_then(|mine| mine.model(1))
            .unwrap_err()
            .to_string();
        assert!(error.contains(says), "{name}, {field} = {value}: {error}");
    }
}

/// Every number of a built-in profile has its unit in the comment in front of it or of its group, and
/// where it is from, or that it is assumed.
#[test]
fn every_field_says_its_unit_and_where_it_is_from() {
    let from = [
        "assumed",
        "Assumed",
        "data sheet",
        "section",
        "chapter",
        "table",
        "figure",
        "easured",
        "Doekemeijer",
        "ZBC",
    ];
    let units = [
        ("_us", "icroseconds"),
        ("_ms", "illiseconds"),
        ("_bytes", "ytes"),
        ("_blocks", "locks"),
        ("_tracks", "racks"),
        ("_bytes_per_second", "ytes a second"),
    ];
    for name in all_names() {
        let profile = AnyProfile::named(name).unwrap();
        let (mut comment, mut ended) = (String::new(), true);
        for line in profile.text().lines() {
            if let Some(more) = line.strip_prefix('#') {
                if ended {
                    comment.clear();
                }
                comment += more;
                ended = false;
            } else if let Some((field, _)) = line.split_once(" = ") {
                ended = true;
                if ["name", "description", "source"].contains(&field) {
                    continue;
                }
                let says = |word: &str| comment.contains(word);
                assert!(from.iter().any(|word| says(word)), "{name}, {field}: from?");
                for (ending, unit) in units {
                    assert!(
                        !field.ends_with(ending) || says(unit),
                        "{name}, {field}: unit?"
                    );
                }
            } else {
                comment.clear();
            }
        }
    }
}

/// What a read brings crosses the interface, wherever it was.
#[test]
fn nothing_is_faster_than_the_interface() {
    for name in [
        "seagate-cmr",
        "emulated-smr-2",
        "st5000as0011",
        "hm-smr-14tb",
    ] {
        let text = AnyProfile::named(name).unwrap().text().to_owned();
        let field = "interface_bytes_per_second = ";
        let old = text.lines().find(|line| line.starts_with(field)).unwrap();
        let slow = AnyProfile::parse(text.replace(old, &format!("{field}1000000"))).unwrap();
        let bytes = 256.0 * 4096.0;
        for depth in [1, 8] {
            for write in [false, true] {
                let mut model = slow.model(1).unwrap();
                // Behind conventional zones, if there are any.
                let first = 1u64 << 28;
                let (mut now, mut asked, mut ended) = (Time::START, 0, Time::START);
                let mut ask = |model: &mut dyn Model, now| {
                    let lba = Lba(first + asked * 256);
                    asked += 1;
                    let request = if write {
                        Request::write(lba, 256)
                    } else {
                        Request::read(lba, 256)
                    };
                    model.enqueue(request, now);
                };
                for _ in 0..depth {
                    ask(&mut *model, now);
                }
                for _ in 0..40 {
                    let done = model.next_completion().unwrap();
                    assert_eq!(done.result, Ok(()), "{name}");
                    now = done.at;
                    ended = ended.max(done.at);
                    ask(&mut *model, now);
                }
                let rate = 40.0 * bytes / ended.seconds();
                println!("{name}, depth {depth}, write {write}: {rate} bytes/s");
                assert!(rate <= 1e6, "{name}, depth {depth}, write {write}: {rate}");
                // The command's time at most, and the first seek.
                assert!(
                    rate > 0.95e6,
                    "{name}, depth {depth}, write {write}: {rate}"
                );
            }
        }
    }
}
