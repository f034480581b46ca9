//! Requests that are under way.

use super::ring::Part;
use drive_model::Time;

/// What is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Reads an object.
    Read,
    /// Writes one.
    Write,
    /// Reads what makes a lost part again; then writes it to another drive.
    Rebuild {
        /// Where it is written.
        to: u32,
        /// What is made again.
        part: Part,
    },
}

/// A request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// What is asked.
    pub kind: Kind,
    /// When it began.
    pub begun: Time,
    /// By which proxy.
    pub proxy: u32,
    /// Of which partition.
    pub partition: u32,
    /// Who asks for the next one when this one has its answer.
    pub client: Option<u32>,
    /// Parts that have to be there before it is answered.
    pub needed: u32,
    /// Parts that are there.
    pub there: u32,
    /// Parts under way.
    pub under_way: u32,
    /// Whether it is counted.
    pub counts: bool,
    /// Whether it has its answer.
    pub answered: bool,
}

/// Requests by their numbers, which are used again.
#[derive(Clone, Default, Debug)]
pub struct Requests {
    all: Vec<Option<Request>>,
    unused: Vec<u32>,
    /// Of users.
    users: usize,
}

impl Requests {
    /// A new one: its number.
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

    /// One that is under way.
    pub fn get(&mut self, number: u32) -> Option<&mut Request> {
        self.all.get_mut(number as usize)?.as_mut()
    }

    /// It has ended with all its parts.
    pub fn end(&mut self, number: u32) {
        if let Some(request) = self.all.get_mut(number as usize).and_then(Option::take) {
            self.users -= usize::from(!matches!(request.kind, Kind::Rebuild { .. }));
            self.unused.push(number);
        }
    }

    /// Those of users that have not ended.
    pub const fn of_users(&self) -> usize {
        self.users
    }
}
