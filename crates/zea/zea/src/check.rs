//! Everything that one zone holds, verified.

use crate::error::{Error, Result};
use crate::format::label::COPIES;
use crate::instance::Instance;
use crate::placed::Placed;
use serde::Serialize;
use zone::ZoneAddress;

/// Bytes of a zone that belong to no extent that can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Gap {
    /// Where they begin.
    pub at: ZoneAddress,
    /// How many there are.
    pub bytes: u64,
    /// Extents that certainly were there, by the numbers of their neighbours. What is left is of puts that were
    /// cut short, or, at the zone's end, of extents whose metadata is damaged: these look the same.
    pub lost: u64,
}

/// What [`check`] found.
#[derive(Clone, Default, Debug)]
pub struct Checked {
    /// Extents, the oldest first.
    pub extents: Vec<Placed>,
    /// What is between them.
    pub gaps: Vec<Gap>,
    /// What is not as it was written.
    pub damage: Vec<Error>,
}

impl Checked {
    /// Whether everything that certainly was there can be read.
    pub fn is_clean(&self) -> bool {
        self.damage.is_empty() && self.gaps.iter().all(|gap| gap.lost == 0)
    }
}

/// Reads the zone from its start, compares that with what back pointers lead to, and, if it is to be `deep`, gets
/// every extent and compares its checksum.
///
/// # Errors
/// The drive's.
pub fn check(instance: &Instance, deep: bool) -> Result<Checked> {
    let mut checked = Checked::default();
    let block = u64::from(instance.device().geometry().block_size);
    let mut end = u64::from(COPIES) * block;
    let mut number = 0;
    for extent in instance.forward() {
        let extent = extent?;
        if extent.at.offset > end {
            checked.gaps.push(Gap {
                at: ZoneAddress::new(instance.zone(), end),
                bytes: extent.at.offset - end,
                lost: extent.number.saturating_sub(number),
            });
        }
        end = extent.at.offset + extent.stored;
        number = extent.number + 1;
        checked.extents.push(extent);
    }
    let written = instance.written();
    if written > end {
        checked.gaps.push(Gap {
            at: ZoneAddress::new(instance.zone(), end),
            bytes: written - end,
            lost: 0,
        });
    }
    for found in instance.backward() {
        match found {
            Ok(_) => {}
            Err(error) if error.is_damage() => checked.damage.push(error),
            Err(error) => return Err(error),
        }
    }
    if deep {
        for extent in &checked.extents {
            match instance.get(extent.lba, extent.length) {
                Ok(_) => {}
                Err(Error::Drive(error)) => return Err(Error::Drive(error)),
                Err(error) => checked.damage.push(error),
            }
        }
    }
    Ok(checked)
}
