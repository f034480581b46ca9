use super::*;
use proptest::prelude::*;

const NOW: u64 = 1_795_000_000_000_000;
const SECOND: u64 = 1_000_000;

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![Just(Mode::Governance), Just(Mode::Compliance)]
}

/// Around now, and as far away as dates go.
fn retention() -> impl Strategy<Value = Retention> {
    let near = (0..5u64).prop_map(|n| NOW + n * SECOND - 2 * SECOND);
    let until = prop_oneof![4 => near, 1 => 0..=LAST_MICROS];
    (mode(), until).prop_map(|(mode, until)| Retention::new(mode, until))
}

fn locks() -> impl Strategy<Value = Lock> {
    let hold = prop::option::of(any::<bool>());
    (prop::option::of(retention()), hold).prop_map(|(retention, hold)| Lock { retention, hold })
}

fn kept(lock: &Lock) -> Kept {
    Kept::of(&lock.encode())
}

proptest! {
    #[test]
    fn what_is_kept_comes_back(lock in locks()) {
        prop_assert_eq!(kept(&lock).read(), Ok(lock));
    }

    #[test]
    fn nothing_but_the_end_of_a_retention_lets_a_version_go(lock in locks(), bypass in any::<bool>()) {
        let is_free = match lock.retention {
            _ if lock.hold == Some(true) => false,
            None => true,
            Some(retention) => retention.until <= NOW || bypass && retention.mode == Mode::Governance,
        };
        prop_assert_eq!(may_delete(&kept(&lock), NOW, bypass).is_ok(), is_free);
    }

    /// Whatever is changed without a bypass: a version that could not go before a moment cannot go before it now.
    #[test]
    fn changes_make_locks_stronger(old in retention(), new in prop::option::of(retention()), later in 0..4u64) {
        let lock = |retention| Lock { retention, hold: None };
        let later = NOW + later * SECOND;
        if may_change(Ok(Some(old)), new, NOW, false).is_ok() && old.until > NOW {
            for bypass in [false, true] {
                let before = may_delete(&kept(&lock(Some(old))), later, bypass);
                let after = may_delete(&kept(&lock(new)), later, bypass);
                prop_assert!(before.is_ok() || after.is_err(), "{:?} {:?}", old, new);
            }
        }
    }

    #[test]
    fn compliance_lasts_whoever_asks(old in retention(), new in prop::option::of(retention())) {
        let lasts = old.mode == Mode::Compliance && old.until > NOW;
        let is_longer = new.is_some_and(|new| new.mode == Mode::Compliance && new.until >= old.until);
        prop_assert_eq!(may_change(Ok(Some(old)), new, NOW, true).is_ok(), !lasts || is_longer);
    }

    /// A byte of an attribute that is another one never unlocks. It may make another lock, such as another date.
    #[test]
    fn damage_unlocks_nothing(
        lock in locks(), at in any::<prop::sample::Index>(), byte in any::<u8>(), name in 0..3usize,
    ) {
        let mut attributes = lock.encode();
        let name = [LOCK_MODE, LOCK_UNTIL, LEGAL_HOLD][name];
        if let Some(value) = attributes.get_mut(name) {
            let at = at.index(value.len());
            value[at] = byte;
            let (damaged, whole) = (Kept::of(&attributes), kept(&lock));
            if name != LOCK_UNTIL && damaged != whole {
                prop_assert!(matches!(may_delete(&damaged, NOW, true), Err(Refusal::Unreadable(_) | Refusal::Held)));
            }
            if damaged.retention.is_err() {
                prop_assert!(may_change(damaged.retention, lock.retention, NOW, true).is_err());
            }
        }
    }

    #[test]
    fn anything_is_read(attributes in prop::collection::btree_map(
        "(lock-mode|lock-until|legal-hold|object-lock|other)", prop::collection::vec(any::<u8>(), 0..30), 0..5)) {
        let is_said = [LOCK_MODE, LOCK_UNTIL, LEGAL_HOLD].iter().any(|name| attributes.contains_key(*name));
        let found = Kept::of(&attributes);
        // Such words are not met by chance.
        prop_assert_eq!(may_delete(&found, NOW, true).is_err(), is_said);
        prop_assert_eq!(BucketLock::of(&attributes).is_err(), attributes.contains_key(OBJECT_LOCK));
    }

    #[test]
    fn a_bucket_s_lock_comes_back(mode in mode(), days in 1..=MAX_DAYS, years in 1..=MAX_YEARS) {
        for period in [Period::Days(days), Period::Years(years)] {
            let lock = BucketLock { default: Some(DefaultRetention { mode, period }) };
            let attributes = Attributes::from([(OBJECT_LOCK.to_owned(), lock.encode().into())]);
            prop_assert_eq!(BucketLock::of(&attributes), Ok(Some(lock)));
        }
    }

    #[test]
    fn a_year_is_no_shorter_than_its_days(now in 0..4_000_000_000_000_000u64, years in 1..=MAX_YEARS) {
        let end = Period::Years(years).end(now);
        let days = (end - now) / MICROS_PER_DAY;
        let whole = u64::from(years) * 365;
        prop_assert!(days >= whole && days <= whole + u64::from(years) / 4 + 1, "{} {}", days, years);
    }
}

