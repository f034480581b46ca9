//! The power test finds what a drive must not do, and nothing else, at any moment of a cut.

use device::power_cut::CrashLimits;
use device::{MemoryDrive, PowerCut, ZonedDevice};
use device_qualify::power::{self, Kept, Logged, Round, Rounds, Step};
use device_qualify::report::{Conformance, remarks};
use zone::{Geometry, ZoneAddress, ZoneError, ZoneId, ZoneKind};

fn geometry() -> Geometry {
    Geometry {
        block_size: 4096,
        zone_size: 512 << 10,
        zone_capacity: 400 << 10,
        zone_count: 14,
        conventional_zones: 2,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 6,
        max_active_zones: 6,
        max_append_bytes: 0,
    }
}

/// Writes until the power goes at command `n`; answers the drive and the last flush that was answered.
fn cut_at(n: u64, seed: u64) -> (PowerCut, Round, u64) {
    let drive = PowerCut::new(geometry()).unwrap();
    let round = Round::new(&geometry(), 8, seed).unwrap();
    drive.cut_after(n);
    let mut last = 0;
    let ended = power::write::<ZoneError>(&drive, &round, &mut |number| {
        last = number;
        Ok(true)
    });
    assert!(
        matches!(ended, Err(ZoneError::PowerLost { .. })),
        "{ended:?}"
    );
    (drive, round, last)
}

const fn limits(seed: u64) -> CrashLimits {
    CrashLimits {
        max_states: 12,
        max_choices_per_zone: 4,
        seed,
    }
}

fn check(drive: &dyn ZonedDevice, round: &Round, flushed: u64) -> Kept {
    power::check(drive, round, flushed, &mut |_, _| ()).unwrap()
}

fn logged(round: &Round, flushed: u64) -> Logged {
    Logged {
        round: round.clone(),
        flushed,
        ended_as_asked: false,
        kept: None,
    }
}

#[test]
fn a_drive_that_keeps_the_contract_is_safe_at_every_cut() {
    let (mut states, mut live, mut unflushed) = (0, 0, 0);
    for n in (1..60).chain((60..1500).step_by(41)) {
        let (drive, round, last) = cut_at(n, n);
        for state in drive.crash_states(limits(n)) {
            let image = drive.image(&state);
            let kept = check(&image, &round, last);
            assert!(
                kept.is_safe() && kept.unflushed_wrong_bytes == 0,
                "cut {n}: {kept:?}"
            );
            states += 1;
            live += kept.flushed_bytes;
            unflushed += kept.unflushed_bytes;
        }
    }
    assert!(
        states > 300 && live > 0 && unflushed > 0,
        "{states} {live} {unflushed}"
    );
}

/// The note of the last flush is still on its way when the power goes.
#[test]
fn a_log_that_lags_accuses_no_sound_drive() {
    let mut late = 0;
    for n in (60..1500).step_by(41) {
        let (drive, round, last) = cut_at(n, n);
        for state in drive.crash_states(limits(n)) {
            let image = drive.image(&state);
            for lag in (0..=3).filter(|lag| *lag <= last) {
                let round = Round {
                    lag,
                    ..round.clone()
                };
                let kept = check(&image, &round, last - lag);
                assert!(
                    kept.is_safe() && kept.unflushed_wrong_bytes == 0,
                    "cut {n}: {kept:?}"
                );
                let exact = Round { lag: 0, ..round };
                late += u32::from(!check(&image, &exact, last - lag).is_safe());
            }
        }
    }
    assert!(late > 0);
}

