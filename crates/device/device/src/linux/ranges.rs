//! Checks the range of a command against the geometry, and a write against the drive's report of the zone.
//! Pure.

use zone::{
    ByteOffset, Geometry, ZoneAddress, ZoneCommand, ZoneCondition, ZoneDescriptor, ZoneError,
    ZoneId, ZoneKind, ZoneResult,
};

/// Checks that a range is whole blocks on the drive; returns the address of its start.
pub(crate) fn locate(
    geometry: &Geometry,
    command: ZoneCommand,
    at: ByteOffset,
    length: u64,
) -> ZoneResult<ZoneAddress> {
    check_blocks(geometry, command, at, length)?;
    let out_of_range = ZoneError::OutOfRange {
        command,
        at,
        length,
    };
    let end =
        at.0.checked_add(length)
            .filter(|end| *end <= geometry.size_bytes());
    if end.is_none() {
        return Err(out_of_range);
    }
    geometry.address(at).ok_or(out_of_range)
}

/// Checks that a range is at least one block and whole blocks.
pub(crate) fn check_blocks(
    geometry: &Geometry,
    command: ZoneCommand,
    at: ByteOffset,
    length: u64,
) -> ZoneResult<()> {
    let block = u64::from(geometry.block_size);
    if length == 0 || !length.is_multiple_of(block) || !at.0.is_multiple_of(block) {
        return Err(ZoneError::Unaligned {
            command,
            at,
            length,
            block_size: geometry.block_size,
        });
    }
    Ok(())
}

/// Checks the range of a read, which may cross from conventional zones into conventional ones only.
pub(crate) fn locate_read(
    geometry: &Geometry,
    at: ByteOffset,
    length: u64,
) -> ZoneResult<ZoneAddress> {
    let command = ZoneCommand::Read;
    let start = locate(geometry, command, at, length)?;
    let last = ZoneId(((at.0 + length - 1) / geometry.zone_size) as u32);
    if last != start.zone && geometry.kind(last) != ZoneKind::Conventional {
        return Err(boundary(command, start.zone, at, length));
    }
    Ok(start)
}

/// The error for a range that crosses into the next zone or exceeds the zone's capacity.
pub(crate) const fn boundary(
    command: ZoneCommand,
    zone: ZoneId,
    at: ByteOffset,
    length: u64,
) -> ZoneError {
    ZoneError::ZoneBoundary {
        command,
        zone,
        at,
        length,
    }
}

/// Checks that the drive has the zone.
pub(crate) fn check_zone(
    geometry: &Geometry,
    command: ZoneCommand,
    zone: ZoneId,
) -> ZoneResult<()> {
    if zone.0 < geometry.zone_count {
        return Ok(());
    }
    Err(ZoneError::OutOfRange {
        command,
        at: ByteOffset(geometry.zone_size.saturating_mul(u64::from(zone.0))),
        length: 0,
    })
}

/// Checks that the drive has the zone and that it has a write pointer.
pub(crate) fn check_sequential(
    geometry: &Geometry,
    command: ZoneCommand,
    zone: ZoneId,
) -> ZoneResult<()> {
    check_zone(geometry, command, zone)?;
    if geometry.kind(zone) == ZoneKind::Conventional {
        return Err(ZoneError::InvalidTransition {
            command,
            zone,
            condition: ZoneCondition::NotWritePointer,
        });
    }
    Ok(())
}

/// The error that a write is certain to cause, by the report of its zone; limits are not checked.
pub(crate) fn before_write(
    geometry: &Geometry,
    told: &ZoneDescriptor,
    start: ZoneAddress,
    length: u64,
) -> Option<ZoneError> {
    let (command, zone) = (ZoneCommand::Write, start.zone);
    let at = geometry.absolute(start);
    let required = told.kind == ZoneKind::SequentialWriteRequired;
    match told.condition {
        ZoneCondition::ReadOnly => Some(ZoneError::ReadOnly { command, zone }),
        ZoneCondition::Offline => Some(ZoneError::Offline { command, zone }),
        ZoneCondition::Full if required => Some(ZoneError::ZoneFull { command, zone }),
        _ if required && told.write_pointer != start.offset => Some(ZoneError::NotAtWritePointer {
            zone,
            at,
            write_pointer: geometry.absolute(told.next_write()),
        }),
        _ if start.offset + length > told.capacity => Some(boundary(command, zone, at, length)),
        _ => None,
    }
}
