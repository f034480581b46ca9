//! A model that was saved and loaded goes on as if nothing had been.

use drive_model::flash::ManagementShape;
use drive_model::state::{HEADER_BYTES, MAGIC, StateError, VERSION, load, save};
use drive_model::{
    AnyProfile, Completion, FlashProfile, Lba, Model, NoiseShape, Profile, Random, Request,
    RequestKind, Span, Time, profile::all_names,
};
use serde_json::Value;
use std::collections::BTreeSet;

/// One thing that a host does.
#[derive(Clone, Copy, Debug)]
enum Step {
    Enqueue(Request),
    Next,
    By,
    Pause(Span),
}

/// Any requests, near few places so that caches fill, and some idle time.
struct Host {
    random: Random,
    now: Time,
    under_way: u32,
}

impl Host {
    fn step(&mut self, model: &dyn Model) -> Step {
        let random = &mut self.random;
        match random.below(100) {
            0..2 => Step::Pause(Span::from_millis(random.below(4_000) as f64)),
            2..50 if self.under_way < 12 => Step::Enqueue(request(random, model)),
            50..60 => Step::By,
            _ if self.under_way > 0 => Step::Next,
            _ => Step::Enqueue(request(random, model)),
        }
    }

    fn run(&mut self, model: &mut dyn Model, step: Step) -> Option<Completion> {
        match step {
            Step::Enqueue(request) => {
                self.now += Span::from_micros(50.0);
                model.enqueue(request, self.now);
                self.under_way += 1;
                return None;
            }
            Step::Pause(span) => {
                self.now += span;
                model.idle_until(self.now);
                return None;
            }
            Step::Next => {}
            Step::By => {
                self.now += Span::from_millis(1.0);
                let done = model.completion_by(self.now)?;
                self.under_way -= 1;
                return Some(done);
            }
        }
        let done = model.next_completion()?;
        self.now = self.now.max(done.at);
        self.under_way -= 1;
        Some(done)
    }
}

fn request(random: &mut Random, model: &dyn Model) -> Request {
    let place = model.blocks() / 5 * random.below(4);
    let lba = Lba(place + random.below(3_000));
    let blocks = [1, 7, 64, 256, 2_048, 8_192][random.below(6) as usize];
    let Some(zones) = model.zones() else {
        return match random.below(20) {
            0 => Request::flush(),
            1 => Request::trim(lba, blocks),
            2..8 => Request::read(lba, blocks),
            _ => Request::write(lba, blocks),
        };
    };
    let geometry = zones.geometry();
    let zone = 1 + random.below(4) as u32 * (geometry.zone_count / 5);
    let start = Lba(u64::from(zone) * geometry.zone_size / 4_096);
    let pointer = zones.report(zone::ZoneId(zone), 1)[0].write_pointer / 4_096;
    match random.below(20) {
        0 => Request::flush(),
        1 => Request::on_zone(RequestKind::ResetZone, start),
        2 => Request::on_zone(RequestKind::CloseZone, start),
        3..8 => Request::read(start.plus(random.below(pointer.max(1))), blocks.min(64)),
        _ => Request::write(start.plus(pointer), blocks),
    }
}

fn host(seed: u64) -> Host {
    Host {
        random: Random::new(seed),
        now: Time::START,
        under_way: 0,
    }
}