#[test]
fn one_half_of_a_retention_is_no_retention_that_is_known() {
    let until = "2030-01-01T00:00:00.000Z";
    for (name, value, missing) in [
        (LOCK_MODE, "COMPLIANCE", LOCK_UNTIL),
        (LOCK_UNTIL, until, LOCK_MODE),
    ] {
        let found = Kept::of(&Attributes::from([(name.to_owned(), value.into())]));
        assert_eq!(found.retention, Err(Unreadable(missing)));
        let refused = Refusal::Unreadable(Unreadable(missing));
        assert_eq!(may_delete(&found, NOW, true), Err(refused));
        assert_eq!(may_change(found.retention, None, NOW, true), Err(refused));
    }
}

#[test]
fn a_legal_hold_is_taken_off_by_who_administers() {
    for (old, new, is_admin, allowed) in [
        (None, true, false, true),
        (None, false, false, true),
        (Some(false), false, false, true),
        (Some(true), true, false, true),
        (Some(true), false, false, false),
        (Some(true), false, true, true),
    ] {
        let found = may_hold(Ok(old), new, is_admin);
        assert_eq!(found.is_ok(), allowed, "{old:?} {new} {is_admin}");
    }
    let unreadable = Unreadable(LEGAL_HOLD);
    for new in [true, false] {
        let found = may_hold(Err(unreadable), new, true);
        assert_eq!(found, Err(unreadable.into()));
    }
}

#[test]
fn a_version_gets_what_was_asked_or_the_default() {
    let default = DefaultRetention {
        mode: Mode::Governance,
        period: Period::Days(2),
    };
    let with_default = Ok(Some(BucketLock {
        default: Some(default),
    }));
    let without = Ok(Some(BucketLock::default()));
    let asked = Lock {
        retention: Some(Retention::new(Mode::Compliance, NOW + SECOND)),
        hold: Some(true),
    };
    let held = Lock {
        retention: None,
        hold: Some(true),
    };
    let two_days = Some(Retention::new(Mode::Governance, NOW + 2 * MICROS_PER_DAY));
    let nothing = Lock::default();
    assert_eq!(grant(with_default, asked, NOW), Ok(asked));
    assert_eq!(
        grant(with_default, held, NOW),
        Ok(Lock {
            retention: two_days,
            ..held
        })
    );
    assert_eq!(grant(without, nothing, NOW), Ok(nothing));
    assert_eq!(grant(without, held, NOW), Ok(held));
    assert_eq!(grant(Ok(None), nothing, NOW), Ok(nothing));
    assert_eq!(grant(Ok(None), held, NOW), Err(Refusal::NoBucketLock));
    let unreadable = Unreadable(OBJECT_LOCK);
    assert_eq!(grant(Err(unreadable), asked, NOW), Ok(asked));
    assert_eq!(grant(Err(unreadable), held, NOW), Err(unreadable.into()));
}

#[test]
fn a_default_that_s3_does_not_have_is_none_that_is_known() {
    for text in [
        "",
        "Enabled",
        "enabled ",
        "GOVERNANCE",
        "GOVERNANCE 0 days",
        "GOVERNANCE 36501 days",
        "COMPLIANCE 101 years",
        "COMPLIANCE 1 months",
        "COMPLIANCE 1 years more",
        "COMPLIANCE -1 days",
        "compliance 1 days",
    ] {
        assert_eq!(BucketLock::parse(text), None, "{text:?}");
    }
}

#[test]
fn years_are_those_of_the_calendar() {
    let at = |text| parse_until(text).unwrap();
    for (now, years, end) in [
        ("2026-11-28T18:00:00.000Z", 1, "2027-11-28T18:00:00.000Z"),
        ("2028-02-29T12:00:00.000Z", 1, "2029-03-01T12:00:00.000Z"),
        ("2028-02-29T12:00:00.000Z", 4, "2032-02-29T12:00:00.000Z"),
        ("9990-01-01T00:00:00.000Z", 100, "9999-12-31T23:59:59.999Z"),
    ] {
        assert_eq!(Period::Years(years).end(at(now)), at(end), "{now}");
    }
    assert_eq!(at("9999-12-31T23:59:59.999Z"), LAST_MICROS);
}

#[test]
fn a_date_is_kept_to_the_end_of_its_millisecond() {
    let until = |text| Retention::new(Mode::Compliance, parse_until(text).unwrap()).until;
    let second = until("2030-01-01T00:00:00Z");
    assert_eq!(until("2030-01-01T00:00:00.000000001Z"), second + 1000);
    assert_eq!(until("2030-01-01T00:00:00.0005Z"), second + 1000);
    assert_eq!(until("2030-01-01T01:00:00+01:00"), second);
    assert_eq!(parse_until("1969-12-31T23:59:59Z"), None);
}
