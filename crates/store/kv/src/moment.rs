//! A snapshot of a database for reading, whatever is written meanwhile.
//!
//! It is one walk over all keys, which keeps the state at its beginning; a lookup seeks in it. So engines need no
//! snapshots, and files that are kept for the walk are released together with it.

use crate::{Cursor, Kv, Result, Scan};
use runtime::sync::Mutex;

/// Read access to a database, in its current state or in a snapshot.
pub trait View: Sync {
    /// A key's value.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// All keys from `lower` up to `upper` (exclusive), in order.
    fn scan(&self, lower: &[u8], upper: Option<&[u8]>) -> Scan<'_>;
}

impl View for Kv {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        (**self).get(key)
    }

    fn scan(&self, lower: &[u8], upper: Option<&[u8]>) -> Scan<'_> {
        (**self).scan(lower, upper)
    }
}

/// A snapshot of a database. Its files and rows in memory are kept until this is dropped.
pub struct Moment<'a>(Mutex<State<'a>>);

struct State<'a> {
    all: Scan<'a>,
    /// Number of the user that moved the walk last: a lookup or a [`Walk`].
    user: u64,
    users: u64,
}

impl State<'_> {
    fn new_user(&mut self) -> u64 {
        self.users += 1;
        self.users
    }
}

impl Kv {
    /// A snapshot of the current state.
    pub fn moment(&self) -> Moment<'_> {
        Moment(Mutex::new(State {
            all: (**self).scan(&[], None),
            user: 0,
            users: 0,
        }))
    }
}

impl View for Moment<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut state = self.0.lock();
        state.user = state.new_user();
        state.all.seek(key);
        let found = state.all.next().transpose()?;
        let found = found.filter(|(next, _)| next == key);
        Ok(found.map(|(_, value)| value))
    }

    fn scan(&self, lower: &[u8], upper: Option<&[u8]>) -> Scan<'_> {
        Box::new(Walk {
            moment: &self.0,
            user: self.0.lock().new_user(),
            next: lower.to_vec(),
            upper: upper.map(<[u8]>::to_vec),
            is_over: false,
        })
    }
}

/// A walk over a range of keys of a [`Moment`], which shares its position with others.
struct Walk<'a, 'b> {
    moment: &'a Mutex<State<'b>>,
    user: u64,
    /// The lowest key that has not been returned yet.
    next: Vec<u8>,
    upper: Option<Vec<u8>>,
    is_over: bool,
}

impl Cursor for Walk<'_, '_> {
    fn seek(&mut self, key: &[u8]) {
        let mut state = self.moment.lock();
        // A new number makes the next step seek.
        self.user = state.new_user();
        drop(state);
        self.next = key.to_vec();
        self.is_over = false;
    }
}

impl Iterator for Walk<'_, '_> {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let mut state = self.moment.lock();
        if state.user != self.user {
            state.user = self.user;
            state.all.seek(&self.next);
        }
        let found = state.all.next().filter(|row| match (row, &self.upper) {
            (Ok((key, _)), Some(upper)) => key < upper,
            _ => true,
        });
        match &found {
            Some(Ok((key, _))) => {
                self.next.clone_from(key);
                self.next.push(0);
            }
            Some(Err(_)) | None => self.is_over = true,
        }
        found
    }
}
