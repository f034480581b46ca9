//! Verifies the contents of one zone: extents, gaps between them, and damage.

use crate::error::{Error, Result};
use crate::format::label::COPIES;
use crate::instance::Instance;
use crate::placed::Placed;
use serde::Serialize;
use zone::ZoneAddress;

/// Bytes of a zone that belong to no readable extent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Gap {
    /// Address of the first byte.
    pub at: ZoneAddress,
    /// Number of bytes.
    pub bytes: u64,
    /// Number of extents that certainly were there, by the numbers of their neighbours. Other bytes of a gap
    /// are from incomplete puts, or, at the zone's end, of extents with damaged metadata, which look the same.
    pub lost: u64,
}

/// The extents, gaps and damage that [`check`] has found in a zone.
#[derive(Clone, Default, Debug)]
pub struct Checked {
    /// Extents, the oldest first.
    pub extents: Vec<Placed>,
    /// The gaps between and after the extents.
    pub gaps: Vec<Gap>,
    /// Damage found in metadata and, in a deep check, data, and places that cannot be read.
    pub damage: Vec<Error>,
}

impl Checked {
    /// Whether every extent that certainly was there can be read.
    pub fn is_clean(&self) -> bool {
        self.damage.is_empty() && self.gaps.iter().all(|gap| gap.lost == 0)
    }
}

/// Reads the zone from its start and compares that with the extents that back pointers lead to. If `deep`, also
/// reads every extent and compares its checksum.
///
/// # Errors
/// The drive's error, except that a place cannot be read, which is damage.
pub fn check(instance: &Instance, deep: bool) -> Result<Checked> {
    let mut checked = Checked::default();
    let block = u64::from(instance.device().geometry().block_size);
    let mut end = u64::from(COPIES) * block;
    let mut number = 0;
    for extent in instance.forward() {
        let extent = match extent {
            Err(error) if error.is_unreadable() => {
                checked.damage.push(error);
                continue;
            }
            extent => extent?,
        };
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
            Err(error) if error.is_damage() || error.is_unreadable() => checked.damage.push(error),
            Err(error) => return Err(error),
        }
    }
    if deep {
        for extent in &checked.extents {
            match instance.get(extent.lba, extent.length) {
                Ok(_) => {}
                Err(error @ Error::Drive(_)) if !error.is_unreadable() => return Err(error),
                Err(error) => checked.damage.push(error),
            }
        }
    }
    Ok(checked)
}
