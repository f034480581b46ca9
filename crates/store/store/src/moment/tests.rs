//! Writers that wait for readers whose moments were given up.

use crate::{Error, MountOptions, Store, test_drive};
use kv_log::KvLog;
use runtime::{Clock, Runtime, SimulatedClock};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Tells each look at the time to a listener, if there is one. Stands still, so that writers wait for as long as it takes.
#[derive(Default)]
struct Told {
    clock: SimulatedClock,
    listener: Mutex<Option<Sender<()>>>,
}

impl Clock for Told {
    fn unix_micros(&self) -> u64 {
        self.clock.unix_micros()
    }

    fn now(&self) -> Duration {
        if let Some(listener) = &*self.listener.lock().unwrap() {
            listener.send(()).unwrap();
        }
        self.clock.now()
    }

    fn wait_until(&self, moment: Duration) {
        self.clock.wait_until(moment);
    }
}

/// Two writers need space: the first gives the moment up, and the second waits for its reader as well.
#[test]
fn a_writer_waits_for_a_reader_that_another_writer_gave_up() {
    let clock = Arc::new(Told::default());
    let options = MountOptions {
        background: false,
        runtime: Runtime::seeded(0).with_clock(clock.clone()),
        ..MountOptions::new(KvLog)
    };
    let store = Store::mount(test_drive::drive(), options).unwrap();
    let (begins, has_begun) = channel();
    let (looks, has_looked) = channel();
    std::thread::scope(|scope| {
        let store = &store;
        scope.spawn(move || {
            let read = |moment: &super::Moment<'_>| {
                begins.send(()).unwrap();
                // The second writer is about to wait.
                has_looked.recv().unwrap();
                Ok::<_, Error>(moment.collections().len())
            };
            let read = store.at_moment(read);
            assert_eq!(read.unwrap(), 1);
        });
        has_begun.recv().unwrap();
        assert!(store.inner.give_up_moments("the first"));
        *clock.listener.lock().unwrap() = Some(looks.clone());
        let has_left = store.inner.give_up_moments_and_wait("the second");
        *clock.listener.lock().unwrap() = None;
        // Ends the reader, should nobody have looked.
        _ = looks.send(());
        assert!(has_left);
    });
    assert!(!store.inner.give_up_moments_and_wait("nobody is there"));
}