#[test]
fn what_a_drive_must_not_do_is_found() {
    let (drive, round, last) = cut_at(700, 3);
    let mut states = drive.crash_states(CrashLimits {
        max_states: 1,
        max_choices_per_zone: 1,
        seed: 3,
    });
    let image = drive.image(&states.remove(0));
    let before = check(&image, &round, last);
    assert!(before.is_safe());
    // A zone whose reset was sent may be empty.
    let mut sent = round
        .steps()
        .skip_while(|step| *step != Step::Flush { number: last });
    let _flush = sent.next();
    let sent = sent.take_while(|step| !matches!(step, Step::Flush { .. }));
    let is_reset: Vec<_> = sent
        .filter_map(|step| match step {
            Step::Reset(zone) => Some(zone),
            _ => None,
        })
        .collect();
    let (mut found, mut gone_back) = (0, 0);
    for zone in image.report(ZoneId(0), 14).unwrap() {
        for offset in (0..zone.write_pointer).step_by(4096) {
            let at = ZoneAddress::new(zone.id, offset + 7);
            // A bit.
            let one = damaged(&image, at, |d, at| d.decay(at, 1, |b| b[0] ^= 1));
            let kept = check(&one, &round, last);
            assert_eq!(
                kept.wrong_bytes + kept.unflushed_wrong_bytes,
                4096,
                "{at:?} {kept:?}"
            );
            assert_eq!(kept.is_safe(), kept.wrong_bytes == 0);
            found += u32::from(!kept.is_safe());
        }
        if zone.write_pointer > 0 && !is_reset.contains(&zone.id) {
            let first = ZoneAddress::new(zone.id, 0);
            let one = damaged(&image, first, |d, at| d.decay(at, 1, |b| b[0] ^= 1));
            if check(&one, &round, last).is_safe() {
                continue; // None of it was flushed.
            }
            gone_back += 1;
            // A zone that went back to empty.
            let gone = image.snapshot();
            gone.reset(zone.id).unwrap();
            let kept = check(&gone, &round, last);
            assert!(kept.lost_bytes > 0 && !kept.is_safe(), "{kept:?}");
            // A stale zone of another round.
            let other = Round {
                seed: 99,
                ..round.clone()
            };
            let stale = image.snapshot();
            stale.reset(zone.id).unwrap();
            let mut bytes = vec![0; 4096];
            let geometry = geometry();
            image
                .read(geometry.start(ZoneId(zone.id.0)), &mut bytes)
                .unwrap();
            bytes[9] ^= other.seed as u8;
            stale.write(geometry.start(zone.id), &bytes).unwrap();
            assert!(!check(&stale, &round, last).is_safe());
        }
    }
    assert!(found > 100 && gone_back >= 3, "{found} {gone_back}");
}

fn damaged(
    image: &MemoryDrive,
    at: ZoneAddress,
    how: fn(&MemoryDrive, ZoneAddress),
) -> MemoryDrive {
    let copy = image.snapshot();
    how(&copy, at);
    copy
}

