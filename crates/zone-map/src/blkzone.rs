//! Formats a zone as `blkzone report` does.

use zone::{Geometry, ZoneCondition, ZoneDescriptor, ZoneKind};

const SECTOR: u64 = 512;

/// One zone as `blkzone report` prints it: sectors of 512 bytes, hexadecimal, the standard's codes.
pub fn blkzone_line(geometry: &Geometry, zone: &ZoneDescriptor) -> String {
    let (kind, kind_name) = match zone.kind {
        ZoneKind::Conventional => (1, "CONVENTIONAL"),
        ZoneKind::SequentialWriteRequired => (2, "SEQ_WRITE_REQUIRED"),
        ZoneKind::SequentialWritePreferred => (3, "SEQ_WRITE_PREFERRED"),
    };
    let condition = match zone.condition {
        ZoneCondition::NotWritePointer => 0x0,
        ZoneCondition::Empty => 0x1,
        ZoneCondition::ImplicitOpen => 0x2,
        ZoneCondition::ExplicitOpen => 0x3,
        ZoneCondition::Closed => 0x4,
        ZoneCondition::ReadOnly => 0xd,
        ZoneCondition::Full => 0xe,
        ZoneCondition::Offline => 0xf,
    };
    format!(
        "  start: 0x{:09x}, len 0x{:06x}, cap 0x{:06x}, wptr 0x{:06x} reset:0 non-seq:0, \
         zcond:{condition:2}({}) [type: {kind}({kind_name})]",
        geometry.start(zone.id).0 / SECTOR,
        zone.size / SECTOR,
        zone.capacity / SECTOR,
        zone.write_pointer / SECTOR,
        zone.condition.short(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use device::profile;
    use zone::ZoneId;

    #[test]
    fn a_zone_prints_as_blkzone_prints_it() {
        let geometry = profile::by_name("hm-smr-14tb")
            .unwrap()
            .geometry(64 << 30, None)
            .unwrap();
        let zone = ZoneDescriptor {
            id: ZoneId(3),
            kind: ZoneKind::SequentialWriteRequired,
            condition: ZoneCondition::Empty,
            size: 256 << 20,
            capacity: 256 << 20,
            write_pointer: 0,
        };
        assert_eq!(
            blkzone_line(&geometry, &zone),
            "  start: 0x000180000, len 0x080000, cap 0x080000, wptr 0x000000 reset:0 non-seq:0, \
             zcond: 1(em) [type: 2(SEQ_WRITE_REQUIRED)]"
        );
        let full = ZoneDescriptor {
            condition: ZoneCondition::Full,
            write_pointer: 256 << 20,
            ..zone
        };
        assert!(
            blkzone_line(&geometry, &full)
                .contains("wptr 0x080000 reset:0 non-seq:0, zcond:14(fu)")
        );
    }
}
