//! The order of puts over all instances of a consumer.

use runtime::sync::atomic::AtomicU64;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Gives each put a number larger than all before. Clones share the counter: if the instances of one consumer
/// have clones of one sequence, their extents are ordered over all zones.
#[derive(Clone, Debug, Default)]
pub struct Sequence(Arc<AtomicU64>);

impl Sequence {
    /// Takes the number of the next put.
    pub(crate) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    /// Records a number found on the drive: later numbers are larger.
    pub fn seen(&self, order: u64) {
        self.0.fetch_max(order.saturating_add(1), Ordering::Relaxed);
    }

    /// The number of the next put, without taking it.
    pub fn upcoming(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
