//! Runs the suite on one real drive. Zones are reset between cases; a smaller limit is simulated by holding
//! zones at the end of the drive open or active.

use super::leeway::Leeway;
use super::{Bench, geometry, run_cases};
use device::ZonedDevice;
use std::rc::Rc;
use std::sync::Arc;
use zone::{Geometry, ZoneCondition, ZoneId, ZoneKind, ZoneResult};

/// Number of zones that cases use, counted from the first sequential one.
const USED: u32 = 10;
/// Number of zones that cases make active at once where they assume no limit.
const ACTIVE: u32 = 4;

/// Runs the suite on a drive, whose contents are lost. Returns notes: the cases left out, and the differences
/// from the rule book that the standards allow.
///
/// # Errors
/// Why no case can be run on this drive.
pub fn run_on(device: Arc<dyn ZonedDevice>) -> Result<Vec<String>, String> {
    let blocks = |g: &Geometry| g.zone_capacity / u64::from(g.block_size);
    let (needed, found) = (blocks(&geometry()), blocks(device.geometry()));
    if found < needed {
        return Err(format!(
            "the cases write {needed} blocks of a zone, and zones of this drive have {found}"
        ));
    }
    let leeway = Rc::new(Leeway::default());
    run_cases(&|wanted| match prepare(&*device, &wanted) {
        Ok(room) => {
            leeway.room.set(Some(room));
            Some(Bench {
                device: Box::new(Arc::clone(&device)),
                break_zone: None,
                leeway: Some(Rc::clone(&leeway)),
            })
        }
        Err(why) => {
            leeway.note(&format!("left out: {why}"));
            None
        }
    });
    clean(&*device).unwrap();
    Ok(leeway.result())
}

/// Makes the drive simulate the wanted geometry; returns how many zones a case may make active. The error says
/// why the drive cannot.
fn prepare(device: &dyn ZonedDevice, wanted: &Geometry) -> Result<u32, String> {
    let real = device.geometry();
    let lacks = |what: &str| Err(format!("{what}, the drive has none"));
    if wanted.sequential_kind != real.sequential_kind {
        return lacks(match wanted.sequential_kind {
            ZoneKind::SequentialWritePreferred => "sequential-write-preferred zones",
            _ => "sequential-write-required zones",
        });
    }
    if wanted.max_append_bytes == 0 && real.max_append_bytes != 0 {
        return Err("that a drive without zone append refuses it, this one has it".to_owned());
    }
    if wanted.max_active_zones != 0 && real.max_active_zones == 0 {
        return lacks("a limit of active zones");
    }
    if wanted.max_open_zones != 0 && real.max_open_zones == 0 {
        return lacks("a limit of open zones");
    }
    let held = match wanted.max_open_zones {
        0 => 0,
        limit => real.max_open_zones.saturating_sub(limit),
    };
    let unlimited_room = match real.max_active_zones {
        0 => u32::MAX,
        limit => limit.saturating_sub(held),
    };
    let (room, closed) = match wanted.max_active_zones {
        0 => (unlimited_room, 0),
        limit => (limit, unlimited_room.saturating_sub(limit)),
    };
    let sequential = real.zone_count - real.conventional_zones;
    let enough = match wanted.max_active_zones {
        0 => room >= ACTIVE,
        limit => unlimited_room >= limit,
    };
    if real.max_open_zones < wanted.max_open_zones || !enough || sequential < USED + held + closed {
        return Err(format!(
            "limits of {} open and {} active zones, which this drive cannot play",
            wanted.max_open_zones, wanted.max_active_zones
        ));
    }
    clean(device).unwrap();
    let end = real.zone_count;
    let block = vec![1; real.block_size as usize];
    for zone in (end - closed..end).map(ZoneId) {
        device.write(real.start(zone), &block).unwrap();
        device.close(zone).unwrap();
    }
    for zone in (end - closed - held..end - closed).map(ZoneId) {
        device.open(zone).unwrap();
    }
    Ok(room)
}

/// Resets every sequential zone that is not empty or broken.
fn clean(device: &dyn ZonedDevice) -> ZoneResult<()> {
    let broken = [ZoneCondition::ReadOnly, ZoneCondition::Offline];
    for zone in device.report(ZoneId(0), u32::MAX)? {
        let rests = matches!(
            zone.condition,
            ZoneCondition::Empty | ZoneCondition::NotWritePointer
        );
        if !rests && !broken.contains(&zone.condition) {
            device.reset(zone.id)?;
        }
    }
    Ok(())
}
