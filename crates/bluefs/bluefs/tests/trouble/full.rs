//! A full drive can be mounted, and removals free space.

use super::*;

#[test]
fn an_open_file_without_a_name_does_not_stop_the_cleaning_of_other_zones() {
    let device = formatted(geometry(40, 0, 0));
    let fs = mount(device).unwrap();
    write(&fs, "/open.sst", &[1; 3000]).unwrap();
    let reader = fs.open("/open.sst").unwrap();
    let mut i = 0;
    while write(&fs, &format!("/{i:03}.sst"), &[2; 12_000]).is_ok() {
        i += 1;
    }
    assert!(i > 50, "{i} files fit");
    fs.delete("/open.sst").unwrap();
    for j in (0..i).step_by(2) {
        fs.delete(&format!("/{j:03}.sst")).unwrap();
    }
    for j in 0..i / 2 - 4 {
        write(&fs, &format!("/again{j:03}.sst"), &[3; 12_000])
            .unwrap_or_else(|e| panic!("file {j} of {}: {e}", i / 2));
    }
    let mut data = [0; 3000];
    assert_eq!(reader.read_at(0, &mut data).unwrap(), 3000);
    assert_eq!(data, [1; 3000]);
    assert_clean(&fs);
}

#[test]
fn a_full_drive_can_be_mounted_again_and_again() {
    for (conventional, role) in [(0, Role::Alone), (0, Role::Shared), (4, Role::Shared)] {
        for point in 1..12 {
            let g = geometry(30, conventional, 0);
            let mut device = Arc::new(PowerCut::new(g).unwrap());
            format(&*device, role);
            let fs = mount(device.clone()).unwrap();
            let mut i = 0;
            while write(&fs, &format!("/{i:03}.sst"), &[1; 11_000]).is_ok() {
                i += 1;
            }
            drop(fs);
            for round in 0..8 {
                device.cut_after(point);
                let _ = mount(device.clone());
                let left = device.crash_states(CrashLimits::default());
                // Mostly the state in which everything was kept, so that blocks of the aborted mount take space.
                let choice = usize::from(round % 4 != 3) % left.len();
                device = Arc::new(device.restart(&left[choice]));
            }
            let fs = mount(device).unwrap_or_else(|e| panic!("{role:?}, cut at {point}: {e}"));
            fs.delete("/000.sst").unwrap();
            fs.delete("/001.sst").unwrap();
            fs.delete("/002.sst").unwrap();
            fs.delete("/003.sst").unwrap();
            write(&fs, "/new.sst", &[2; 11_000]).unwrap_or_else(|e| panic!("{e}"));
            assert_clean(&fs);
        }
    }
}
