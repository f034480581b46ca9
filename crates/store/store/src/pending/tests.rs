//! While one thread waits for a transaction to be durable, others write batches too.

use crate::format::copied::CopiedRecord;
use crate::format::key;
use crate::summary_writer::Why;
use crate::test_drive;
use crate::{Attributes, Transaction};
use device::changed::Change;
use device::{MemoryDrive, ZonedDevice};
use std::sync::{Arc, Mutex};
use zone::ZoneResult;

type Hook = Box<dyn FnOnce() + Send>;

/// Calls a hook once, before a flush.
#[derive(Default)]
struct Meanwhile(Mutex<Option<Hook>>);

impl Change<MemoryDrive> for Meanwhile {
    fn flush(&self, drive: &MemoryDrive) -> ZoneResult<()> {
        let hook = self.0.lock().unwrap().take();
        hook.into_iter().for_each(|hook| hook());
        drive.flush()
    }
}

/// While one thread records that all rows are in summaries, another waits for its transaction, whose batch would take
/// that back before it is written.
#[test]
fn a_wait_begins_no_batch_while_it_is_recorded_that_all_is_copied() {
    let (device, store) = test_drive::changed(Meanwhile::default());
    let mut writer = store.writer(None).unwrap();
    writer.write(&[7; 100_000]).unwrap();
    let mut transaction = Transaction::new();
    transaction.put("c", "a", writer.finish().unwrap(), Attributes::new());
    let pending = store.commit_readable(transaction).unwrap();
    let inner = &store.inner;
    inner.write_summaries(inner.data.of(0), Why::All);
    let thread = Arc::new(Mutex::new(None));
    let started = thread.clone();
    let hook: Hook = Box::new(move || {
        let waits = std::thread::spawn(move || pending.wait().unwrap());
        // Without the lock it would be through by then.
        std::thread::sleep(std::time::Duration::from_millis(50));
        *started.lock().unwrap() = Some(waits);
    });
    *device.change.0.lock().unwrap() = Some(hook);
    inner.tell_all_copied().unwrap();
    let waits = thread.lock().unwrap().take().unwrap();
    waits.join().unwrap();
    // The next commit has rows in no summary, so the record must not say that all are.
    test_drive::put(&store, "b");
    let row = inner.kv().unwrap().get(key::SUPER_SUMMARIES).unwrap();
    assert!(!CopiedRecord::decode(&row.unwrap()).unwrap().is_all);
}
