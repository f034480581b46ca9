//! Commands on a zone as a whole: open, close, finish, reset, and the medium's own failures.
//!
//! `check_*` returns whether the command is allowed and changes nothing, so that a drive can update its medium
//! first; the method without `check_` applies the change.

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

    /// Checks whether `zone` may be finished; returns whether that changes anything.
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

    /// Makes `zone` full. [`Self::check_finish`] must have allowed it.
    pub fn finish(&mut self, zone: ZoneId) {
        self.set(zone, ZoneCondition::Full);
        self.zones[zone.index()].write_pointer = self.geometry.capacity(zone);
    }

    /// Checks whether `zone` may be reset; returns whether that changes anything on the medium.
    pub fn check_reset(&self, zone: ZoneId) -> ZoneResult<bool> {
        self.check_sequential(ZoneCommand::Reset, zone)?;
        Ok(self.state(zone).condition != ZoneCondition::Empty)
    }

    /// Makes `zone` empty. [`Self::check_reset`] must have allowed it.
    pub fn reset(&mut self, zone: ZoneId) {
        self.set(zone, ZoneCondition::Empty);
        self.zones[zone.index()].write_pointer = 0;
    }

    /// Checks a failure of the medium that makes `zone` read-only or, for good, offline; returns false if it is
    /// so already. Any other condition is refused.
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

    /// Applies a failure of the medium to `zone`. [`Self::check_failure`] must have allowed it.
    pub fn fail(&mut self, zone: ZoneId, to: ZoneCondition) {
        self.set(zone, to);
    }

    /// Acquires the resources for a write to `zone` or its opening: a place under the active limit for an empty
    /// zone, and one under the open limit, for which the zone whose implicit opening is longest ago is closed
    /// if necessary. The caller sets the condition.
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
