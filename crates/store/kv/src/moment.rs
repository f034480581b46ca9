//! A database as it was at a moment, whatever is written meanwhile.
//!
//! One walk through all keys does everything: it keeps the state of its beginning, and a look-up seeks. So an engine
//! needs no snapshots for this, and what the walk keeps from being given back goes with it.

use crate::{Cursor, Kv, Result, Scan};
use runtime::sync::Mutex;

/// What can be read of a database, as it is now or as it was.
pub trait View: Sync {
    /// A key's value.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// All keys from `lower` up to but without `upper`, in order.
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

/// The state of the database when this was made. What it had in files and memory stays until this is dropped.
pub struct Moment<'a>(Mutex<State<'a>>);

struct State<'a> {
    all: Scan<'a>,
    /// Of whoever has moved the walk last; look-ups have numbers, too.
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
    /// The database as it is now, to be read later.
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

/// A walk through a part of the keys, beside others.
struct Walk<'a, 'b> {
    moment: &'a Mutex<State<'b>>,
    user: u64,
    /// The least key that has not been answered.
    next: Vec<u8>,
    upper: Option<Vec<u8>>,
    is_over: bool,
}

impl Cursor for Walk<'_, '_> {
    fn seek(&mut self, key: &[u8]) {
        let mut state = self.moment.lock();
        // The next step begins at its key.
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
