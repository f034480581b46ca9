//! A die, a channel or a processor, which does one thing at a time.

use crate::time::{Span, Time};
use serde::{Deserialize, Serialize};

/// Priority classes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// Reads of the host.
    Urgent = 0,
    /// Writes of the host, cleaning and erasing, which they wait for.
    Normal = 1,
    /// Filling up zones that are finished: only the request that asked for it waits.
    Background = 2,
}

/// A single server with priorities: each class is served in order of arrival, the more urgent ones first. The end of
/// a job is known on arrival: a more urgent job that comes later does not change a time that was returned, only the
/// times of later jobs.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Server {
    /// For each class, the time at which all its jobs and all more urgent ones are done.
    until: [Time; 3],
}

impl Server {
    /// Adds a job that arrives at `now` and takes `takes`; returns its end. A job of a lower class that is in
    /// progress is suspended after `patience`.
    pub fn serve(&mut self, class: Class, now: Time, takes: Span, patience: Span) -> Time {
        let class = class as usize;
        let mut begin = now.max(self.until[class]);
        if begin == now {
            begin += self.until[2].since(now).min(patience);
        }
        let end = begin + takes;
        self.until[class] = end;
        for lesser in &mut self.until[class + 1..] {
            *lesser = (*lesser).max(begin) + takes;
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_urgent_waits_for_its_equals_and_a_little_for_the_rest() {
        let us = |micros: u64| Span::from_nanos(micros * 1000);
        let at = |micros: u64| Time::START + us(micros);
        let mut server = Server::default();
        assert_eq!(server.serve(Class::Normal, at(0), us(100), us(10)), at(100));
        assert_eq!(server.serve(Class::Normal, at(0), us(100), us(10)), at(200));
        assert_eq!(server.serve(Class::Urgent, at(50), us(5), us(10)), at(65));
        assert_eq!(server.serve(Class::Urgent, at(50), us(5), us(10)), at(70));
        // What was put aside ends later.
        assert_eq!(server.serve(Class::Normal, at(60), us(10), us(10)), at(220));
        assert_eq!(
            server.serve(Class::Background, at(0), us(1), us(0)),
            at(221)
        );
        // Nothing is under way any more.
        assert_eq!(server.serve(Class::Urgent, at(300), us(5), us(10)), at(305));
    }
}