#[test]
fn a_loaded_model_completes_as_the_one_that_was_saved() {
    for name in all_names() {
        let profile = AnyProfile::named(name).unwrap();
        let mut model = profile.model(7).unwrap();
        let mut host = host(0xD15C);
        let mut seen = 0;
        for _ in 0..3 {
            for _ in 0..1_500 {
                let step = host.step(&*model);
                host.run(&mut *model, step);
            }
            let bytes = save(&profile, &*model, host.now).unwrap();
            let (mut loaded, at) = load(&profile, &bytes).unwrap();
            assert_eq!(at, host.now, "{name}");
            let (mut under_way, mut now) = (host.under_way, host.now);
            for n in 0..1_500 {
                let step = host.step(&*model);
                let mut other = Host {
                    random: Random::new(1),
                    now,
                    under_way,
                };
                let expected = host.run(&mut *model, step);
                let found = other.run(&mut *loaded, step);
                assert_eq!(found, expected, "{name}, request {n} after: {step:?}");
                seen += u32::from(found.is_some_and(|done| done.result.is_ok()));
                (under_way, now) = (other.under_way, other.now);
            }
            assert_eq!(loaded.statistics(), model.statistics(), "{name}");
            let zones = |model: &dyn Model| {
                model
                    .zones()
                    .map(|zones| zones.report(zone::ZoneId(0), zones.geometry().zone_count))
            };
            assert_eq!(zones(&*loaded), zones(&*model), "{name}");
            // What came out of the file goes on, and is saved again.
            model = loaded;
        }
        // Most of a Caveat-Scriptor disk cannot be read.
        assert!(seen > 500, "{name}: {seen}");
        let cleaned = model.statistics().cleaning.bands;
        let lazy = ["emulated-smr-1", "emulated-smr-2"].contains(&name);
        assert!(!lazy || cleaned > 0, "{name} never cleaned");
    }
}

/// The state of a small model, and its profile.
fn saved() -> (AnyProfile, Vec<u8>) {
    let profile = AnyProfile::named("seagate-cmr").unwrap();
    let mut model = profile.model(1).unwrap();
    let now = model.submit(Request::write(Lba(5), 3), Time::START).at;
    let bytes = save(&profile, &*model, now).unwrap();
    (profile, bytes)
}

#[test]
fn what_is_no_state_of_the_profile_is_refused() {
    let (profile, good) = saved();
    assert!(load(&profile, &good).is_ok());
    let error = |bytes: &[u8]| load(&profile, bytes).unwrap_err();
    assert_eq!(error(b""), StateError::NotAState);
    assert_eq!(error(b"ZSMODEM\0 and more"), StateError::NotAState);
    let mut newer = good.clone();
    newer[8] = VERSION as u8 + 1;
    assert_eq!(
        error(&newer),
        StateError::UnsupportedVersion { found: VERSION + 1 }
    );
    let other = AnyProfile::named("wd5000ys").unwrap();
    let foreign = load(&other, &good).unwrap_err();
    assert_eq!(foreign, StateError::OtherProfile);
    // A profile with one number changed is another one.
    let changed = profile.text().replace("5900", "5901");
    let changed = AnyProfile::parse(changed).unwrap();
    assert_eq!(load(&changed, &good).unwrap_err(), StateError::OtherProfile);
    assert_eq!(
        error(&good[..good.len() - 1]),
        StateError::Damaged { what: "length" }
    );
}

/// Whichever byte is changed or cut off, it is noticed.
#[test]
fn damage_is_noticed() {
    let (profile, good) = saved();
    for length in 0..good.len().min(HEADER_BYTES + 64) {
        assert!(load(&profile, &good[..length]).is_err(), "{length}");
    }
    let mut bytes = good.clone();
    // Four bytes are reserved; they are covered too.
    for at in 0..good.len() {
        bytes[at] ^= 1 << (at % 8);
        assert!(load(&profile, &bytes).is_err(), "byte {at}");
        bytes[at] = good[at];
    }
}

/// Asked for what is complete by the moments that the model itself names, it answers the same as one
/// that is asked for the next completion.
#[test]
fn the_moments_that_a_model_names_are_enough() {
    for name in all_names() {
        let profile = AnyProfile::named(name).unwrap();
        let (mut one, mut other) = (profile.model(3).unwrap(), profile.model(3).unwrap());
        let mut random = Random::new(77);
        let mut now = Time::START;
        for _ in 0..300 {
            for _ in 0..random.below(6) + 1 {
                let request = request(&mut random, &*one);
                assert_eq!(one.enqueue(request, now), other.enqueue(request, now));
            }
            let mut expected: Vec<Completion> =
                std::iter::from_fn(|| one.next_completion()).collect();
            let mut found = Vec::new();
            while let Some(moment) = other.next_moment() {
                while let Some(done) = other.completion_by(moment) {
                    // What takes no time is done when it begins, a moment earlier.
                    assert!(moment.since(done.at).nanos() <= 1, "{name}");
                    found.push(done);
                }
            }
            // At the same time they come in any order.
            expected.sort_unstable_by_key(|done| (done.at, done.tag));
            found.sort_unstable_by_key(|done| (done.at, done.tag));
            assert_eq!(found, expected, "{name}");
            now = expected.iter().map(|done| done.at).max().unwrap().max(now);
            now += Span::from_millis(random.below(3_000) as f64);
        }
    }
}

