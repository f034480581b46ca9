//! A model at the wall's pace, quickened so that tests are short. Nothing here depends on how quick the
//! machine is.

use drive_model::{LANE_DEPTH, Lba, Paced, Request, Span, Time, profile};
use std::thread::scope;

fn paced(name: &str, speed_up: f64) -> Paced<u64> {
    Paced::new(
        profile::model(name, 1).unwrap(),
        Time::START,
        speed_up,
        runtime::Runtime::system(),
    )
}

#[test]
fn every_lane_gets_its_own_answers_when_they_are_due() {
    let drive = paced("seagate-cmr", 20_000.0);
    scope(|scope| {
        for number in 0..4u64 {
            let drive = &drive;
            let lane = drive.lane();
            scope.spawn(move || {
                for n in 0..200 {
                    let lba = Lba((number * 200 + n) * 1_000_003 % 900_000_000);
                    drive.submit(lane, n, Request::read(lba, 1), drive.now());
                }
                // What the drive is not asked is answered too.
                drive.answer(lane, 200);
                drive.close(lane);
            });
            scope.spawn(move || {
                let mut seen = [false; 201];
                let mut last = Time::START;
                while let Some(due) = drive.wait(lane) {
                    assert!(!std::mem::replace(&mut seen[due.with as usize], true));
                    assert_eq!(due.completion.is_none(), due.with == 200);
                    if let Some(done) = due.completion {
                        assert_eq!(done.result, Ok(()));
                        assert!(done.at <= drive.now() && done.at >= last);
                        assert!(done.latency() > Span::ZERO);
                        last = done.at;
                    }
                }
                assert_eq!(seen, [true; 201]);
                // The lane is gone, and nothing more can be asked in it.
                drive.submit(lane, 0, Request::flush(), drive.now());
                assert_eq!(drive.wait(lane), None);
            });
        }
    });
    let (model, _) = drive.finish();
    assert_eq!(model.statistics().reads, 800);
}

/// Who asks for more than fits waits, and nothing is lost.
#[test]
fn a_lane_holds_so_many_requests_and_no_more() {
    let drive = paced("ssd-15gb", 1_000.0);
    let lane = drive.lane();
    let count = LANE_DEPTH as u64 * 3;
    scope(|scope| {
        scope.spawn(|| {
            for n in 0..count {
                drive.submit(lane, n, Request::write(Lba(n), 1), drive.now());
            }
            drive.close(lane);
        });
        let mut answers = 0;
        while drive.wait(lane).is_some() {
            answers += 1;
        }
        assert_eq!(answers, count);
    });
}

/// A stop ends all waiting, for answers and for room; what was under way is done in the model.
#[test]
fn a_stop_ends_all_waiting() {
    let drive = paced("seagate-cmr", 0.001);
    let (busy, idle) = (drive.lane(), drive.lane());
    scope(|scope| {
        scope.spawn(|| {
            for n in 0..LANE_DEPTH as u64 + 5 {
                drive.submit(busy, n, Request::read(Lba(n * 800_000), 1), drive.now());
            }
            // The last ones were taken only because of the stop.
            assert_eq!(drive.wait(busy), None);
        });
        scope.spawn(|| assert_eq!(drive.wait(idle), None));
        while drive.late(Time::START) < std::time::Duration::from_millis(20) {
            std::thread::yield_now();
        }
        drive.stop();
    });
    let (model, end) = drive.finish();
    assert_eq!(model.statistics().reads, LANE_DEPTH as u64 + 5);
    assert!(end.seconds() > 1.0);
}

/// Time without requests passes in the model: a drive that cleans when idle does.
#[test]
fn idle_time_passes() {
    let drive = paced("st5000as0011", 100_000.0);
    let lane = drive.lane();
    for n in 0..20 {
        drive.submit(lane, n, Request::write(Lba(n * 5_000_000), 1), drive.now());
        assert!(drive.wait(lane).is_some());
    }
    // Ten minutes of the drive's.
    let until = drive.now() + Span::from_seconds(600.0);
    while drive.now() < until {
        std::thread::yield_now();
    }
    let (model, now) = drive.finish();
    assert!(now >= until);
    assert_eq!(model.statistics().cleaning.bands, 20);
}