#[test]
fn a_log_is_read_back_up_to_its_torn_end() {
    let round = Round::new(&geometry(), 8, 5).unwrap();
    let drive = MemoryDrive::new(geometry()).unwrap();
    let kept = check(&drive, &round, 1);
    let end = Rounds::kept(&kept);
    let text = format!(
        "{}{}{}{end}",
        Rounds::head(&round),
        Rounds::flushed(1),
        Rounds::flushed(2)
    );
    for end in 0..text.len() {
        match Rounds::read(&text.as_bytes()[..end]) {
            Ok(log) => {
                let read = &log.rounds[0];
                assert_eq!((&read.round, &read.kept), (&round, &None));
                assert!(read.flushed <= 2, "{read:?}");
                assert_eq!(text.as_bytes()[log.whole_bytes as usize - 1], b'\n');
            }
            Err(error) => assert!(error.to_string().contains("empty"), "{error}"),
        }
    }
    let whole = Logged {
        kept: Some(kept),
        ..logged(&round, 2)
    };
    assert_eq!(Rounds::read(text.as_bytes()).unwrap().rounds, [whole]);
    let skipped = format!("{}{}", Rounds::head(&round), Rounds::flushed(2));
    assert!(Rounds::read(skipped.as_bytes()).is_err());
    // Of the lines of a round, one says that nobody cut the power.
    let ended = format!("{}{}", Rounds::head(&round), Rounds::ENDED);
    let ended = Rounds::read(ended.as_bytes()).unwrap().rounds.remove(0);
    let kept = Kept {
        ended_as_asked: ended.ended_as_asked,
        ..check(&drive, &round, 0)
    };
    // Nothing was flushed in a round that ended before its first flush.
    let nothing = check(&drive, &round, 0);
    let passed = Conformance::Passed { notes: vec![] };
    let remarks = remarks(&geometry(), &passed, &[kept, nothing]);
    assert!(remarks[0].text.contains("its power was not cut"));
    let older = "round {\"version\":1,\"seed\":5}\n";
    let older = Rounds::read(older.as_bytes()).unwrap_err();
    assert!(older.to_string().contains("of version 1"), "{older}");
    // A lag is in the head of a round that has one.
    let lagging = round.with_a_lagging_log();
    let read = Rounds::read(Rounds::head(&lagging).as_bytes()).unwrap();
    assert_eq!(read.rounds[0].round, lagging);
    assert!(lagging.lag > 0 && !text.contains("lag"));
    for bad in ["hello\n", "flushed 1\n", "round {}\n", "\u{0}\n"] {
        assert!(Rounds::read(bad.as_bytes()).is_err(), "{bad}");
    }
}

#[test]
fn a_round_of_another_drive_is_refused() {
    let round = Round::new(&geometry(), 8, 5).unwrap();
    round.fits(&geometry(), None).unwrap();
    round.fits(&geometry(), Some("other")).unwrap_err();
    let bad = [
        Round {
            drive: Some("other".to_owned()),
            ..round.clone()
        },
        Round {
            zones: 13,
            ..round.clone()
        },
        Round {
            streams: 0,
            ..round.clone()
        },
        Round {
            block_bytes: 512,
            ..round.clone()
        },
        Round {
            zone_count: 15,
            ..round.clone()
        },
        Round {
            zone_blocks: 1 << 60,
            ..round.clone()
        },
        Round {
            first_zone: 3,
            ..round
        },
    ];
    for bad in bad {
        assert!(bad.fits(&geometry(), None).is_err(), "{bad:?}");
    }
}

#[test]
fn a_drive_with_too_few_zones_is_told_how_few_would_do() {
    // Twelve sequential zones, of which four are written at a time.
    let error = Round::new(&geometry(), 32, 5).unwrap_err();
    assert!(error.to_string().contains("--zones 8 "), "{error}");
    let round = Round::new(&geometry(), 8, 5).unwrap();
    // No number of zones would do on the first one, and a check chooses none.
    let small = Geometry {
        zone_count: geometry().conventional_zones + 7,
        ..geometry()
    };
    let too_small = Round::new(&small, 8, 5).unwrap_err();
    let of_a_log = Round { zones: 32, ..round }
        .fits(&geometry(), None)
        .unwrap_err();
    for error in [too_small, of_a_log] {
        assert!(!error.to_string().contains("--zones"), "{error}");
    }
}

#[test]
fn a_round_keeps_the_rules_of_zones() {
    let round = Round::new(&geometry(), 8, 5).unwrap();
    let drive = MemoryDrive::new(geometry()).unwrap();
    let mut flushes = 0;
    power::write::<ZoneError>(&drive, &round, &mut |number| {
        flushes = number;
        Ok(number < 2000)
    })
    .unwrap();
    assert_eq!(flushes, 2000);
    let resets = round
        .steps()
        .take(20_000)
        .filter(|step| matches!(step, Step::Reset(_)));
    assert!(resets.count() > 100);
    assert!(check(&drive, &round, 2000).is_safe());
    // An older note is not what is there: too much was erased since.
    assert!(!check(&drive, &round, 1000).is_safe());
}
