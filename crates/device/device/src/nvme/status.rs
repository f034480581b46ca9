//! Maps NVMe status codes to the errors of the standards. They are more specific than the kernel's error
//! numbers.

use super::passthrough::{Failure, Status};
use crate::linux::ranges::boundary;
use std::fmt;
use std::io;
use std::sync::Arc;
use zone::{Geometry, ZoneAddress, ZoneCommand, ZoneDescriptor, ZoneError};

/// Command-specific codes of the Zoned Namespace Command Set (status code type 1).
const ZONE_BOUNDARY: u16 = 0x1b8;
const ZONE_FULL: u16 = 0x1b9;
const ZONE_READ_ONLY: u16 = 0x1ba;
const ZONE_OFFLINE: u16 = 0x1bb;
const ZONE_INVALID_WRITE: u16 = 0x1bc;
const TOO_MANY_ACTIVE: u16 = 0x1bd;
const TOO_MANY_OPEN: u16 = 0x1be;
const INVALID_TRANSITION: u16 = 0x1bf;

/// A command that the drive refused.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refusal {
    pub command: ZoneCommand,
    pub at: ZoneAddress,
    pub length: u64,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NVMe status {:#05x}", self.0)
    }
}

impl std::error::Error for Status {}

/// The error of a failed command. `told` is the drive's report of the zone after it, if there is one.
pub(super) fn explain(
    refusal: Refusal,
    geometry: &Geometry,
    failure: Failure,
    told: Option<ZoneDescriptor>,
) -> ZoneError {
    let Refusal {
        command,
        at,
        length,
    } = refusal;
    let (zone, place) = (at.zone, geometry.absolute(at));
    let code = match failure {
        Failure::Status(Status(code)) => code,
        Failure::System(_) => 0,
    };
    match (code, told) {
        (ZONE_BOUNDARY, _) => boundary(command, zone, place, length),
        (ZONE_FULL, _) => ZoneError::ZoneFull { command, zone },
        (ZONE_READ_ONLY, _) => ZoneError::ReadOnly { command, zone },
        (ZONE_OFFLINE, _) => ZoneError::Offline { command, zone },
        (ZONE_INVALID_WRITE, Some(told)) => ZoneError::NotAtWritePointer {
            zone,
            at: place,
            write_pointer: geometry.absolute(told.next_write()),
        },
        (TOO_MANY_ACTIVE, _) => ZoneError::TooManyActiveZones {
            command,
            zone,
            limit: geometry.max_active_zones,
        },
        (TOO_MANY_OPEN, _) => ZoneError::TooManyOpenZones {
            command,
            zone,
            limit: geometry.max_open_zones,
        },
        // A broken zone refuses transitions with the same status as any other zone.
        (INVALID_TRANSITION, Some(told)) => match told.condition {
            zone::ZoneCondition::ReadOnly => ZoneError::ReadOnly { command, zone },
            zone::ZoneCondition::Offline => ZoneError::Offline { command, zone },
            condition => ZoneError::InvalidTransition {
                command,
                zone,
                condition,
            },
        },
        _ => ZoneError::Io {
            command,
            at: place,
            source: Arc::new(match failure {
                Failure::Status(status) => io::Error::other(status),
                Failure::System(errno) => errno.into(),
            }),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zone::{ZoneCondition, ZoneId, ZoneKind};

    #[test]
    fn every_status_has_its_word() {
        let geometry = Geometry {
            block_size: 4096,
            zone_size: 1 << 20,
            zone_capacity: 1 << 20,
            zone_count: 4,
            conventional_zones: 0,
            conventional_parts: 1,
            sequential_kind: ZoneKind::SequentialWriteRequired,
            max_open_zones: 1,
            max_active_zones: 1,
            max_append_bytes: 4096,
        };
        let refusal = Refusal {
            command: ZoneCommand::Write,
            at: ZoneAddress::new(ZoneId(1), 4096),
            length: 4096,
        };
        let word = |code: u16, condition: ZoneCondition| {
            let told = ZoneDescriptor {
                id: ZoneId(1),
                kind: ZoneKind::SequentialWriteRequired,
                condition,
                size: 1 << 20,
                capacity: 1 << 20,
                write_pointer: 0,
            };
            let failure = Failure::Status(Status(code));
            explain(refusal, &geometry, failure, Some(told)).kind()
        };
        let closed = ZoneCondition::Closed;
        assert_eq!(word(0x1b8, closed), "boundary");
        assert_eq!(word(0x1b9, closed), "full");
        assert_eq!(word(0x1ba, closed), "read-only");
        assert_eq!(word(0x1bb, closed), "offline");
        assert_eq!(word(0x1bc, closed), "not at write pointer");
        assert_eq!(word(0x1bd, closed), "too many active");
        assert_eq!(word(0x1be, closed), "too many open");
        assert_eq!(word(0x1bf, closed), "invalid");
        assert_eq!(word(0x1bf, ZoneCondition::ReadOnly), "read-only");
        assert_eq!(word(0x281, closed), "I/O");
    }
}
