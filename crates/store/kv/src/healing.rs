//! A database whose files are in two copies: damage in one of them is repaired from the other.
//!
//! An engine verifies blocks of its files with checksums that the file system below does not know. When it reports
//! damage, both copies of all files are compared by what the file system does know, the right ones are read from then
//! on, and the call is retried once. The engine's compactions request this themselves.

use crate::{Batch, Cursor, Database, Durability, Error, Result, Scan};
use bluefs::BlueFs;
use cache::CacheStatistics;
use runtime::sync::Mutex;
use runtime::sync::atomic::AtomicU64;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(crate) struct Healing {
    inner: Box<dyn Database>,
    copies: Arc<Copies>,
}

/// The two copies of the files, and the results of comparing them.
struct Copies {
    fs: BlueFs,
    /// How often a comparison has repaired something. Read by every call to the database, without a lock.
    healed: AtomicU64,
    /// Held during a comparison, which takes as long as reading all files twice. True if the last one was in vain: then
    /// no other one is made until [`Database::heal_again`].
    in_vain: Mutex<bool>,
}

impl Copies {
    fn count(&self) -> u64 {
        self.healed.load(Ordering::Acquire)
    }

    /// Whether a retry is worthwhile. `before` is [`Self::count`] from before the call that failed.
    fn heal(&self, before: u64, error: &Error) -> bool {
        let mut in_vain = self.in_vain.lock();
        let times = self.count();
        if before != times {
            // Another thread has compared them meanwhile.
            return true;
        }
        if *in_vain {
            return false;
        }
        tracing::warn!(%error, "comparing both copies of the database's files");
        let found = self.fs.repair_copies();
        let is_better = matches!(found, Ok(1..));
        if let Err(error) = found {
            tracing::error!(%error, "copies of the database's files could not be compared");
        }
        if is_better {
            self.healed.store(times + 1, Ordering::Release);
        }
        *in_vain = !is_better;
        is_better
    }
}

impl Healing {
    pub fn over(inner: Box<dyn Database>, fs: &BlueFs) -> Box<dyn Database> {
        let copies = Arc::new(Copies {
            fs: fs.clone(),
            healed: AtomicU64::new(0),
            in_vain: Mutex::new(false),
        });
        let (known, asked) = (AtomicU64::new(0), copies.clone());
        inner.on_damage(Box::new(move |error| {
            // The damage may have been repaired for another call since.
            let is_better = asked.heal(known.load(Ordering::Acquire), error);
            known.store(asked.count(), Ordering::Release);
            is_better
        }));
        Box::new(Self { inner, copies })
    }

    fn asked<T>(&self, ask: impl Fn(&dyn Database) -> Result<T>) -> Result<T> {
        let before = self.copies.count();
        match ask(&*self.inner) {
            Err(error @ Error::Corruption { .. }) if self.copies.heal(before, &error) => {
                ask(&*self.inner)
            }
            answer => answer,
        }
    }
}

impl Database for Healing {
    fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        self.inner.write(batch, durability)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.asked(|database| database.get(key))
    }

    fn scan(&self, lower: &[u8], upper: Option<&[u8]>) -> Scan<'_> {
        Box::new(Walk {
            before: self.copies.count(),
            inner: self.inner.scan(lower, upper),
            copies: &self.copies,
            next: lower.to_vec(),
        })
    }

    fn cache(&self) -> CacheStatistics {
        self.inner.cache()
    }

    fn flush(&self) -> Result<()> {
        self.inner.flush()
    }

    fn compact(&self) -> Result<()> {
        self.inner.compact()
    }

    fn settle(&self, patience: Duration) -> Result<bool> {
        self.inner.settle(patience)
    }

    fn flush_bytes(&self) -> u64 {
        self.inner.flush_bytes()
    }

    fn has_levels(&self) -> bool {
        self.inner.has_levels()
    }

    fn stored_bytes(&self) -> u64 {
        self.inner.stored_bytes()
    }

    fn kept_bytes(&self) -> u64 {
        self.inner.kept_bytes()
    }

    fn is_compacting(&self) -> bool {
        self.inner.is_compacting()
    }

    fn heal_again(&self) {
        *self.copies.in_vain.lock() = false;
    }

    fn property(&self, name: &str) -> Option<String> {
        self.inner.property(name)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.inner.close()
    }
}

/// A walk that continues after damage has been repaired, in the same state.
struct Walk<'a> {
    inner: Scan<'a>,
    copies: &'a Copies,
    before: u64,
    /// The lowest key that has not been returned yet.
    next: Vec<u8>,
}

