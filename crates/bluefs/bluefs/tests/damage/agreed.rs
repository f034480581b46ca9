//! Mounts for writing that give up what their caller has agreed to, and nothing else.

use super::journal_counted::{flip, frames};
use super::*;
use crate::support::Random;
use bluefs::GivenUp;

/// Bytes of a file, of which no others are the same.
fn data(number: u8) -> Vec<u8> {
    let mut random = Random(number.into());
    let mut data = vec![0; 600];
    data.fill_with(|| random.below(256) as u8);
    data
}

/// An unmounted file system with logs of three synced records each, and SSTs; and the epoch of its journal.
fn unmounted() -> (Arc<MemoryDrive>, u64) {
    let device = Arc::new(MemoryDrive::new(geometry(200, 0, 0)).unwrap());
    format_copies(&*device, Role::Alone, 1);
    let fs = mount(device.clone()).unwrap();
    for number in 0..8 {
        support::put(&fs, &format!("/{number}.sst"), &data(number));
    }
    for number in [10, 20] {
        let mut log = fs.create(&format!("/{number}.log")).unwrap();
        for record in number..number + 3 {
            log.append(&data(record)).unwrap();
            log.sync().unwrap();
        }
        log.close().unwrap();
    }
    let epoch = fs.info().journal_epoch;
    fs.unmount().unwrap();
    (device, epoch)
}

/// Damages the bytes of a file.
fn damage(device: &MemoryDrive, number: u8) {
    let data = data(number);
    let zones = device.geometry().zones().zip(image(device));
    let found = zones.filter_map(|(zone, all)| {
        let offset = all.windows(64).position(|window| window == &data[..64])?;
        Some(ZoneAddress::new(zone, offset as u64))
    });
    let found: Vec<ZoneAddress> = found.collect();
    assert_eq!(found.len(), 1);
    device.decay(found[0], 1, |bytes| bytes[0] ^= 1);
}

fn given_up(device: &Arc<MemoryDrive>) -> GivenUp {
    let fs = mount_in(device.clone(), pool_of(&**device), true).unwrap();
    GivenUp {
        damage: fs.damage(),
        losses: fs.losses().unwrap(),
    }
}

fn give_up(device: &Arc<MemoryDrive>, agreed: GivenUp) -> Result<BlueFs, Error> {
    let options = MountOptions {
        accept_damage: true,
        agreed: Some(agreed),
        ..MountOptions::default()
    };
    BlueFs::mount(device.clone(), pool_of(&**device), options)
}

/// Damage that comes between the question and the answer is not given up.
fn only_what_was_agreed(device: &Arc<MemoryDrive>, later: u8, path: &str) {
    let agreed = given_up(device);
    assert!(!agreed.damage.is_empty());
    let named = |given_up: &GivenUp| given_up.losses.iter().any(|loss| loss.path == path);
    assert!(!named(&agreed), "{agreed:?}");
    damage(device, later);
    let before = image(device);
    let refused = give_up(device, agreed).map(drop).unwrap_err();
    assert!(matches!(refused, Error::OtherDamage), "{refused:?}");
    assert!(image(device) == before, "written to");
    let agreed = given_up(device);
    assert!(named(&agreed), "{agreed:?}");
    give_up(device, agreed).unwrap().unmount().unwrap();
    support::assert_clean(&mount(device.clone()).unwrap());
}

#[test]
fn a_log_that_is_damaged_after_the_question_is_not_truncated() {
    let (device, _) = unmounted();
    damage(&device, 11);
    only_what_was_agreed(&device, 21, "/20.log");
}

/// The damage to the journal is the same as before, and only the losses tell of the SST.
#[test]
fn an_sst_that_is_damaged_after_the_question_is_not_removed() {
    let (device, epoch) = unmounted();
    let all: Vec<Vec<ZoneAddress>> = frames(&device, epoch).into_values().collect();
    all[all.len() / 2]
        .iter()
        .for_each(|at| flip(&device, *at, &mut Random(1)));
    only_what_was_agreed(&device, 0, "/0.sst");
}
