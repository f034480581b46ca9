use super::*;

#[test]
fn a_drive_that_is_smaller_than_it_says_is_told() {
    let bytes = model("seagate-cmr").blocks() * 4096;
    let end = bytes / 5 * 3;
    let (_, result) = look("seagate-cmr", Fault::Ends(end), Delay::None, QUICK);
    assert_eq!(
        result,
        Err(TargetError::Ends {
            reported: bytes,
            found: end / 4096 * 4096
        })
    );
    let (_, result) = look("seagate-cmr", Fault::Wraps(1 << 36), Delay::None, QUICK);
    let Err(TargetError::Wraps { at, found, .. }) = result else {
        panic!("{result:?}");
    };
    assert_eq!((at - found) % (1 << 36), 0);
    let (_, result) = look("seagate-cmr", Fault::Forgets(1 << 36), Delay::None, QUICK);
    assert!(
        matches!(result, Err(TargetError::Forgets { .. })),
        "{result:?}"
    );
}

#[test]
fn the_systems_own_error_is_passed_on() {
    // Nothing can be read, which does not show the size.
    let (_, result) = look(
        "seagate-cmr",
        Fault::Error(0, Errno::NOENT),
        Delay::None,
        QUICK,
    );
    let error = result.unwrap_err();
    assert!(
        matches!(error, TargetError::Failed { at: 0, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("No such file"), "{error}");
    // The error of a failed write names the cause, and is more than «refused».
    let (_, result) = look(
        "seagate-cmr",
        Fault::Error(300, Errno::IO),
        Delay::None,
        QUICK,
    );
    let error = result.unwrap_err().to_string();
    assert!(error.contains("nput/output error"), "{error}");
}

#[test]
fn reads_that_went_through_before_an_error_say_something() {
    for (from, rates) in [(280, 0), (460, 1)] {
        let fault = Fault::Error(from, Errno::IO);
        let drive = with(model("seagate-cmr"), fault, Delay::None, Told::default());
        let mut target = target(&drive, Limits::default());
        let (found, result) = read(&mut target, 7, &mut |_| {});
        assert!(
            matches!(result, Err(TargetError::Failed { .. })),
            "{result:?}"
        );
        assert!(found.random_read_ms.is_some(), "{found:?}");
        assert!(
            found.rates.len() >= rates && found.rates.len() < 64,
            "{found:?}"
        );
        let rows = rows(&found);
        let of = |property| rows.iter().find(|row| row.property == property);
        assert!(of("Random read of 4 KiB").is_some());
        let sequential = of("Sequential read");
        assert_eq!(sequential.is_some(), !found.rates.is_empty());
        assert!(sequential.is_none_or(|row| !row.value.contains("the end")));
    }
}

/// Requests until test 11 of the Seagate drive is under way.
const LATE: u64 = 8_000;

#[test]
fn what_was_found_before_an_error_is_kept() {
    for fault in [
        Fault::Error(LATE, Errno::IO),
        Fault::Once(LATE, Errno::IO),
        Fault::Error(LATE, Errno::NODEV),
        Fault::Error(LATE, Errno::NXIO),
        Fault::Stuck(LATE),
        Fault::Short(LATE),
    ] {
        let drive = with(model("st5000as0011"), fault, Delay::None, Told::default());
        let mut target = target(&drive, Limits::default());
        let (found, _, result) = examine(&mut target, FULL, &mut |_| {});
        let error = result.unwrap_err();
        let expected = match (fault, &error) {
            (Fault::Error(_, Errno::IO) | Fault::Once(..), TargetError::Failed { .. })
            | (Fault::Short(_), TargetError::Short { .. }) => true,
            (Fault::Error(..), TargetError::Gone { what, .. }) => what == "/dev/simulated",
            (Fault::Stuck(_), TargetError::Stuck { seconds }) => *seconds == 60,
            _ => false,
        };
        assert!(expected, "{fault:?}: {error}");
        assert_eq!(kind(&found), Some(DriveType::DriveManaged), "{fault:?}");
        assert!(found.turn_ms.is_some() && found.cache_type.is_some());
        // A drive that is gone or stuck gets no more requests.
        if matches!(error, TargetError::Gone { .. } | TargetError::Stuck { .. }) {
            let again = skylight::target::gather(&mut target, 1, [drive_model::Request::flush()]);
            assert_eq!(again, Err(error));
        }
    }
}