impl Cursor for Walk<'_> {
    fn seek(&mut self, key: &[u8]) {
        self.next = key.to_vec();
        self.inner.seek(key);
    }
}

impl Iterator for Walk<'_> {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut found = self.inner.next();
        if let Some(Err(error @ Error::Corruption { .. })) = &found
            && self.copies.heal(self.before, error)
        {
            self.before = self.copies.count();
            self.inner.seek(&self.next);
            found = self.inner.next();
        }
        if let Some(Ok((key, _))) = &found {
            self.next.clone_from(key);
            self.next.push(0);
        }
        found
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use bluefs::{FormatOptions, MountOptions, Role};
    use device::{MemoryDrive, ZonedDevice};
    use zone::{Geometry, ZoneAddress, ZoneId, ZoneKind};
    use zone_alloc::ZonePool;

    const FILE: &str = "/000001.sst";
    const DATA: [u8; 8192] = [0x5a; 8192];

    /// A database whose only value is the start of a file: fewer bytes than the file system has a checksum for.
    struct OneFile(BlueFs);

    impl Database for OneFile {
        fn write(&self, _: &Batch, _: Durability) -> Result<()> {
            Ok(())
        }
        fn get(&self, _: &[u8]) -> Result<Option<Vec<u8>>> {
            let mut data = vec![0; 600];
            let read = self
                .0
                .open(FILE)
                .and_then(|file| file.read_at(0, &mut data));
            let message = "not what was written".to_owned();
            match read.is_ok() && data == DATA[..600] {
                true => Ok(Some(data)),
                false => Err(Error::Corruption { message }),
            }
        }
        fn scan(&self, _: &[u8], _: Option<&[u8]>) -> Scan<'_> {
            unreachable!("nobody scans")
        }
        fn flush(&self) -> Result<()> {
            Ok(())
        }
        fn compact(&self) -> Result<()> {
            Ok(())
        }
        fn settle(&self, _: Duration) -> Result<bool> {
            Ok(true)
        }
        fn stored_bytes(&self) -> u64 {
            0
        }
        fn property(&self, _: &str) -> Option<String> {
            None
        }
        fn close(self: Box<Self>) -> Result<()> {
            Ok(())
        }
    }

    fn geometry() -> Geometry {
        Geometry {
            block_size: 512,
            zone_size: 32 << 10,
            zone_capacity: 24 << 10,
            zone_count: 100,
            conventional_zones: 0,
            conventional_parts: 1,
            sequential_kind: ZoneKind::SequentialWriteRequired,
            max_open_zones: 0,
            max_active_zones: 0,
            max_append_bytes: 0,
        }
    }

    /// Places of both copies of the file's bytes.
    fn copies(drive: &MemoryDrive) -> Vec<ZoneAddress> {
        let g = drive.geometry();
        let mut found = Vec::new();
        for zone in g.zones() {
            let mut bytes = vec![0; g.zone_capacity as usize];
            drive.read(g.start(zone), &mut bytes).unwrap();
            let at = bytes.windows(DATA.len()).position(|part| part == DATA);
            found.extend(at.map(|at| ZoneAddress::new(zone, at as u64)));
        }
        found
    }

    #[test]
    fn copies_are_compared_again_when_that_is_allowed() {
        let drive = Arc::new(MemoryDrive::new(geometry()).unwrap());
        let options = FormatOptions {
            uuid: [3; 16],
            role: Role::Alone,
            copies: 2,
            force: false,
        };
        BlueFs::format(&*drive, &options).unwrap();
        let report = drive.report(ZoneId(0), 100).unwrap();
        let pool = Arc::new(ZonePool::new(geometry(), &report));
        let fs = BlueFs::mount(drive.clone(), pool, MountOptions::default()).unwrap();
        let mut file = fs.create(FILE).unwrap();
        file.append(&DATA).unwrap();
        file.sync().unwrap();
        file.close().unwrap();
        let copies = copies(&drive);
        assert_eq!(copies.len(), 2);
        let flip = |at: ZoneAddress| drive.decay(at, 1, |bytes| bytes[0] ^= 1);
        copies.iter().for_each(|at| flip(*at));
        let database = Healing::over(Box::new(OneFile(fs.clone())), &fs);
        let is_right = || database.get(b"").is_ok();
        assert!(!is_right());
        // One copy is right again, but copies are not compared again.
        let read_first = fs.extents(FILE).unwrap()[0].at;
        let other = copies.iter().find(|at| at.zone != read_first.zone).unwrap();
        flip(*other);
        assert!(!is_right() && !is_right());
        database.heal_again();
        assert!(is_right() && is_right());
    }
}