/// Names of all fields that a value has somewhere in it.
fn fields(value: &Value, path: &str, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                // How the requests at the end went is no matter.
                if key == "result" {
                    continue;
                }
                // Maps by number have no fields.
                let key = if key.parse::<u64>().is_ok() { "*" } else { key };
                fields(value, &format!("{path}.{key}"), into);
            }
        }
        Value::Array(list) => {
            for value in list {
                fields(value, &format!("{path}[]"), into);
            }
        }
        _ => _ = into.insert(path.to_owned()),
    }
}

/// What the models of this version consist of, as far as three hundred requests fill it. Another number
/// here means another version there, unless models only do something else than before.
#[test]
fn a_change_of_what_a_model_consists_of_is_noticed() {
    fn seen(name: &str, mut model: impl Model + serde::Serialize, into: &mut BTreeSet<String>) {
        let mut host = host(3);
        for _ in 0..300 {
            let step = host.step(&model);
            host.run(&mut model, step);
        }
        let value = serde_json::to_value(&model).unwrap();
        fields(&value, name, into);
    }
    let disk = |name: &str| {
        let mut profile = Profile::named(name).unwrap();
        if profile.zones.is_none() {
            profile.capacity_bytes = 100 << 30;
        }
        profile
    };
    let mut all = BTreeSet::new();
    for name in [
        "seagate-cmr",
        "emulated-smr-1",
        "emulated-smr-3",
        "st5000as0011",
    ] {
        seen("disk", disk(name).drive(1).unwrap(), &mut all);
    }
    let mut noisy = disk("seagate-cmr");
    noisy.noise = Some(NoiseShape::default());
    seen("disk", noisy.drive(1).unwrap(), &mut all);
    seen("disk", disk("caveat-scriptor").drive(1).unwrap(), &mut all);
    for name in ["hm-smr-14tb", "ha-smr-8tb"] {
        seen("zoned", disk(name).zoned(1).unwrap(), &mut all);
    }
    let zns = FlashProfile::named("zns-zn540").unwrap();
    seen("flash", zns.drive().unwrap(), &mut all);
    let mut flash = FlashProfile::named("ssd-15gb").unwrap();
    if let ManagementShape::PageMapped {
        capacity_bytes,
        superblocks,
    } = &mut flash.management
    {
        (*capacity_bytes, *superblocks) = (*capacity_bytes / 8, *superblocks / 8);
    }
    seen("flash", flash.drive().unwrap(), &mut all);
    let text: Vec<String> = all.into_iter().collect();
    let found = crc_fast::checksum(
        crc_fast::CrcAlgorithm::Crc64Nvme,
        text.join("\n").as_bytes(),
    );
    assert_eq!(
        (VERSION, found),
        (5, 12_144_726_972_361_274_473),
        "models consist of something else: give the state another version, and put this here.\n{}",
        text.join("\n")
    );
}

/// Offsets and sizes in the document are those of the code.
#[test]
fn the_document_says_what_the_code_does() {
    let document = include_str!("../../../../docs/format/model-state.md");
    let (_, bytes) = saved();
    let mut end = 0;
    for row in document.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let (Ok(at), Ok(size)) = (cells[1].parse::<usize>(), cells[2].parse::<usize>()) else {
            continue;
        };
        assert_eq!(at, end, "{row}");
        end = at + size;
    }
    assert_eq!(end, HEADER_BYTES);
    assert!(document.contains(&format!("version {VERSION}")));
    assert_eq!(&bytes[..8], &MAGIC);
}
