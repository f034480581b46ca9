//! Zones that become read-only or offline at a write: writers and the journal continue in other zones.

use super::*;

#[test]
fn writers_and_journal_go_on_elsewhere_when_a_zone_breaks() {
    for kth in 1..25 {
        for condition in [ZoneCondition::ReadOnly, ZoneCondition::Offline] {
            // Two zones break in succession. Data in an offline zone is lost, which is not what this test is about.
            let device = Arc::new(Faults::new(formatted(geometry(60, 0, 0))));
            let fs = mount(device.clone()).unwrap();
            let fault = || Fault::Break(condition);
            device.add(Plan::at(ZoneCommand::Write, kth, fault()));
            device.add(Plan::at(ZoneCommand::Write, kth + 2, fault()));
            let mut log = fs.create("/000001.log").unwrap();
            let mut written = Vec::new();
            for i in 0..6 {
                match log.append(&[i; 700]).and_then(|()| log.sync()) {
                    Ok(()) => {}
                    // A log that has lost bytes takes no more appends; a new log does.
                    Err(Error::ZoneLost { .. }) if condition == ZoneCondition::Offline => {
                        log = fs.create(&format!("/00002{i}.log")).unwrap();
                    }
                    Err(e) => panic!("{kth} {condition:?}: {e}"),
                }
                written.extend([i; 700]);
                write(&fs, &format!("/{i}.sst"), &[i; 3000])
                    .unwrap_or_else(|e| panic!("{kth} {condition:?}: {e}"));
            }
            if condition == ZoneCondition::ReadOnly {
                assert!(read(&fs, "/000001.log").unwrap() == written);
                drop((log, fs));
                let fs =
                    mount(device.clone()).unwrap_or_else(|e| panic!("{kth} {condition:?}: {e}"));
                assert!(read(&fs, "/000001.log").unwrap() == written, "{kth}");
                for i in 0..6 {
                    assert!(read(&fs, &format!("/{i}.sst")).unwrap() == [i; 3000]);
                }
                assert_clean(&fs);
            }
        }
    }
}
