//! Random numbers, from the host or from a seed.

use parking_lot::Mutex;
use rustix::rand::{GetRandomFlags, getrandom};
use std::hash::{BuildHasher, RandomState};
use std::io;

pub(crate) enum Random {
    System,
    Seeded(Mutex<fastrand::Rng>),
}

impl Random {
    pub fn seeded(seed: u64) -> Self {
        Self::Seeded(Mutex::new(fastrand::Rng::with_seed(seed)))
    }

    pub fn number(&self) -> u64 {
        match self {
            // The standard library takes its keys from the host's random source.
            Self::System => RandomState::new().hash_one(()),
            Self::Seeded(generator) => generator.lock().u64(..),
        }
    }

    pub fn fill(&self, bytes: &mut [u8]) -> io::Result<()> {
        match self {
            Self::System => {
                // The kernel never returns fewer bytes than asked for up to 256.
                for piece in bytes.chunks_mut(256) {
                    getrandom(piece, GetRandomFlags::empty())?;
                }
            }
            Self::Seeded(generator) => generator.lock().fill(bytes),
        }
        Ok(())
    }
}
