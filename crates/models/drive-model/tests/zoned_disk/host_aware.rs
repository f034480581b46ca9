use super::*;

/// Writes at write pointers go to their bands; others are allowed, and go through the cache.
#[test]
fn a_host_aware_disk_takes_all_writes_and_likes_some() {
    let mut disk = disk("ha-smr-8tb");
    disk.set_volatile_cache(true);
    let zone = start(1_000);
    let stream = pieces(zone, 4).map(|(lba, blocks)| Request::write(lba, blocks));
    let (streamed, now) = rate(4, &mut disk, Time::START, stream);
    let now = disk.submit(Request::flush(), now).at;
    let report = disk.zones().unwrap().report(ZoneId(1_000), 5);
    let conditions: Vec<ZoneCondition> = report.iter().map(|zone| zone.condition).collect();
    assert_eq!(conditions[..4], [ZoneCondition::Full; 4]);
    assert_eq!(conditions[4], ZoneCondition::Empty);
    assert!(streamed > 100.0, "{streamed}");
    disk.set_volatile_cache(false);
    let over = disk.submit(Request::write(zone.plus(777), 1), now);
    assert_eq!(over.result, Ok(()));
    // An entry of the journal, as on the drive-managed disk.
    assert!(over.latency().millis() > 10.0, "{}", over.latency());
}

/// The zones of a host-aware disk are advice: requests may cross their boundaries.
#[test]
fn a_host_aware_disk_takes_requests_over_boundaries() {
    let mut aware = disk("ha-smr-8tb");
    let over = start(1_001).0 - 5;
    for zones in [1, 2] {
        let done = aware.submit(
            Request::write(Lba(over), 10 + (zones - 1) * ZONE as u32),
            Time::START,
        );
        assert_eq!(done.result, Ok(()));
        let report = aware.zones().unwrap().report(ZoneId(1_000 + zones), 1)[0];
        assert_eq!(report.write_pointer, 5 * 4096);
        let done = aware.submit(Request::read(Lba(over), 10), done.at);
        assert_eq!(done.result, Ok(()));
    }
    let mut managed = disk("hm-smr-14tb");
    let zone = start(1_001);
    let whole = Request::write(zone, ZONE as u32 - 5);
    let now = managed.submit(whole, Time::START).at;
    let over = Request::write(zone.plus(ZONE - 5), 10);
    assert_eq!(
        managed.submit(over, now).result,
        Err(Failure::Refused(Refusal::ZoneBoundary))
    );
}
