//! A database whose files are in two copies: what is damaged in one of them is read from the other.
//!
//! An engine compares blocks of its files with checksums that the file system below does not know. When it finds one
//! damaged, both copies of all files are compared as the file system can, the right ones are read from then on, and
//! the engine is asked once more. Its compactions ask for that themselves.

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

/// In the place of a count: the last time was in vain, and nobody tries again.
const IN_VAIN: u64 = u64::MAX;

/// Both copies of the files.
struct Copies {
    fs: BlueFs,
    /// How often comparing them was of use. Every read of the database looks here, and waits for nobody.
    healed: AtomicU64,
    /// Held while they are compared, which takes as long as reading all files twice.
    comparing: Mutex<()>,
}

impl Copies {
    fn count(&self) -> u64 {
        self.healed.load(Ordering::Acquire)
    }

    /// Whether asking again is worth it. `before` is what [`Self::count`] said before the engine was asked.
    fn heal(&self, before: u64, error: &Error) -> bool {
        let _comparing = self.comparing.lock();
        let times = self.count();
        if times == IN_VAIN {
            return false;
        }
        if before != times {
            // Somebody else has compared them meanwhile.
            return true;
        }
        tracing::warn!(%error, "comparing both copies of the database's files");
        let found = self.fs.repair_copies();
        let is_better = matches!(found, Ok(1..));
        if let Err(error) = found {
            tracing::error!(%error, "copies of the database's files could not be compared");
        }
        let now = if is_better { times + 1 } else { IN_VAIN };
        self.healed.store(now, Ordering::Release);
        is_better
    }
}

impl Healing {
    pub fn over(inner: Box<dyn Database>, fs: &BlueFs) -> Box<dyn Database> {
        let copies = Arc::new(Copies {
            fs: fs.clone(),
            healed: AtomicU64::new(0),
            comparing: Mutex::new(()),
        });
        let (known, asked) = (AtomicU64::new(0), copies.clone());
        inner.on_damage(Box::new(move |error| {
            // What was met may have been healed for somebody else since.
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

    fn stored_bytes(&self) -> u64 {
        self.inner.stored_bytes()
    }

    fn kept_bytes(&self) -> u64 {
        self.inner.kept_bytes()
    }

    fn is_compacting(&self) -> bool {
        self.inner.is_compacting()
    }

    fn property(&self, name: &str) -> Option<String> {
        self.inner.property(name)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.inner.close()
    }
}

/// A walk that goes on where it met damage, on the same state.
struct Walk<'a> {
    inner: Scan<'a>,
    copies: &'a Copies,
    before: u64,
    /// The least key that has not been answered.
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
