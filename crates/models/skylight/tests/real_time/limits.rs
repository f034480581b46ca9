use super::*;

#[test]
fn time_and_patience_have_an_end() {
    let drive = with(
        model("st5000as0011"),
        Fault::None,
        Delay::None,
        Told::default(),
    );
    let budget = Some(Span::from_seconds(300.0));
    let limits = Limits {
        budget,
        ..Limits::default()
    };
    let mut target = simulated::target(&drive, limits);
    let (found, _, result) = examine(&mut target, FULL, &mut |_| {});
    assert_eq!(result, Err(TargetError::TimeOver));
    assert_eq!(kind(&found), Some(DriveType::DriveManaged));
    assert!((300.0..302.0).contains(&found.seconds), "{}", found.seconds);

    let drive = with(
        model("st5000as0011"),
        Fault::None,
        Delay::None,
        Told::default(),
    );
    let limits = Limits::default();
    let interrupted = limits.interrupted.clone();
    let mut target = simulated::target(&drive, limits);
    let (found, _, result) = examine(&mut target, FULL, &mut |what| {
        interrupted.store(what.starts_with("test 3"), Ordering::Relaxed);
    });
    assert_eq!(result, Err(TargetError::Interrupted));
    assert!(found.cache_place.is_some() && found.cleaning.is_none());
}
