//! Requests that are under way.

use super::ring::Part;
use drive_model::Time;

/// The kinds of requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Reads an object.
    Read,
    /// Writes an object.
    Write,
    /// Reads what a lost part is rebuilt from, then writes it to another drive.
    Rebuild {
        /// The drive that gets it.
        to: u32,
        /// The part that is rebuilt.
        part: Part,
    },
}

/// A request that is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Whether it reads, writes or rebuilds.
    pub kind: Kind,
    /// When it began.
    pub begun: Time,
    /// The proxy that it goes through.
    pub proxy: u32,
    /// The partition of its object.
    pub partition: u32,
    /// The client that waits for the answer.
    pub client: Option<u32>,
    /// Parts that it needs for its answer.
    pub needed: u32,
    /// Parts received, or durable.
    pub there: u32,
    /// Parts under way.
    pub under_way: u32,
    /// Whether its latency is counted.
    pub counts: bool,
    /// Whether it has been answered.
    pub answered: bool,
}

/// Requests under way by number; numbers are reused.
#[derive(Clone, Default, Debug)]
pub struct Requests {
    all: Vec<Option<Request>>,
    unused: Vec<u32>,
    /// Users' requests among them.
    users: usize,
}

impl Requests {
    /// Adds a request, and returns its number.
    pub fn begin(&mut self, request: Request) -> u32 {
        self.users += usize::from(!matches!(request.kind, Kind::Rebuild { .. }));
        match self.unused.pop() {
            Some(number) => {
                self.all[number as usize] = Some(request);
                number
            }
            None => {
                self.all.push(Some(request));
                self.all.len() as u32 - 1
            }
        }
    }

    /// The request of this number.
    pub fn get(&mut self, number: u32) -> Option<&mut Request> {
        self.all.get_mut(number as usize)?.as_mut()
    }

    /// Removes a request, all parts of which have ended.
    pub fn end(&mut self, number: u32) {
        if let Some(request) = self.all.get_mut(number as usize).and_then(Option::take) {
            self.users -= usize::from(!matches!(request.kind, Kind::Rebuild { .. }));
            self.unused.push(number);
        }
    }

    /// Users' requests under way.
    pub const fn of_users(&self) -> usize {
        self.users
    }
}
