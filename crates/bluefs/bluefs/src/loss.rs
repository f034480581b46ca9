//! A loss by a repair.

use crate::{Error, Result};
use serde::Serialize;
use std::collections::BTreeSet;

/// What a repair does to a file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Loss {
    /// The file's name, as far as it is known.
    pub path: String,
    /// The loss, in words that follow the name.
    pub what: String,
}

pub(crate) fn loss(path: &str, what: impl Into<String>) -> Loss {
    let (path, what) = (path.to_owned(), what.into());
    Loss { path, what }
}

/// The losses of going on behind `damage`, sorted: logs that end before it, and those `known` from the journal.
pub(crate) fn losses(damage: &[Error], known: Vec<Loss>) -> Vec<Loss> {
    let truncated = damage.iter().filter_map(|error| match error {
        Error::LogDamaged { path, length, .. } => {
            Some(loss(path, format!("is truncated to {length} bytes")))
        }
        _ => None,
    });
    let all: BTreeSet<Loss> = truncated.chain(known).collect();
    all.into_iter().collect()
}

/// What a mount for writing may give up: [`crate::BlueFs::damage`] and [`crate::BlueFs::losses`] of a read-only mount.
#[derive(Clone, Debug)]
pub struct GivenUp {
    /// The damage.
    pub damage: Vec<Error>,
    /// The losses, sorted.
    pub losses: Vec<Loss>,
}

impl GivenUp {
    /// Fails if other damage is there by now, or other losses come of it.
    pub(crate) fn check(&self, damage: &[Error], known: Option<&Vec<Loss>>) -> Result<()> {
        // Errors of a drive cannot be compared, but what tells of them can.
        let told = |damage: &[Error]| -> BTreeSet<String> {
            damage.iter().map(|error| format!("{error:?}")).collect()
        };
        let found = losses(damage, known.cloned().unwrap_or_default());
        match found == self.losses && told(damage) == told(&self.damage) {
            true => Ok(()),
            false => Err(Error::OtherDamage),
        }
    }
}
