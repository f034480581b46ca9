//! The background thread of the cleaner.

use super::*;
use std::time::{Duration, Instant};

#[test]
fn a_thread_cleans_before_it_is_urgent_and_ends_with_the_file_system() {
    for unmounts in [true, false] {
        let device = formatted();
        let by_a_mount = {
            let _without_a_thread = mount_with(device.clone(), None);
            Arc::strong_count(&device)
        };
        let cleaning = Cleaning {
            percent: 400,
            begin_below: Some(u32::MAX),
            ..Cleaning::default()
        };
        let fs = mount_with(device.clone(), Some(cleaning));
        let (mut rounds, begun) = (0, Instant::now());
        while fs.statistics().zones_cleaned_ahead < 3 {
            write(&fs, &format!("/keep{}.sst", rounds % 10), &[1; 3000]).unwrap();
            write(&fs, &format!("/goes{}.sst", rounds % 10), &[2; 20_000]).unwrap();
            fs.delete(&format!("/goes{}.sst", rounds % 10)).unwrap();
            rounds += 1;
            // The thread gets its turns when the machine likes.
            let is_late = begun.elapsed() > Duration::from_mins(10);
            assert!(!is_late, "{:?}", fs.statistics());
            std::thread::yield_now();
        }
        let reader = fs.open("/keep0.sst").unwrap();
        let clone = fs.clone();
        drop(fs);
        if unmounts {
            clone.unmount().unwrap();
            let before = device.report(ZoneId(0), 60).unwrap();
            assert!(matches!(clone.clean_ahead(), Err(Error::Unmounted)));
            assert_eq!(before, device.report(ZoneId(0), 60).unwrap());
        }
        drop(clone);
        // The reader alone still holds the drive.
        let held = Arc::strong_count(&device);
        drop(reader);
        assert_eq!((held, Arc::strong_count(&device)), (by_a_mount, 1));
        let fs = mount_with(device, None);
        assert!(read(&fs, "/keep0.sst").unwrap() == [1; 3000]);
        assert!(!fs.clean_ahead().unwrap());
        assert_clean(&fs);
    }
}
