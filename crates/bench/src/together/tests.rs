use super::*;
use crate::error::Error;
use crate::watch::Nobody;
use std::cell::RefCell;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

thread_local! {
    /// Dropped when the thread ends.
    static UNTIL_THE_END: RefCell<Option<Sender<()>>> = const { RefCell::new(None) };
}

#[test]
fn no_thread_begins_another_operation_after_an_error() {
    let (ends, ended) = channel();
    let (ends, ended) = (Mutex::new(Some(ends)), Mutex::<Receiver<()>>::new(ended));
    let begun = AtomicU64::new(0);
    let result = together(2, 100, &Nobody, |number| {
        begun.fetch_add(1, Ordering::Relaxed);
        if number == 0 {
            UNTIL_THE_END.set(ends.lock().unwrap().take());
            return Err(Error::Interrupted);
        }
        // Returns when the thread with the error has ended.
        let _ = ended.lock().unwrap().recv();
        Ok(())
    });
    assert!(matches!(result, Err(Error::Interrupted)));
    assert!(begun.into_inner() <= 2);
}
