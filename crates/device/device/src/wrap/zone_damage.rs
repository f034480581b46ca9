//! Kinds of damage to a zone, for tests.

use super::faults::{Fault, Faults, Plan};
use crate::{MemoryDrive, ZonedDevice};
use std::io;
use std::sync::Arc;
use zone::{ZoneCommand, ZoneCondition, ZoneId, ZoneKind, ZoneResult};

/// Damage to one zone of a drive in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZoneDamage {
    /// The zone is offline.
    Offline,
    /// The zone is read-only.
    ReadOnly,
    /// Every read of the zone fails; writes succeed.
    Unreadable,
    /// The write pointer has gone back to an earlier position.
    WentBack,
    /// The zone is full, with zeros at its end.
    Filled,
}

impl ZoneDamage {
    /// All kinds of damage.
    pub const ALL: [Self; 5] = [
        Self::Offline,
        Self::ReadOnly,
        Self::Unreadable,
        Self::WentBack,
        Self::Filled,
    ];

    /// Applies the damage to `zone`, for good. For [`Self::WentBack`], `kept` returns how many of the given
    /// number of written blocks remain.
    ///
    /// Conventional zones can neither go back nor be filled.
    ///
    /// # Errors
    /// The drive's error, if the zone is damaged already.
    pub fn strike(
        self,
        drive: &Faults<Arc<MemoryDrive>>,
        zone: ZoneId,
        kept: impl FnOnce(u64) -> u64,
    ) -> ZoneResult<()> {
        let inner = drive.inner();
        let is_conventional = inner.geometry().kind(zone) == ZoneKind::Conventional;
        match self {
            Self::Offline => inner.set_condition(zone, ZoneCondition::Offline),
            Self::ReadOnly => inner.set_condition(zone, ZoneCondition::ReadOnly),
            Self::Unreadable => {
                drive.add(Plan {
                    command: Some(ZoneCommand::Read),
                    zone: Some(zone),
                    kth: 1,
                    for_ever: true,
                    fault: Fault::Io(io::ErrorKind::Other),
                });
                Ok(())
            }
            Self::WentBack | Self::Filled if is_conventional => Ok(()),
            Self::WentBack => {
                let block = u64::from(inner.geometry().block_size);
                let written = inner.report_zone(zone)?.write_pointer / block;
                let mut data = vec![0; (kept(written).min(written) * block) as usize];
                let start = inner.geometry().start(zone);
                if data.is_empty() {
                    return inner.reset(zone);
                }
                inner.read(start, &mut data)?;
                inner.reset(zone)?;
                inner.write(start, &data)
            }
            Self::Filled => inner.finish(zone),
        }
    }
}
