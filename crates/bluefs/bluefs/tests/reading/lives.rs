//! Readers of a file that is truncated and written again see one life of it.

use super::*;

/// Ends the readers when the writer ends or panics.
struct End<'a>(&'a AtomicU64);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(1, Ordering::Release);
    }
}

#[test]
fn readers_of_a_file_that_is_cut_and_written_again_see_one_life_of_it() {
    const LENGTH: usize = 70_000;
    let device = Arc::new(MemoryDrive::new(geometry()).unwrap());
    let fs = mounted(device, BUDGET);
    fs.create("/a.sst").unwrap().close().unwrap();
    // The latest life that has begun, and the latest whose predecessors are gone.
    let (begun, alone) = (AtomicU64::new(0), AtomicU64::new(0));
    let byte = |life: u64, at: usize| (life * 31 + at as u64 * 7 + at as u64 / 256) as u8;
    let over = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for seed in 1..4 {
            let reader = fs.open("/a.sst").unwrap();
            let (begun, alone, over) = (&begun, &alone, &over);
            scope.spawn(move || {
                let mut numbers = Numbers(seed * 0x1234_5678_9abc);
                let mut in_order = 0;
                while over.load(Ordering::Acquire) == 0 {
                    let random = numbers.below(2) == 0;
                    let at = if random {
                        numbers.below(LENGTH)
                    } else {
                        in_order
                    };
                    let mut buffer = vec![0; 1 + numbers.below(5000)];
                    let first = alone.load(Ordering::Acquire);
                    let got = reader.read_at(at as u64, &mut buffer).unwrap();
                    let last = begun.load(Ordering::Acquire);
                    let is = |life: &u64| {
                        (at..)
                            .zip(&buffer[..got])
                            .all(|(i, b)| *b == byte(*life, i))
                    };
                    assert!((first..=last).any(|l| is(&l)), "{at} in {first} to {last}");
                    in_order = if got < buffer.len() { 0 } else { at + got };
                }
            });
        }
        let _end = End(&over);
        for life in 1..150 {
            begun.store(life, Ordering::Release);
            fs.truncate("/a.sst", 0).unwrap();
            alone.store(life, Ordering::Release);
            let content: Vec<u8> = (0..LENGTH).map(|at| byte(life, at)).collect();
            let mut writer = fs.reopen("/a.sst").unwrap();
            for part in content.chunks(9000) {
                writer.append(part).unwrap();
                writer.range_sync().unwrap();
            }
            writer.sync().unwrap();
        }
    });
}
