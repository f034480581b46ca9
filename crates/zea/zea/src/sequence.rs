//! The order of puts over all instances of a consumer.

use runtime::sync::atomic::AtomicU64;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Gives each put a number that is larger than those before. Clones share it: give the instances of one
/// consumer clones of one sequence, and their extents are ordered over all zones.
#[derive(Clone, Debug, Default)]
pub struct Sequence(Arc<AtomicU64>);

impl Sequence {
    /// The number of the next put.
    pub(crate) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    /// A number was found on the drive: later ones are larger.
    pub fn seen(&self, order: u64) {
        self.0.fetch_max(order.saturating_add(1), Ordering::Relaxed);
    }

    /// The number that the next put gets.
    pub fn upcoming(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
