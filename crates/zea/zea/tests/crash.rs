//! Power cuts at every command of random histories: all flushed extents are there, the extents found are a prefix of
//! those that were put, each whole, and puts after the mount succeed. `ZONESTORE_CRASH_STATES=n` checks more states for
//! each cut.

use crate::support::{Model, assert_same, bytes, format, geometry, number, put};
use device::power_cut::CrashLimits;
use device::{PowerCut, ZonedDevice};
use std::sync::Arc;
use zea::{Error, Instance, LogicalAddress, Placed, Sequence};
use zone::{ZoneId, ZoneKind};

/// The history of a zone until the power cut.
#[derive(Default)]
struct Zone {
    model: Model,
    /// Number of extents that a flush has covered.
    durable: usize,
    is_formatted: bool,
    /// Data of the put, or a reset, that was under way when the power was cut.
    under_way: Option<Vec<u8>>,
    being_reset: bool,
}

const ZONES: [u32; 2] = [1, 2];

/// Plays a history until its end or the power cut. Returns what happened to each zone.
fn play(device: &Arc<dyn ZonedDevice>, back_pointers: u32, seed: u64, steps: u64) -> Vec<Zone> {
    let mut random = fastrand::Rng::with_seed(seed);
    let sequence = Sequence::default();
    let mut zones: Vec<Zone> = ZONES.iter().map(|_| Zone::default()).collect();
    let mut instances: Vec<Option<Instance>> = vec![None, None];
    for step in 0..steps {
        let chosen = random.usize(..ZONES.len());
        let zone = &mut zones[chosen];
        let Some(instance) = &instances[chosen] else {
            let Ok(made) = format(device, ZONES[chosen], back_pointers, &sequence, seed ^ step)
            else {
                return zones;
            };
            instances[chosen] = Some(made);
            continue;
        };
        match random.u32(..10) {
            0..7 => {
                let data = bytes(seed << 20 | step, 1 + random.usize(..3000));
                if instance.room() < data.len() as u64 {
                    continue;
                }
                match instance.put(LogicalAddress(step), &data) {
                    Ok(placed) => zone.model.extents.push((placed, data)),
                    Err(_) => {
                        zone.under_way = Some(data);
                        return zones;
                    }
                }
            }
            7 if random.u32(..4) == 0 => {
                // Flushed first, so that only the outcome of the reset is uncertain.
                if device.flush().is_err() {
                    return zones;
                }
                for (zone, instance) in zones.iter_mut().zip(&instances) {
                    zone.is_formatted |= instance.is_some();
                    zone.durable = zone.model.extents.len();
                }
                let zone = &mut zones[chosen];
                zone.being_reset = true;
                let Some(instance) = instances[chosen].take() else {
                    continue;
                };
                if instance.reset().is_err() || device.flush().is_err() {
                    return zones;
                }
                *zone = Zone::default();
            }
            7..9 => {
                if device.flush().is_err() {
                    return zones;
                }
                for (zone, instance) in zones.iter_mut().zip(&instances) {
                    zone.is_formatted |= instance.is_some();
                    zone.durable = zone.model.extents.len();
                }
            }
            _ => {
                instances[chosen] = None;
                let again = Instance::open(device.clone(), ZoneId(ZONES[chosen]), sequence.clone());
                match again {
                    Ok(again) => instances[chosen] = Some(again),
                    Err(_) => return zones,
                }
            }
        }
    }
    zones
}

/// Opens a zone after the cut and compares it with its history.
fn judge(image: &Arc<dyn ZonedDevice>, zone: u32, was: &Zone, told: &str) {
    let sequence = Sequence::default();
    let instance = match Instance::open(image.clone(), ZoneId(zone), sequence.clone()) {
        Ok(instance) => instance,
        Err(Error::NotFormatted { .. }) => {
            assert!(!was.is_formatted || was.being_reset, "{told}");
            return;
        }
        Err(error) => panic!("{told}: {error}"),
    };
    let found: Vec<Placed> = instance.forward().map(Result::unwrap).collect();
    let mut expected = was.model.clone();
    if found.len() > expected.extents.len() {
        // The put that was under way has completed.
        let placed = *found.last().unwrap();
        expected
            .extents
            .push((placed, was.under_way.clone().unwrap()));
    }
    assert!(
        found.len() >= was.durable,
        "{told}: {} of {}",
        found.len(),
        was.durable
    );
    expected.extents.truncate(found.len());
    assert_same(&instance, &expected);
    // Puts succeed, also after a put that the cut left in part.
    while instance.room() >= 1500 && expected.extents.len() < found.len() + 3 {
        put(&instance, &mut expected, 77, bytes(u64::from(zone), 1500));
    }
    assert_same(&instance, &expected);
    drop(instance);
    let again = Instance::open(image.clone(), ZoneId(zone), sequence).unwrap();
    assert_same(&again, &expected);
}

#[test]
fn the_power_is_cut_at_every_write() {
    let limits = CrashLimits {
        max_states: number("ZONESTORE_CRASH_STATES", 24) as usize,
        max_choices_per_zone: 24,
        seed: 0,
    };
    let (mut cuts, mut states) = (0, 0);
    for seed in 0..number("ZONESTORE_ZEA_HISTORIES", 6) {
        let kind = [
            ZoneKind::SequentialWriteRequired,
            ZoneKind::SequentialWritePreferred,
        ][seed as usize % 2];
        let back_pointers = [1, 3, 16][seed as usize % 3];
        for point in 1.. {
            let device = Arc::new(PowerCut::new(geometry(kind)).unwrap());
            device.cut_after(point);
            let shared: Arc<dyn ZonedDevice> = device.clone();
            let zones = play(&shared, back_pointers, seed, 40);
            cuts += 1;
            for state in device.crash_states(limits) {
                states += 1;
                let image: Arc<dyn ZonedDevice> = Arc::new(device.image(&state));
                for (zone, was) in ZONES.iter().zip(&zones) {
                    let told = format!("history {seed}, cut {point}, zone {zone}, left {state:?}");
                    judge(&image, *zone, was, &told);
                }
            }
            if !device.is_cut() {
                break;
            }
        }
    }
    println!("{cuts} cuts, {states} states opened and checked");
    assert!(states > cuts);
}
