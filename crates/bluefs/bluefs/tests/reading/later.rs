//! Reads that are started now and waited for later.

use super::*;

#[test]
fn reads_that_are_waited_for_later_are_what_was_written_whatever_files_they_are_of() {
    let directory = tempfile::tempdir().unwrap();
    let drive = FileDrive::create(directory.path().join("d"), &geometry(), "test").unwrap();
    for device in [
        Arc::new(drive) as Arc<dyn ZonedDevice>,
        Arc::new(MemoryDrive::new(geometry()).unwrap()),
    ] {
        let device = Arc::new(device);
        let fs = mounted(device.clone(), BUDGET);
        let mut numbers = Numbers(11);
        let files: Vec<_> = (0..5)
            .map(|i| {
                let content = numbers.bytes(40_000 + i * 90_000);
                let mut writer = fs.create(&format!("/{i}.sst")).unwrap();
                writer.append(&content).unwrap();
                writer.sync().unwrap();
                let path = format!("/{i}.sst");
                // Each file has two readers.
                ([fs.open(&path).unwrap(), fs.open(&path).unwrap()], content)
            })
            .collect();
        for round in 0..20 {
            let pending: Vec<_> = (0..40)
                .map(|n| {
                    let (readers, content) = &files[numbers.below(files.len())];
                    let from = numbers.below(content.len() + 100);
                    let length = numbers.below(60_000);
                    let expected = content.get(from..).unwrap_or_default();
                    let expected = &expected[..length.min(expected.len())];
                    (readers[n % 2].read_later(from as u64, length), expected)
                })
                .collect();
            for (n, (read, expected)) in pending.into_iter().enumerate() {
                // Some reads are dropped without a wait.
                if (n + round) % 7 > 0 {
                    assert!(read.wait().unwrap() == expected);
                }
            }
        }
        let late = files[0].0[0].read_later(0, 40_000);
        drop((files, fs));
        assert_eq!(late.wait().unwrap().len(), 40_000);
        // The drive is released before the read is answered. The thread may still be at reads that nobody waited for.
        while Arc::strong_count(&device) > 1 {
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_read_that_fails_fails_where_it_is_waited_for() {
    let device = Arc::new(Faults::new(MemoryDrive::new(geometry()).unwrap()));
    let fs = mounted(device.clone(), 0);
    let mut writer = fs.create("/a.sst").unwrap();
    writer.append(&[7; 100_000]).unwrap();
    writer.close().unwrap();
    let reader = fs.open("/a.sst").unwrap();
    let error = Fault::Io(std::io::ErrorKind::Other);
    device.add(Plan::at(ZoneCommand::Read, 1, error));
    let pending = [0, 50_000, 200_000].map(|at| reader.read_later(at, 100));
    let [first, second, behind] = pending.map(|read| read.wait());
    // Reads in the same batch as the failed one are tried again.
    assert!(
        [&first, &second]
            .iter()
            .filter(|read| read.is_err())
            .count()
            <= 1
    );
    assert_eq!(behind.unwrap(), b"");
    assert_eq!(reader.read_later(0, 100).wait().unwrap(), [7; 100]);
    assert_eq!(fs.statistics().reads_later, 4);
}
