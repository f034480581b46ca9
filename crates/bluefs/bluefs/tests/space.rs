//! Histories on a drive that is nearly full: no write is refused as long as the live bytes fit the capacity that the
//! file system declares. `ZONESTORE_CASES=1000` runs a thousand of each kind.

use crate::support::{Random, assert_clean, format, geometry, mount};
use bluefs::{BlueFs, Lifetime, Role};
use device::{MemoryDrive, ZonedDevice};
use std::sync::Arc;

struct History {
    fs: BlueFs,
    random: Random,
    /// Names of files, and their bytes in whole blocks.
    files: Vec<(String, u64)>,
    live: u64,
    target: u64,
    next: u64,
}

impl History {
    fn create(&mut self, size: u64, background: bool) -> bluefs::Result<()> {
        const LIFETIMES: [Lifetime; 4] = [
            Lifetime::Short,
            Lifetime::Medium,
            Lifetime::Long,
            Lifetime::Extreme,
        ];
        let name = format!("/{:06}.sst", self.next);
        self.next += 1;
        let mut w = self.fs.create(&name)?;
        w.set_lifetime(LIFETIMES[self.random.below(4) as usize]);
        w.set_expected_size(size);
        w.set_background(background);
        w.append(&vec![self.next as u8; size as usize])?;
        w.sync()?;
        w.close()?;
        let blocks = size.next_multiple_of(512);
        self.live += blocks;
        self.files.push((name, blocks));
        Ok(())
    }

    fn delete(&mut self) -> bluefs::Result<u64> {
        let index = self.random.below(self.files.len() as u64) as usize;
        let (name, blocks) = self.files.swap_remove(index);
        self.live -= blocks;
        self.fs.delete(&name)?;
        Ok(blocks)
    }

    /// Merges several files into one, and deletes them once that is durable.
    fn compact(&mut self) -> bluefs::Result<()> {
        let inputs = 2 + self.random.below(3) as usize;
        let size: u64 = self.files.iter().take(inputs).map(|(_, b)| b).sum();
        if self.files.len() <= inputs || self.live + size > self.target {
            return Ok(());
        }
        self.create(size, true)?;
        for (name, blocks) in self.files.drain(..inputs) {
            self.live -= blocks;
            self.fs.delete(&name)?;
        }
        Ok(())
    }

    /// Replaces a file by a new one.
    fn replace(&mut self) -> bluefs::Result<()> {
        let size = self.random.size();
        if self.files.is_empty() || self.live + size.next_multiple_of(512) > self.target {
            return Ok(());
        }
        self.create(size, false)?;
        let old = self.random.below(self.files.len() as u64 - 1) as usize;
        let (name, blocks) = self.files.swap_remove(old);
        let new = self.files.len() - 1;
        let at = if old == self.files.len() {
            new
        } else {
            self.last_created()
        };
        self.fs.rename(&self.files[at].0, &name)?;
        self.files[at].0 = name;
        self.live -= blocks;
        Ok(())
    }

    fn last_created(&self) -> usize {
        let name = format!("/{:06}.sst", self.next - 1);
        self.files.iter().position(|(n, _)| *n == name).unwrap()
    }

    fn step(&mut self) -> bluefs::Result<()> {
        match self.random.below(20) {
            0 => self.compact(),
            1 | 2 => self.replace(),
            3 => self.fs.sync_metadata(),
            _ => {
                let size = self.random.size();
                while self.live + size.next_multiple_of(512) > self.target {
                    self.delete()?;
                }
                self.create(size, false)
            }
        }
    }
}

fn early_refusals(active: u32) -> Vec<String> {
    let cases = std::env::var("ZONESTORE_CASES").ok();
    let cases: u64 = cases.and_then(|n| n.parse().ok()).unwrap_or(20);
    let mut refused = Vec::new();
    for seed in 0..cases {
        let mut g = geometry(128, 0, active);
        (g.zone_size, g.zone_capacity) = (64 << 10, 48 << 10);
        let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(g).unwrap());
        format(&*device, Role::Alone);
        let fs = mount(device.clone()).unwrap();
        let mut random = Random(seed << 8 | u64::from(active));
        let target = fs.usage().capacity_bytes * (90 + random.below(9)) / 100;
        let mut history = History {
            fs,
            random,
            files: Vec::new(),
            live: 0,
            target,
            next: 0,
        };
        for step in 0..1_000 {
            if let Err(error) = history.step() {
                refused.push(format!("seed {seed}, step {step}: {error}"));
                break;
            }
        }
        assert_clean(&history.fs);
    }
    refused
}

#[test]
fn with_six_active_zones_nothing_is_refused_early() {
    assert_eq!(early_refusals(6), [""; 0]);
}

#[test]
fn with_fourteen_active_zones_nothing_is_refused_early() {
    assert_eq!(early_refusals(14), [""; 0]);
}
