//! What is cleaned ahead of need, and how many bytes the budget allows.

use super::*;

#[test]
fn what_is_live_in_a_zone_that_is_mostly_dead_is_moved() {
    let device = formatted();
    let fs = mount(device.clone()).unwrap();
    let zone = mostly_dead(&fs);
    assert!(fs.clean_ahead().unwrap());
    assert_ne!(zone_of(&fs, "/old.sst"), zone);
    assert_eq!(device.report_zone(zone).unwrap().write_pointer, 0);
    let s = fs.statistics();
    assert_eq!(s.zones_cleaned_ahead, 1);
    assert_eq!(s.moved_ahead_bytes_written, 5120);
    assert_eq!(s.moved_bytes_written, 5120);
    assert!(!fs.clean_ahead().unwrap());
    assert!(read(&fs, "/old.sst").unwrap() == [1; 5000]);
    assert_clean(&fs);
    drop(fs);
    let fs = mount(device).unwrap();
    assert!(read(&fs, "/old.sst").unwrap() == [1; 5000]);
    assert_clean(&fs);
}

#[test]
fn nothing_is_moved_with_zones_to_spare_or_without_an_allowance() {
    for (percent, begin_below) in [(100, None), (0, Some(1000))] {
        let cleaning = Cleaning {
            in_background: false,
            percent,
            tidy_per_mille: 0,
            begin_below,
        };
        let fs = mount_with(formatted(), Some(cleaning));
        mostly_dead(&fs);
        // One zone is allowed from the start, even with a share of 0 %.
        assert_eq!(fs.clean_ahead().unwrap(), begin_below.is_some());
        for i in 0..12 {
            write(&fs, &format!("/a{i}.sst"), &[1; 6000]).unwrap();
            write(&fs, &format!("/b{i}.sst"), &[2; 18_000]).unwrap();
        }
        for i in 0..12 {
            fs.delete(&format!("/b{i}.sst")).unwrap();
        }
        let mut cleaned = 0;
        while fs.clean_ahead().unwrap() {
            cleaned += 1;
        }
        // The first zone has left some of the budget.
        assert!(cleaned <= if begin_below.is_some() { 4 } else { 0 });
        assert!(fs.statistics().moved_ahead_bytes_written <= (24 << 10) + 24_000);
    }
}
