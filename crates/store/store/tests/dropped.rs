//! A store that is dropped without an unmount ends its threads: a thread that still ran while the process exits would
//! use a database that is being destroyed.

use crate::common::*;
use device::{MemoryDrive, ZonedDevice};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;
use store::{MountOptions, Store};
use zone_alloc::{Candidate, CleaningPolicy, Pressure, ZoneView};

/// A policy that sends a message, takes 200 ms, and chooses no zone.
#[derive(Debug)]
struct Slow(Mutex<Sender<()>>);

impl CleaningPolicy for Slow {
    fn choose(&self, _: ZoneView<'_>, _: Pressure) -> Option<Candidate> {
        self.0.lock().unwrap().send(()).unwrap();
        sleep(Duration::from_millis(200));
        None
    }
}

#[test]
fn the_last_handle_ends_the_cleaner() {
    let drive = Arc::new(MemoryDrive::new(geometry(40)).unwrap());
    let device: Arc<dyn ZonedDevice> = drive.clone();
    mkfs(&device);
    for in_a_round in [false, true] {
        let (sender, began) = channel();
        let policy = Arc::new(Slow(Mutex::new(sender)));
        let options = MountOptions {
            background: true,
            policy: policy.clone(),
            ..options()
        };
        let store = Store::mount(device.clone(), options).unwrap();
        let other = store.clone();
        drop(store);
        if in_a_round {
            other.clean_start().unwrap();
            began.recv().unwrap();
        }
        drop(other);
        assert_eq!(Arc::strong_count(&policy), 1, "the cleaner has it still");
        assert_eq!(Arc::strong_count(&drive), 2, "the store has it still");
    }
}
