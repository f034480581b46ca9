use super::*;

#[test]
fn writes_that_fail_at_once_are_no_sign_of_zones() {
    for (from, once) in [(300, true), (300, false), (600, false)] {
        let fault = if once {
            Fault::Once(from, Errno::IO)
        } else {
            Fault::Error(from, Errno::IO)
        };
        let (found, result) = look("seagate-cmr", fault, Delay::None, QUICK);
        assert_eq!(kind(&found), None);
        assert!(
            matches!(result, Err(TargetError::Failed { .. })),
            "{result:?}"
        );
        assert!(found.turn_ms.is_some());
    }
}

#[test]
fn caches_that_cannot_be_switched_deceive_nobody() {
    for (name, right) in [
        ("seagate-cmr", DriveType::Conventional),
        ("st5000as0011", DriveType::DriveManaged),
        ("emulated-smr-1", DriveType::DriveManaged),
        ("emulated-smr-2", DriveType::DriveManaged),
        ("ssd-15gb", DriveType::Flash),
        ("hm-smr-14tb", DriveType::HostManaged),
        ("ha-smr-8tb", DriveType::HostAware),
    ] {
        // Zones that have never been written are read without the medium, as fast as flash.
        for fault in [Fault::Stubborn, Fault::None] {
            let (found, result) = look(name, fault, Delay::None, QUICK);
            assert_eq!(result, Ok(()), "{name}");
            let kind = kind(&found);
            assert!(kind.is_none_or(|kind| kind == right), "{name}: {kind:?}");
            let seen = name != "ha-smr-8tb" && fault == Fault::None;
            assert!(kind.is_some() || !seen, "{name}: {:?}", found.unknown);
        }
    }
}

#[test]
fn what_a_drive_says_of_its_zones_decides_where_its_writes_do_not() {
    let told = Told {
        zoned: Some(Zoned::HostAware),
        ..Told::default()
    };
    let drive = with(model("ha-smr-8tb"), Fault::None, Delay::None, told);
    let mut target = target(&drive, Limits::default());
    let (found, _, result) = examine(&mut target, QUICK, &mut |_| {});
    assert_eq!((kind(&found), result), (Some(DriveType::HostAware), Ok(())));
    assert_eq!(target.told(), told);
}
