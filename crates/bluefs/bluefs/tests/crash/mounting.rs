//! Mounts, over and over, and none.

use super::*;

#[test]
fn mounting() {
    // A power cut while a mount begins its new journal, over and over.
    for (g, copies) in geometries() {
        let mut states = 0;
        for point in 1..20 {
            let device = Arc::new(PowerCut::new(g.clone()).unwrap());
            format_copies(&*device, Role::Alone, copies);
            let mut pair = Pair::new(device.clone()).unwrap();
            for step in [
                Create(1),
                Append(1, 700),
                Sync(1),
                Create(0),
                Append(0, 9000),
                Sync(0),
            ] {
                pair.step(step).unwrap();
            }
            let Pair { model, .. } = &pair;
            device.cut_after(0);
            let mut device = Arc::new(device.restart(&device.crash_states(limits())[0]));
            for round in 0..12 {
                device.cut_after(point);
                let mounted = mount(device.clone());
                let left = device.crash_states(limits());
                states += left.len();
                for state in &left {
                    let fs = mount(Arc::new(device.image(state)))
                        .unwrap_or_else(|e| panic!("{e} in round {round}, cut at {point}"));
                    assert_eq!(model.contradiction(&fs), None);
                    assert_clean(&fs);
                }
                drop(mounted);
                device = Arc::new(device.restart(&left[(round + point as usize) % left.len()]));
            }
        }
        println!("mounting: {states} states after power cuts");
    }
}

#[test]
fn a_drive_without_power_is_left_alone() {
    let device = Arc::new(PowerCut::new(geometry(40, 0, 0)).unwrap());
    format(&*device, Role::Alone);
    let mut pair = Pair::new(device.clone()).unwrap();
    pair.step(Create(0)).unwrap();
    device.cut_after(0);
    pair.step(Append(0, 100)).unwrap();
    assert!(pair.step(Sync(0)).is_err());
    assert!(pair.step(SyncNames).is_err());
    assert!(device.report_zone(zone::ZoneId(0)).is_err());
}
