//! What a drive in a file is after the host has lost power: of all that changed since the last flush,
//! any sectors have reached the disk and any have not. What was flushed has to be there, and no write
//! pointer may stand where nothing was ever written.

use device::{FileDrive, ZonedDevice};
use std::path::{Path, PathBuf};
use zone::{ByteOffset, Geometry, ZoneCondition, ZoneId, ZoneKind};

const SECTOR: usize = 512;
const BLOCK: u64 = 4096;
const ZONES: u32 = 4;
const CAPACITY: u64 = 192 << 10;

fn geometry() -> Geometry {
    Geometry {
        block_size: BLOCK as u32,
        zone_size: 256 << 10,
        zone_capacity: CAPACITY,
        zone_count: ZONES,
        conventional_zones: 0,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 0,
        max_active_zones: 0,
        max_append_bytes: 1 << 17,
    }
}

/// A stream of numbers from a seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }
}

/// What is known of a zone.
#[derive(Clone, Default, Debug)]
struct Known {
    /// Everything written since the last reset.
    bytes: Vec<u8>,
    /// So much of it was flushed.
    durable: usize,
    /// Reset or finished since the last flush: may be as it was before, too.
    unsettled: bool,
    /// The furthest write pointer that it has had since the last flush.
    furthest: usize,
}

struct World {
    path: PathBuf,
    crashed: PathBuf,
    drive: Option<FileDrive>,
    zones: Vec<Known>,
    /// The file at the last flush.
    durable: Vec<u8>,
    dice: Dice,
    next_byte: u8,
    pointers_found_in_data: u32,
}

impl World {
    fn new(directory: &Path, seed: u64) -> Self {
        let path = directory.join("drive");
        let drive = FileDrive::create(&path, &geometry(), "").unwrap();
        Self {
            crashed: directory.join("crashed"),
            durable: std::fs::read(&path).unwrap(),
            path,
            drive: Some(drive),
            zones: vec![Known::default(); ZONES as usize],
            dice: Dice(seed),
            next_byte: 0,
            pointers_found_in_data: 0,
        }
    }

    fn drive(&self) -> &FileDrive {
        self.drive.as_ref().unwrap()
    }

    /// Blocks of one value each; some are zeros, also at the end.
    fn data(&mut self, blocks: u64) -> Vec<u8> {
        let mut data = Vec::new();
        for _ in 0..blocks {
            self.next_byte = self.next_byte.wrapping_add(1);
            let value = if self.dice.roll(6) == 0 {
                0
            } else {
                self.next_byte
            };
            // A block with a single byte that tells, anywhere in it.
            let mut block = vec![0; BLOCK as usize];
            block[self.dice.roll(BLOCK) as usize] = value;
            data.extend(block);
        }
        data
    }

    fn step(&mut self) {
        // Most of it in two zones, so that they see many small writes in a row.
        let zone = ZoneId(match self.dice.roll(8) {
            0 => 2 + self.dice.roll(2) as u32,
            other => other as u32 % 2,
        });
        let known = self.zones[zone.index()].clone();
        let room = (CAPACITY - known.bytes.len() as u64) / BLOCK;
        match self.dice.roll(20) {
            0 => {
                self.drive().reset(zone).unwrap();
                let known = &mut self.zones[zone.index()];
                known.bytes.clear();
                known.durable = 0;
                known.unsettled = true;
            }
            1 if self.dice.roll(3) == 0 => {
                self.drive().finish(zone).unwrap();
                let known = &mut self.zones[zone.index()];
                known.bytes.resize(CAPACITY as usize, 0);
                known.furthest = CAPACITY as usize;
                known.unsettled = true;
            }
            2 => {
                // What a kill leaves is what the file holds now.
                drop(self.drive.take());
                self.drive = Some(FileDrive::open(&self.path).unwrap());
                self.check_pointers();
            }
            3..10 => self.flush(),
            _ if room > 0 => {
                let blocks = match self.dice.roll(10) {
                    0 => 17 + self.dice.roll(10),
                    more => 1 + more % 3,
                };
                let data = self.data(blocks.min(room));
                let at = geometry().start(zone).0 + known.bytes.len() as u64;
                if self.dice.roll(2) == 0 {
                    self.drive().write(ByteOffset(at), &data).unwrap();
                } else {
                    assert_eq!(self.drive().append(zone, &data).unwrap().0, at);
                }
                let known = &mut self.zones[zone.index()];
                known.bytes.extend(data);
                known.furthest = known.furthest.max(known.bytes.len());
            }
            _ => {}
        }
    }

    fn flush(&mut self) {
        self.drive().flush().unwrap();
        self.durable = std::fs::read(&self.path).unwrap();
        for known in &mut self.zones {
            known.durable = known.bytes.len();
            known.furthest = known.durable;
            known.unsettled = false;
        }
    }

    fn check_pointers(&self) {
        for (zone, known) in geometry().zones().zip(&self.zones) {
            let report = self.drive().report_zone(zone).unwrap();
            let pointer = match report.condition {
                ZoneCondition::Full => CAPACITY,
                _ => report.write_pointer,
            };
            assert_eq!(pointer, known.bytes.len() as u64, "zone {zone}");
        }
    }

