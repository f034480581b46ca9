//! The last requests and their outcome, without anything that is private to their senders.

use serde::Serialize;
use std::collections::VecDeque;

/// Requests kept.
const KEPT: usize = 200;
/// Most characters of a resource.
const LONGEST: usize = 256;

/// A request that was answered.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// End of the answer, Unix time in milliseconds.
    pub time_ms: u64,
    /// The method; all methods that S3 does not have are one.
    pub method: &'static str,
    /// The operation, or that the request was refused before its operation was known.
    pub operation: &'static str,
    /// Bucket and key as the request had them, without the query, which may hold a signature.
    pub resource: String,
    /// HTTP status.
    pub status: u16,
    /// Whether the answer was sent to its end.
    pub is_whole: bool,
    /// Bytes of the request's body.
    pub received_bytes: u64,
    /// Bytes of the answer's body.
    pub sent_bytes: u64,
    /// From the request's head to the last byte of the answer.
    pub milliseconds: f64,
}

/// The last requests.
#[derive(Default)]
pub(crate) struct Log(VecDeque<Entry>);

impl Log {
    pub(crate) fn add(&mut self, mut entry: Entry) {
        if let Some((end, _)) = entry.resource.char_indices().nth(LONGEST) {
            entry.resource.truncate(end);
            entry.resource.push('…');
        }
        self.0.truncate(KEPT - 1);
        self.0.push_front(entry);
    }

    /// The newest first.
    pub(crate) fn told(&self) -> Vec<Entry> {
        self.0.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_are_kept_and_long_names_are_not() {
        let mut log = Log::default();
        for time_ms in 0..1000 {
            log.add(Entry {
                time_ms,
                method: "GET",
                operation: "GetObject",
                resource: "é".repeat(1000),
                status: 200,
                is_whole: true,
                received_bytes: 0,
                sent_bytes: 0,
                milliseconds: 1.0,
            });
        }
        let told = log.told();
        assert_eq!((told.len(), told[0].time_ms), (KEPT, 999));
        assert_eq!(told[0].resource.chars().count(), LONGEST + 1);
    }
}
