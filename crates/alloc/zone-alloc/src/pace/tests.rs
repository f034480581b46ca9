use super::*;

const MIB: u64 = 1 << 20;

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// Moves pieces of 64 KiB, each of which takes no time itself, for `length` seconds; returns bytes moved a
/// second.
fn moved(pacer: &mut Pacer, length: f64, mut requests: impl FnMut(Duration) -> Requests) -> f64 {
    let (mut now, mut bytes) = (seconds(100.0), 0u64);
    let end = now + seconds(length);
    while now < end {
        let next = pacer.next(now, &requests(now));
        if next > now {
            now = next;
            continue;
        }
        // Read and written.
        pacer.spend(2 * (64 << 10), now);
        bytes += 64 << 10;
        if pacer.rate().is_none() {
            now += Duration::from_micros(100);
        }
    }
    bytes as f64 / length
}

#[test]
fn paces_as_people_write_them() {
    for (text, pace) in [
        ("full", Pace::Full),
        ("100MiB/s", Pace::Rate(100 * MIB)),
        ("1500B/s", Pace::Rate(1500)),
        ("idle:200ms", Pace::Idle(Duration::from_millis(200))),
        (
            "latency:1s 500ms",
            Pace::Latency(Duration::from_millis(1500)),
        ),
    ] {
        assert_eq!(text.parse(), Ok(pace));
        assert_eq!(pace.to_string(), text);
    }
    assert_eq!("1.5GB/s".parse(), Ok(Pace::Rate(1_500_000_000)));
    let error = |text: &str| text.parse::<Pace>().unwrap_err();
    assert_eq!(error("0B/s"), PaceError::NoRate);
    assert_eq!(error("4X/s"), PaceError::Rate(SizeError::Unit));
    assert_eq!(error("idle:0ms"), PaceError::OutOfRange);
    for wrong in ["", "fast", "100MiB", "idle", "idle:", "latency:5"] {
        assert!(wrong.parse::<Pace>().is_err(), "{wrong}");
    }
}

#[test]
fn full_speed_never_waits_and_a_rate_is_kept() {
    let quiet = |_| Requests::default();
    let full = moved(&mut Pacer::new(Pace::Full), 1.0, quiet);
    assert!(full > 600.0 * MIB as f64, "{full}");
    for rate in [MIB / 2, 10 * MIB, 300 * MIB] {
        let kept = moved(&mut Pacer::new(Pace::Rate(rate)), 10.0, quiet) / rate as f64;
        assert!((0.99..1.02).contains(&kept), "{rate}: {kept}");
    }
}

#[test]
fn what_was_not_moved_is_not_made_up_for() {
    let mut pacer = Pacer::new(Pace::Rate(MIB));
    pacer.spend(2 * MIB, seconds(1.0));
    assert_eq!(pacer.next(seconds(1.0), &Requests::default()), seconds(2.0));
    // After a long pause, one piece does not earn credit for the pause: the next one waits as long as any.
    pacer.spend(2 * MIB, seconds(50.0));
    assert_eq!(
        pacer.next(seconds(50.0), &Requests::default()),
        seconds(51.0)
    );
}

#[test]
fn idle_means_that_no_request_has_been_under_way_for_a_while() {
    let mut pacer = Pacer::new(Pace::Idle(seconds(0.2)));
    let mut requests = Requests {
        under_way: 1,
        last_ended: seconds(3.0),
        ..Requests::default()
    };
    assert!(pacer.next(seconds(9.0), &requests) > seconds(9.0));
    requests.under_way = 0;
    assert_eq!(pacer.next(seconds(3.1), &requests), seconds(3.2));
    assert!(pacer.next(seconds(3.3), &requests) <= seconds(3.3));
}

/// Simulates a hundred reads a second, of which `share` of the rate (MiB/s) are slow.
fn reading(share: impl Fn(f64) -> f64, length: f64) -> f64 {
    let mut pacer = Pacer::new(Pace::Latency(seconds(0.02)));
    let mut random = fastrand::Rng::with_seed(1);
    let (mut done, mut at) = (Requests::default(), seconds(100.0));
    let mut rates = Vec::new();
    let end = at + seconds(length);
    while at < end {
        at += seconds(0.01);
        done.reads += 1;
        let rate = pacer.rate().unwrap() as f64 / MIB as f64;
        done.slow += u64::from(random.f64() < share(rate));
        pacer.next(at, &done);
        rates.push(rate);
    }
    let second_half = &rates[rates.len() / 2..];
    second_half.iter().sum::<f64>() / second_half.len() as f64
}

#[test]
fn a_latency_target_finds_the_rate_that_reads_bear() {
    // Reads bear 60 MiB/s: above that, one of ten is slow.
    let found = reading(|rate| if rate > 60.0 { 0.1 } else { 0.002 }, 400.0);
    assert!((35.0..61.0).contains(&found), "{found}");
    let nothing_helps = reading(|_| 0.1, 60.0);
    assert!(nothing_helps < 2.0, "{nothing_helps}");
    let nothing_hurts = reading(|_| 0.0, 200.0);
    assert!(nothing_hurts > 500.0, "{nothing_hurts}");
}

#[test]
fn nobody_reads_so_the_rate_soon_does_not_matter() {
    let mut pacer = Pacer::new(Pace::Latency(seconds(0.02)));
    let rate = moved(&mut pacer, 20.0, |_| Requests::default());
    assert!(rate > 200.0 * MIB as f64, "{rate}");
}
