//! A drive that fails a write: every extent whose put succeeded is there.

use crate::support::{Model, assert_same, bytes, format, geometry, put};
use device::faults::{Fault, Faults, Plan};
use device::{MemoryDrive, ZonedDevice};
use std::io::ErrorKind;
use std::sync::Arc;
use zea::{Error, Instance, LogicalAddress, Sequence};
use zone::{ZoneCommand, ZoneCondition, ZoneId, ZoneKind};

/// Three puts, one that fails, and two more. `happened`: the failed one was written nevertheless.
fn run(fault: Fault, back_pointers: u32, happened: bool) {
    let g = geometry(ZoneKind::SequentialWriteRequired);
    let drive = Arc::new(MemoryDrive::new(g).unwrap());
    // The first write was the label's.
    let plan = Plan::at(ZoneCommand::Write, 5, fault);
    let faults = Faults::new(drive.clone());
    faults.add(plan);
    let device: Arc<dyn ZonedDevice> = Arc::new(faults);
    let sequence = Sequence::default();
    let instance = format(&device, 1, back_pointers, &sequence, 1).unwrap();
    let mut model = Model::default();
    for n in 0..3 {
        put(&instance, &mut model, n, bytes(n, 1200));
    }
    let data = bytes(3, 1200);
    let failed = instance.put(LogicalAddress(3), &data);
    assert!(matches!(failed, Err(Error::Drive(_))), "{failed:?}");
    for n in 4..6 {
        let placed = instance.put(LogicalAddress(n), &bytes(n, 900)).unwrap();
        if happened && n == 4 {
            // The failed put was written.
            let found = instance.forward().nth(3).unwrap().unwrap();
            assert_eq!(found.address, LogicalAddress(3));
            model.extents.push((found, data.clone()));
        }
        model.extents.push((placed, bytes(n, 900)));
    }
    assert_same(&instance, &model);
    drop(instance);
    let again = Instance::open(drive, ZoneId(1), sequence).unwrap();
    assert_same(&again, &model);
}

#[test]
fn a_write_that_fails_or_is_torn() {
    for back_pointers in [1, 4] {
        run(Fault::Io(ErrorKind::Other), back_pointers, false);
        for blocks in 0..4 {
            let bytes = blocks * 512;
            run(Fault::Torn { bytes }, back_pointers, false);
        }
        // All was written, and the answer was an error.
        run(Fault::Torn { bytes: 2048 }, back_pointers, true);
    }
}

#[test]
fn a_zone_that_can_only_be_read_is_read() {
    let g = geometry(ZoneKind::SequentialWriteRequired);
    let drive = Arc::new(MemoryDrive::new(g).unwrap());
    let device: Arc<dyn ZonedDevice> = drive.clone();
    let sequence = Sequence::default();
    let instance = format(&device, 1, 4, &sequence, 1).unwrap();
    let mut model = Model::default();
    for n in 0..9 {
        put(&instance, &mut model, n, bytes(n, 700));
    }
    drive
        .set_condition(ZoneId(1), ZoneCondition::ReadOnly)
        .unwrap();
    assert!(instance.put(LogicalAddress(9), &[1]).is_err());
    drop(instance);
    let again = Instance::open(device, ZoneId(1), sequence).unwrap();
    assert_same(&again, &model);
    assert!(again.put(LogicalAddress(9), &[1]).is_err());
}
