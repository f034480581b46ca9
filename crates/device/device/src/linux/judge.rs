//! Maps the kernel's few error numbers to the errors of the standards. Pure.
//!
//! Most refusals of a zoned drive arrive as `EIO`, and the zone's condition afterwards tells which refusal it
//! was. Exceeded limits have error numbers of their own if the driver passes them on.

use super::ranges::before_write;
use rustix::io::Errno;
use std::io;
use zone::{
    Geometry, ZoneAddress, ZoneCommand, ZoneCondition, ZoneDescriptor, ZoneError, ZoneResult,
};

/// A command that the drive refused.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refusal {
    pub command: ZoneCommand,
    /// The zone of the command, and for a write its offset.
    pub at: ZoneAddress,
    /// For a write, the number of bytes that were not written.
    pub length: u64,
}

/// The error, if the error number alone determines it.
pub(super) fn by_code(
    refusal: &Refusal,
    geometry: &Geometry,
    error: &io::Error,
) -> Option<ZoneError> {
    match Errno::from_io_error(error)? {
        Errno::TOOMANYREFS => Some(too_many_open(refusal, geometry)),
        Errno::OVERFLOW => Some(too_many_active(refusal, geometry)),
        _ => None,
    }
}

/// The error that the zone's condition after the refusal explains; `None` if it explains none. `all` reports
/// all zones, to count those that a limit applies to.
pub(super) fn by_condition(
    refusal: &Refusal,
    geometry: &Geometry,
    told: &ZoneDescriptor,
    all: impl FnOnce() -> ZoneResult<Vec<ZoneDescriptor>>,
) -> ZoneResult<Option<ZoneError>> {
    let &Refusal {
        command,
        at,
        length,
    } = refusal;
    let zone = at.zone;
    let invalid = ZoneError::InvalidTransition {
        command,
        zone,
        condition: told.condition,
    };
    Ok(match (command, told.condition) {
        (_, ZoneCondition::Offline) => Some(ZoneError::Offline { command, zone }),
        (ZoneCommand::Read | ZoneCommand::Flush, _) => None,
        (_, ZoneCondition::ReadOnly) => Some(ZoneError::ReadOnly { command, zone }),
        (_, ZoneCondition::NotWritePointer) => None,
        (ZoneCommand::Write, _) => match before_write(geometry, told, at, length) {
            // A write pointer inside the range: the drive wrote a part of it before it failed.
            Some(ZoneError::NotAtWritePointer { .. })
                if (at.offset..=at.offset + length).contains(&told.write_pointer) =>
            {
                None
            }
            Some(error) => Some(error),
            None => beyond_limits(refusal, geometry, told, all)?,
        },
        (ZoneCommand::Open, ZoneCondition::Full)
        | (ZoneCommand::Close, ZoneCondition::Full | ZoneCondition::Empty) => Some(invalid),
        (ZoneCommand::Open | ZoneCommand::Finish, _) => {
            beyond_limits(refusal, geometry, told, all)?
        }
        _ => None,
    })
}

/// Whether a limit explains that a zone which is not open could not be opened.
fn beyond_limits(
    refusal: &Refusal,
    geometry: &Geometry,
    told: &ZoneDescriptor,
    all: impl FnOnce() -> ZoneResult<Vec<ZoneDescriptor>>,
) -> ZoneResult<Option<ZoneError>> {
    if told.condition.is_open() {
        return Ok(None);
    }
    let all = all()?;
    let count = |counts: fn(ZoneCondition) -> bool| {
        let counted = all.iter().filter(|zone| counts(zone.condition)).count();
        u32::try_from(counted).unwrap_or(u32::MAX)
    };
    let reached = |limit: u32, count: u32| limit != 0 && count >= limit;
    // The drive would have closed implicitly open zones for this one; only an explicit open on zloop does not.
    let held = count(match refusal.command {
        ZoneCommand::Open => ZoneCondition::is_open,
        _ => |condition| condition == ZoneCondition::ExplicitOpen,
    });
    Ok(
        if told.condition == ZoneCondition::Empty
            && reached(geometry.max_active_zones, count(ZoneCondition::is_active))
        {
            Some(too_many_active(refusal, geometry))
        } else if reached(geometry.max_open_zones, held) {
            Some(too_many_open(refusal, geometry))
        } else {
            None
        },
    )
}

const fn too_many_open(refusal: &Refusal, geometry: &Geometry) -> ZoneError {
    ZoneError::TooManyOpenZones {
        command: refusal.command,
        zone: refusal.at.zone,
        limit: geometry.max_open_zones,
    }
}