    /// A file of sectors from the last flush and sectors from now.
    fn crash(&mut self) -> Vec<u8> {
        let now = std::fs::read(&self.path).unwrap();
        let mut image = self.durable.clone();
        // All, none, or each with a chance.
        let mode = self.dice.roll(4);
        for at in (0..now.len()).step_by(SECTOR) {
            let sector = at..at + SECTOR;
            if now[sector.clone()] == image[sector.clone()] {
                continue;
            }
            let arrives = match mode {
                0 => true,
                1 => false,
                _ => self.dice.roll(2) == 0,
            };
            if arrives {
                image[sector.clone()].copy_from_slice(&now[sector]);
            }
        }
        image
    }

    /// Opens what a power cut leaves now; answers what each zone holds there.
    fn check_crash(&mut self, image: &[u8]) -> Vec<Vec<u8>> {
        let _ = std::fs::remove_file(&self.crashed);
        std::fs::write(&self.crashed, image).unwrap();
        let drive = FileDrive::open(&self.crashed).unwrap();
        let mut found = Vec::new();
        for (zone, known) in geometry().zones().zip(&self.zones) {
            let report = drive.report_zone(zone).unwrap();
            let pointer = match report.condition {
                ZoneCondition::Full => CAPACITY as usize,
                _ => report.write_pointer as usize,
            };
            let mut bytes = vec![0; pointer];
            if pointer > 0 {
                drive.read(geometry().start(zone), &mut bytes).unwrap();
            }
            if !known.unsettled {
                assert!(
                    pointer >= known.durable,
                    "zone {zone}: {pointer} of {} flushed bytes",
                    known.durable
                );
                let durable = &known.bytes[..known.durable];
                assert!(bytes[..known.durable] == *durable, "zone {zone}");
            }
            assert!(
                pointer <= known.furthest,
                "zone {zone}: write pointer {pointer}, but nothing written beyond {}",
                known.furthest
            );
            let entry = 4096 + 64 * zone.index() + 8;
            let told = u64::from_le_bytes(image[entry..entry + 8].try_into().unwrap());
            self.pointers_found_in_data += u32::from(pointer as u64 > told);
            found.push(bytes);
        }
        found
    }

    /// Goes on with what the power cut left, which is all there is from now on.
    fn go_on(&mut self, image: Vec<u8>, found: Vec<Vec<u8>>) {
        drop(self.drive.take());
        std::fs::write(&self.path, &image).unwrap();
        self.drive = Some(FileDrive::open(&self.path).unwrap());
        self.durable = image;
        for (known, bytes) in self.zones.iter_mut().zip(found) {
            *known = Known {
                durable: bytes.len(),
                furthest: bytes.len(),
                unsettled: false,
                bytes,
            };
        }
        self.check_pointers();
    }
}

#[test]
fn what_was_flushed_is_there_after_the_host_lost_power_and_no_pointer_is_made_up() {
    let directory = tempfile::tempdir().unwrap();
    let mut found_in_data = 0;
    for seed in 0..8 {
        let place = directory.path().join(seed.to_string());
        std::fs::create_dir(&place).unwrap();
        let mut world = World::new(&place, seed);
        for _ in 0..100 {
            world.step();
            let image = world.crash();
            let found = world.check_crash(&image);
            if world.dice.roll(20) == 0 {
                world.go_on(image, found);
            }
        }
        found_in_data += world.pointers_found_in_data;
    }
    // Otherwise this has shown nothing of it.
    assert!(found_in_data > 50, "{found_in_data}");
}

/// A write that was never answered has left bytes above the write pointer; the zeros that come there
/// before the next ones must have reached the disk before an entry counts on them.
#[test]
fn old_bytes_that_come_back_for_lost_zeros_do_not_count() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("drive");
    let start = geometry().start(ZoneId(2)).0;
    let drive = FileDrive::create(&path, &geometry(), "").unwrap();
    drive.write(ByteOffset(start), &[1; 4096]).unwrap();
    drive.flush().unwrap();
    drop(drive);
    let mut durable = std::fs::read(&path).unwrap();
    let data = (1 << 20) + start as usize;
    durable[data + 4096..data + (64 << 10)].fill(0xee);
    std::fs::write(&path, &durable).unwrap();

    let drive = FileDrive::open(&path).unwrap();
    for flushed in [false, true] {
        for _ in 0..3 {
            drive.append(ZoneId(2), &[2; 4096]).unwrap();
        }
        let pointer = drive.report_zone(ZoneId(2)).unwrap().write_pointer;
        // The table arrives, the rest does not.
        let now = std::fs::read(&path).unwrap();
        let crashed = directory.path().join("crashed");
        std::fs::write(&crashed, [&now[..1 << 20], &durable[1 << 20..]].concat()).unwrap();
        let found = FileDrive::open(&crashed).unwrap();
        let found = found.report_zone(ZoneId(2)).unwrap().write_pointer;
        assert!(found <= pointer, "{found} of {pointer}, flushed: {flushed}");
        drive.flush().unwrap();
        durable = std::fs::read(&path).unwrap();
    }
    let entry = 4096 + 64 * 2 + 16;
    assert_ne!(
        durable[entry..entry + 8],
        [0; 8],
        "an entry names the zeros"
    );
}
