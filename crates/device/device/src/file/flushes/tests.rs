use super::*;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

#[test]
fn a_flush_that_began_before_does_not_count() {
    let flushes = Flushes::default();
    let mut wanted = 0;
    flushes
        .run(|| {
            wanted = flushes.next();
            Ok(())
        })
        .unwrap();
    assert!(flushes.finished() < wanted);
    flushes.run(|| Ok(())).unwrap();
    assert!(flushes.finished() >= wanted);
}

#[test]
fn after_a_flush_that_failed_none_succeeds() {
    let flushes = Flushes::default();
    let failed = || Err(io::ErrorKind::StorageFull.into());
    std::thread::scope(|threads| {
        let mut other = None;
        let told = flushes.run(|| {
            // The host has told this one, which takes its time to say so.
            let other = other.insert(threads.spawn(|| flushes.run(|| Ok(()))));
            for _ in 0..20 {
                if !other.is_finished() {
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
            failed()
        });
        let other = other.unwrap().join().unwrap();
        for done in [told, other, flushes.run(|| Ok(()))] {
            assert_eq!(done.unwrap_err().kind(), io::ErrorKind::StorageFull);
        }
    });
    assert_eq!(flushes.finished(), 0);
}

#[test]
fn one_that_waits_for_a_flush_is_not_served_by_it() {
    let flushes = Flushes::default();
    let begun = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let first = flushes.run(|| {
            let other = || {
                begun.store(true, Ordering::SeqCst);
                flushes.run(|| Ok(()))
            };
            threads.spawn(move || other().unwrap());
            while !begun.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            Ok(())
        });
        first.unwrap();
    });
    assert_eq!(flushes.finished(), 2);
}