const fn too_many_active(refusal: &Refusal, geometry: &Geometry) -> ZoneError {
    ZoneError::TooManyActiveZones {
        command: refusal.command,
        zone: refusal.at.zone,
        limit: geometry.max_active_zones,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zone::{ZoneId, ZoneKind};

    const BLOCK: u64 = 4096;

    fn geometry() -> Geometry {
        Geometry {
            block_size: BLOCK as u32,
            zone_size: 16 * BLOCK,
            zone_capacity: 12 * BLOCK,
            zone_count: 4,
            conventional_zones: 0,
            conventional_parts: 1,
            sequential_kind: ZoneKind::SequentialWriteRequired,
            max_open_zones: 1,
            max_active_zones: 2,
            max_append_bytes: 0,
        }
    }

    fn told(id: u32, condition: ZoneCondition, blocks: u64) -> ZoneDescriptor {
        ZoneDescriptor {
            id: ZoneId(id),
            kind: ZoneKind::SequentialWriteRequired,
            condition,
            size: 16 * BLOCK,
            capacity: 12 * BLOCK,
            write_pointer: blocks * BLOCK,
        }
    }

    /// The kind of error for a refused command on zone 0, at block `block` for `blocks` blocks.
    fn word(
        command: ZoneCommand,
        (block, blocks): (u64, u64),
        (condition, pointer): (ZoneCondition, u64),
        others: &[ZoneCondition],
    ) -> &'static str {
        let refusal = Refusal {
            command,
            at: ZoneAddress::new(ZoneId(0), block * BLOCK),
            length: blocks * BLOCK,
        };
        let zone = told(0, condition, pointer);
        let others = others.iter().map(|condition| told(1, *condition, 1));
        let all = std::iter::once(zone).chain(others).collect();
        match by_condition(&refusal, &geometry(), &zone, || Ok(all)).unwrap() {
            Some(error) => error.kind(),
            None => "-",
        }
    }

    #[test]
    fn a_refused_write_is_explained_by_the_condition() {
        use ZoneCondition::*;
        let word = |place, zone, others: &[_]| word(ZoneCommand::Write, place, zone, others);
        assert_eq!(word((0, 1), (Full, 12), &[]), "full");
        assert_eq!(word((0, 1), (ReadOnly, 0), &[]), "read-only");
        assert_eq!(word((0, 1), (Offline, 0), &[]), "offline");
        assert_eq!(word((5, 1), (Closed, 2), &[]), "not at write pointer");
        assert_eq!(word((5, 1), (Empty, 0), &[]), "not at write pointer");
        assert_eq!(word((2, 11), (Closed, 2), &[]), "boundary");
        // The zone's condition allows the write: the medium failed, or wrote a part.
        assert_eq!(word((2, 2), (ImplicitOpen, 2), &[ExplicitOpen]), "-");
        assert_eq!(word((2, 2), (ImplicitOpen, 3), &[]), "-");
        assert_eq!(word((2, 1), (Closed, 2), &[ImplicitOpen]), "-");
        // Limits.
        assert_eq!(word((2, 1), (Closed, 2), &[ExplicitOpen]), "too many open");
        assert_eq!(
            word((0, 1), (Empty, 0), &[Closed, Closed]),
            "too many active"
        );
        assert_eq!(word((0, 1), (Empty, 0), &[Closed]), "-");
    }

    #[test]
    fn a_refused_transition_is_explained_by_the_condition() {
        use ZoneCommand::*;
        use ZoneCondition::*;
        let word = |command, condition, others: &[_]| word(command, (0, 0), (condition, 0), others);
        assert_eq!(word(Open, Full, &[]), "invalid");
        assert_eq!(word(Close, Empty, &[]), "invalid");
        assert_eq!(word(Close, Full, &[]), "invalid");
        assert_eq!(word(Close, Closed, &[]), "-");
        assert_eq!(word(Reset, ReadOnly, &[]), "read-only");
        assert_eq!(word(Reset, Closed, &[]), "-");
        assert_eq!(word(Open, Empty, &[ExplicitOpen]), "too many open");
        assert_eq!(word(Open, Empty, &[ImplicitOpen]), "too many open");
        assert_eq!(word(Open, Empty, &[Closed]), "-");
        assert_eq!(word(Finish, Empty, &[Closed, Closed]), "too many active");
        assert_eq!(word(Read, Offline, &[]), "offline");
        assert_eq!(word(Read, ReadOnly, &[]), "-");
    }

    #[test]
    fn limits_have_error_numbers_of_their_own() {
        let refusal = Refusal {
            command: ZoneCommand::Open,
            at: ZoneAddress::new(ZoneId(0), 0),
            length: 0,
        };
        let word =
            |errno: Errno| by_code(&refusal, &geometry(), &errno.into()).map(|error| error.kind());
        assert_eq!(word(Errno::TOOMANYREFS), Some("too many open"));
        assert_eq!(word(Errno::OVERFLOW), Some("too many active"));
        assert_eq!(word(Errno::IO), None);
    }
}
