//! Logs commands that the drive does not answer.

use device::watch::{UnderWay, Waiting};
use runtime::Runtime;
use runtime::sync::{Condvar, Mutex};
use runtime::thread::JoinHandle;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A command that takes longer is logged.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// Interval of the checks.
const INTERVAL: Duration = Duration::from_secs(5);

/// An event to log.
#[derive(PartialEq, Eq, Debug)]
enum News {
    Waits(Waiting),
    /// The command has ended, with or without success; its age is from the last check before.
    Ended(Waiting),
}

/// Commands logged as waiting: each is logged once when it takes long, and once when it has ended.
#[derive(Default)]
struct Said(BTreeMap<u64, Waiting>);

impl Said {
    fn news(&mut self, waiting: Vec<Waiting>) -> Vec<News> {
        let now: BTreeMap<u64, Waiting> = waiting.into_iter().map(|w| (w.number, w)).collect();
        let ended = self
            .0
            .iter()
            .filter(|(number, _)| !now.contains_key(number));
        let begun = now
            .iter()
            .filter(|(number, _)| !self.0.contains_key(number));
        let ended = ended.map(|(_, waiting)| News::Ended(*waiting));
        let news = ended.chain(begun.map(|(_, waiting)| News::Waits(*waiting)));
        let news = news.collect();
        self.0 = now;
        news
    }
}

#[derive(Default)]
struct Stop {
    stopped: Mutex<bool>,
    changed: Condvar,
}

/// The thread that checks. Dropping this stops it and waits for it.
pub(crate) struct Watchdog {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// `slow` counts the commands that took long, once they have ended.
    pub fn start(
        runtime: &Runtime,
        under_way: Arc<UnderWay>,
        slow: Arc<AtomicU64>,
    ) -> std::io::Result<Self> {
        let stop = Arc::new(Stop::default());
        let mine = stop.clone();
        let thread = runtime.spawn("watchdog", move || {
            let mut said = Said::default();
            let mut stopped = mine.stopped.lock();
            while !*stopped {
                mine.changed.wait_for(&mut stopped, INTERVAL);
                for news in said.news(under_way.longer_than(PATIENCE)) {
                    if matches!(news, News::Ended(_)) {
                        slow.fetch_add(1, Ordering::Relaxed);
                    }
                    tell(&news);
                }
            }
        })?;
        let thread = Some(thread);
        Ok(Self { stop, thread })
    }
}

fn tell(news: &News) {
    let zone = |w: &Waiting| {
        w.zone
            .map_or_else(|| "-".to_owned(), |zone| zone.to_string())
    };
    match news {
        News::Waits(w) => tracing::warn!(
            command = %w.command, zone = zone(w), seconds = w.age.as_secs(),
            "the drive does not answer a command"
        ),
        News::Ended(w) => tracing::warn!(
            command = %w.command, zone = zone(w), at_least_seconds = w.age.as_secs(),
            "the drive has answered a command that took long"
        ),
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        *self.stop.stopped.lock() = true;
        self.stop.changed.notify_all();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the watchdog's thread had panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zone::ZoneCommand;

    #[test]
    fn each_command_is_named_once_when_it_waits_and_once_when_it_ends() {
        let waiting = |number, seconds| Waiting {
            number,
            command: ZoneCommand::Flush,
            zone: None,
            age: Duration::from_secs(seconds),
        };
        let mut said = Said::default();
        assert_eq!(said.news(vec![]), []);
        assert_eq!(
            said.news(vec![waiting(1, 11)]),
            [News::Waits(waiting(1, 11))]
        );
        assert_eq!(
            said.news(vec![waiting(1, 16), waiting(2, 10)]),
            [News::Waits(waiting(2, 10))]
        );
        assert_eq!(
            said.news(vec![waiting(2, 15)]),
            [News::Ended(waiting(1, 16))]
        );
        assert_eq!(said.news(vec![]), [News::Ended(waiting(2, 15))]);
    }
}
