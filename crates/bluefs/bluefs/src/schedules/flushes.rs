//! Tests of flushes that callers share: no caller returns before a flush that began after its write has finished.

use crate::slot::{Class, Slot};
use appender::Flusher;
use runtime::schedules::{explore, pause, spawn};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use zone::{ByteOffset, ZoneCommand, ZoneError, ZoneId, ZoneResult};

/// Sets of numbered writes, as bits: those written, and those that a flush has made durable.
#[derive(Default)]
struct Ledger {
    written: u32,
    kept: u32,
    /// Covered by a flush that failed, so it is not known whether the drive has them.
    lost: u32,
    flushing: bool,
    flushes: u32,
    failed: bool,
}

/// A [`Flusher`] over a drive that only keeps a ledger.
#[derive(Default)]
struct Paper {
    flusher: Flusher,
    ledger: Mutex<Ledger>,
    /// The number of the flush that fails; 0: none.
    fails: u32,
}

impl Paper {
    fn write(&self, number: u32) {
        self.ledger.lock().unwrap().written |= 1 << number;
    }

    fn is_kept(&self, number: u32) -> bool {
        self.ledger.lock().unwrap().kept & (1 << number) != 0
    }

    fn flush(&self) -> ZoneResult<()> {
        self.flusher.flush(|| self.drive_flushes())
    }

    /// Does one flush: makes durable, when it ends, what was written when it began.
    fn drive_flushes(&self) -> ZoneResult<()> {
        let (number, covered) = {
            let mut ledger = self.ledger.lock().unwrap();
            assert!(!ledger.failed, "a flush behind one that failed");
            assert!(!ledger.flushing, "two flushes at once");
            ledger.flushing = true;
            ledger.flushes += 1;
            (ledger.flushes, ledger.written)
        };
        pause();
        pause();
        let mut ledger = self.ledger.lock().unwrap();
        ledger.flushing = false;
        if number == self.fails {
            ledger.failed = true;
            ledger.lost |= covered & !ledger.kept;
            return Err(ZoneError::Io {
                command: ZoneCommand::Flush,
                at: ByteOffset(0),
                source: Arc::new(std::io::ErrorKind::Other.into()),
            });
        }
        ledger.kept |= covered & !ledger.lost;
        Ok(())
    }
}

#[test]
fn nobody_goes_on_before_a_flush_that_began_behind_his_write() {
    static FEWEST: AtomicU32 = AtomicU32::new(u32::MAX);
    explore(10_000, 10_000, || {
        let paper = Arc::new(Paper::default());
        let writer = |first: u32| {
            let paper = paper.clone();
            spawn(move || {
                for number in first..first + 3 {
                    paper.write(number);
                    paper.flush().unwrap();
                    assert!(paper.is_kept(number), "{number} is not durable");
                }
            })
        };
        let writers = [writer(0), writer(3), writer(6)];
        writers.into_iter().for_each(|w| w.join().unwrap());
        let flushes = paper.ledger.lock().unwrap().flushes;
        FEWEST.fetch_min(flushes, Ordering::Relaxed);
    });
    let fewest = FEWEST.load(Ordering::Relaxed);
    assert!(fewest < 9, "never was a flush shared");
    println!("9 writes took {fewest} flushes at the least");
}

#[test]
fn a_flush_that_failed_is_the_last() {
    for fails in 1..4 {
        explore(3_000, 10_000, move || {
            let paper = Arc::new(Paper {
                fails,
                ..Paper::default()
            });
            let writer = |first: u32| {
                let paper = paper.clone();
                spawn(move || {
                    let mut failed = false;
                    for number in first..first + 3 {
                        paper.write(number);
                        let done = paper.flush();
                        assert!(!failed || done.is_err(), "failed, and then not");
                        assert!(done.is_err() || paper.is_kept(number));
                        failed = done.is_err();
                    }
                })
            };
            let writers = [writer(0), writer(3), writer(6)];
            writers.into_iter().for_each(|w| w.join().unwrap());
        });
    }
}

/// The mark in a log record covers only what is durable of its run.
#[test]
fn what_is_said_to_be_durable_is() {
    static FURTHEST: AtomicU32 = AtomicU32::new(0);
    explore(10_000, 10_000, || {
        let paper = Arc::new(Paper::default());
        let slot = Arc::new(Slot::new(ZoneId(1), Class::Wal, 1 << 20, 0, 1, 1));
        let syncer = || {
            let paper = paper.clone();
            spawn(move || (0..3).for_each(|_| paper.flush().unwrap()))
        };
        let others = [syncer(), syncer()];
        for number in 1..6 {
            paper.write(number);
            slot.wrote(number.into(), paper.flusher.window());
            let durable = slot.durable(paper.flusher.window()) as u32;
            let all_kept = (1..=durable).all(|number| paper.is_kept(number));
            assert!(all_kept, "{durable} is said to be durable");
            FURTHEST.fetch_max(durable, Ordering::Relaxed);
        }
        others.into_iter().for_each(|w| w.join().unwrap());
    });
    assert!(
        FURTHEST.load(Ordering::Relaxed) > 2,
        "nothing was ever said"
    );
}
