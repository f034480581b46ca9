//! Commands on a zone as a whole: open, close, finish, reset, and the medium's own failures.
//!
//! `check_*` answers whether the command may run and changes nothing, so that a drive can put the
//! change on its medium first; the method without `check_` runs it.

use super::{ZoneCommand, ZoneCondition, ZoneError, ZoneId, ZoneKind, ZoneResult, ZoneTable};

impl ZoneTable {
    /// Opens `zone` explicitly. An explicitly open zone stays as it is.
    pub fn open(&mut self, zone: ZoneId) -> ZoneResult<()> {
        self.check_sequential(ZoneCommand::Open, zone)?;
        if self.state(zone).condition == ZoneCondition::Full {
            return Err(self.invalid(ZoneCommand::Open, zone));
        }
        self.acquire_open(ZoneCommand::Open, zone)?;
        self.set(zone, ZoneCondition::ExplicitOpen);
        Ok(())
    }

    /// Closes an open zone: closed, or empty if nothing was written. A closed zone stays closed.
    pub fn close(&mut self, zone: ZoneId) -> ZoneResult<()> {
        self.check_sequential(ZoneCommand::Close, zone)?;
        match self.state(zone).condition {
            ZoneCondition::Closed => Ok(()),
            condition if condition.is_open() => {
                self.close_open(zone);
                Ok(())
            }
            _ => Err(self.invalid(ZoneCommand::Close, zone)),
        }
    }

    /// Whether `zone` may be finished, and whether that would change anything.
    pub fn check_finish(&self, zone: ZoneId) -> ZoneResult<bool> {
        self.check_sequential(ZoneCommand::Finish, zone)?;
        match self.state(zone).condition {
            ZoneCondition::Full => Ok(false),
            ZoneCondition::Empty => {
                self.check_active_limit(ZoneCommand::Finish, zone)?;
                Ok(true)
            }
            _ => Ok(true),
        }
    }

    /// Makes `zone` full. Only after [`Self::check_finish`] allowed it.
    pub fn finish(&mut self, zone: ZoneId) {
        self.set(zone, ZoneCondition::Full);
        self.zones[zone.index()].write_pointer = self.geometry.capacity(zone);
    }

    /// Whether `zone` may be reset, and whether that would change anything on the medium.
    pub fn check_reset(&self, zone: ZoneId) -> ZoneResult<bool> {
        self.check_sequential(ZoneCommand::Reset, zone)?;
        Ok(self.state(zone).condition != ZoneCondition::Empty)
    }

    /// Makes `zone` empty. Only after [`Self::check_reset`] allowed it.
    pub fn reset(&mut self, zone: ZoneId) {
        self.set(zone, ZoneCondition::Empty);
        self.zones[zone.index()].write_pointer = 0;
    }

    /// What the medium's failure of `zone` would leave: read-only, or offline for good. `None` if
    /// it already is so. Any other condition is not the medium's to set, and refused.
    pub fn check_failure(&self, zone: ZoneId, to: ZoneCondition) -> ZoneResult<bool> {
        self.check_zone(ZoneCommand::Report, zone)?;
        let from = self.state(zone).condition;
        match to {
            ZoneCondition::ReadOnly | ZoneCondition::Offline if from == to => Ok(false),
            ZoneCondition::ReadOnly if from != ZoneCondition::Offline => Ok(true),
            ZoneCondition::Offline => Ok(true),
            _ => Err(self.invalid(ZoneCommand::Report, zone)),
        }
    }

    /// The medium of `zone` fails. Only after [`Self::check_failure`] allowed it.
    pub fn fail(&mut self, zone: ZoneId, to: ZoneCondition) {
        self.set(zone, to);
    }

    /// Takes the resources that a write into `zone`, or its opening, needs: room under the active
    /// limit for an empty zone, and room under the open limit, for which the zone that was opened
    /// implicitly longest ago is closed. The caller sets the condition.
    pub(super) fn acquire_open(&mut self, command: ZoneCommand, zone: ZoneId) -> ZoneResult<()> {
        let condition = self.state(zone).condition;
        if condition.is_open() {
            return Ok(());
        }
        if condition == ZoneCondition::Empty {
            self.check_active_limit(command, zone)?;
        }
        let limit = self.limit(self.geometry.max_open_zones);
        if limit.is_some_and(|limit| self.open_zones() >= limit) {
            let Some(oldest) = self.implicit.first_key_value().map(|(_, zone)| *zone) else {
                let limit = self.geometry.max_open_zones;
                return Err(ZoneError::TooManyOpenZones {
                    command,
                    zone,
                    limit,
                });
            };
            self.close_open(oldest);
        }
        Ok(())
    }

    fn check_active_limit(&self, command: ZoneCommand, zone: ZoneId) -> ZoneResult<()> {
        let limit = self.limit(self.geometry.max_active_zones);
        if limit.is_some_and(|limit| self.active_zones() >= limit) {
            let limit = self.geometry.max_active_zones;
            return Err(ZoneError::TooManyActiveZones {
                command,
                zone,
                limit,
            });
        }
        Ok(())
    }

    fn limit(&self, zones: u32) -> Option<usize> {
        let required = self.geometry.sequential_kind == ZoneKind::SequentialWriteRequired;
        (required && zones != 0).then_some(zones as usize)
    }

    fn close_open(&mut self, zone: ZoneId) {
        let state = self.state(zone);
        let untouched = state.write_pointer == 0 && !state.writing;
        self.set(
            zone,
            if untouched {
                ZoneCondition::Empty
            } else {
                ZoneCondition::Closed
            },
        );
    }

    fn check_sequential(&self, command: ZoneCommand, zone: ZoneId) -> ZoneResult<()> {
        self.check_zone(command, zone)?;
        self.check_not_broken(command, zone)?;
        if self.geometry.kind(zone) == ZoneKind::Conventional {
            return Err(self.invalid(command, zone));
        }
        Ok(())
    }

    pub(super) fn invalid(&self, command: ZoneCommand, zone: ZoneId) -> ZoneError {
        ZoneError::InvalidTransition {
            command,
            zone,
            condition: self.state(zone).condition,
        }
    }
}
