//! Zones taken for the journal in which the first write fails are given back.

use super::*;
use bluefs::ZonePurpose;

#[test]
fn a_zone_that_the_journal_took_in_vain_comes_back() {
    for kth in 1..70 {
        let device = Arc::new(Faults::new(formatted(geometry(60, 0, 0))));
        let fs = mount(device.clone()).unwrap();
        let fault = Fault::Io(std::io::ErrorKind::Other);
        device.add(Plan::at(ZoneCommand::Write, kth, fault));
        for step in 0..70 {
            fs.create(&format!("/{}", step % 5)).unwrap();
            fs.sync_metadata().unwrap();
            for (zone, _) in fs
                .zones()
                .iter()
                .filter(|(_, p)| *p == ZonePurpose::Journal)
            {
                let written = device.report_zone(*zone).unwrap().write_pointer;
                assert!(
                    written > 0,
                    "{kth}, {step}: the journal has nothing in zone {zone}"
                );
            }
        }
        assert_eq!(device.struck(), 1);
    }
}
