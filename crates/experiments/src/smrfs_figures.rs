//! The two file systems of the Caveat-Scriptor thesis beside each other, on one disk in virtual time, without FUSE.
//!
//! The thesis prints its figures 5.1 to 5.7 as pictures, and says what they show: that the two are alike, that the one
//! on the Caveat-Scriptor drive does more operations a second with many small files, and that its cleaning costs nothing.

use crate::expected::Expected;
use crate::experiment::{Experiment, Run, Stopped};
use caveat::{CaveatDevice, CaveatShape, Sizes, Step, Workload};
use drive_model::{Profile, Timed, ZonedDisk};
use runtime::{Clock, Runtime, SimulatedClock};
use smrfs::{Error, FileSystem, Medium, MkfsOptions, MountOptions, NewInode, ROOT};
use std::sync::Arc;
use zone::{Geometry, ZoneKind};

const DISK: &str = "hm-smr-14tb";
const MIB: u64 = 1 << 20;
/// Bytes of one request of a program.
const REQUEST: u64 = 64 << 10;
/// What is "similar" in the thesis's words.
const ALIKE: f64 = 0.2;

pub const LARGE_FILES: Experiment = Experiment {
    id: "caveat-figure-5.1",
    title: "A large file is written and read as fast on a Caveat-Scriptor drive as in bands",
    source: "Caveat-Scriptor (thesis, Carnegie Mellon, 2014), figures 5.1 to 5.4",
    expected: || {
        let row = |size: &str| {
            ["written", "read", "read at random", "overwritten at random"].map(|what| {
                let what = format!("{size} file, {what}: Caveat-Scriptor ÷ strict append");
                Expected::value(what, "", 1.0).part(ALIKE)
            })
        };
        ["100 MB", "500 MB"].into_iter().flat_map(row).collect()
    },
    measure: |run| {
        let mut measured = Vec::new();
        for megabytes in [100, 500] {
            let bytes = run.scaled(megabytes, megabytes / 5) * 1_000_000 / REQUEST * REQUEST;
            let mut both = Vec::new();
            for kind in Kind::BOTH {
                run.next(&format!("{megabytes} MB, {}", kind.name()))?;
                both.push(large_file(&Bed::large(run, kind)?, bytes)?);
            }
            // Rates, so the other way round than times.
            measured.extend(
                both[0]
                    .iter()
                    .zip(&both[1])
                    .map(|(bands, caveat)| bands / caveat),
            );
        }
        Ok(measured.into())
    },
};

pub const SMALL_FILES: Experiment = Experiment {
    id: "caveat-figure-5.5",
    title: "Small files, a mail server and a compiler do as many operations a second on either",
    source: "Caveat-Scriptor (thesis, Carnegie Mellon, 2014), figures 5.5 to 5.7",
    expected: || {
        let alike = |what: &str| {
            let what = format!("{what}: Caveat-Scriptor ÷ strict append");
            Expected::value(what, "", 1.0).part(ALIKE)
        };
        vec![
            Expected::at_least("small files: Caveat-Scriptor ÷ strict append", "", 1.0),
            alike("PostMark"),
            alike("compiling"),
        ]
    },
    measure: |run| {
        let mut measured = Vec::new();
        type Work = fn(&Bed, &mut Run<'_>) -> Result<f64, Stopped>;
        let works: [(&str, Work); 3] = [
            ("small files", small_files),
            ("PostMark", postmark),
            ("compiling", compiling),
        ];
        for (name, work) in works {
            let mut both = Vec::new();
            for kind in Kind::BOTH {
                run.next(&format!("{name}, {}", kind.name()))?;
                let bed = Bed::large(run, kind)?;
                both.push(work(&bed, run)?);
            }
            measured.push(both[0] / both[1]);
        }
        Ok(measured.into())
    },
};

pub const CLEANING: Experiment = Experiment {
    id: "caveat-cleaning",
    title: "Files come and go at 80 %: bands are cleaned, a Caveat-Scriptor drive cleans implicitly or nearly so",
    source: "Caveat-Scriptor (thesis, Carnegie Mellon, 2014), section 5.3 and chapter 6",
    expected: || {
        let row = |removed: &str, how: &str| {
            format!("{removed} removed, {how}: bytes to the drive ÷ of users")
        };
        vec![
            Expected::at_least(row("the oldest", "strict append"), "", 1.0),
            Expected::value(row("the oldest", "Caveat-Scriptor"), "", 1.0).part(0.01),
            Expected::at_least(row("any", "strict append"), "", 1.02),
            Expected::at_most(
                "any removed: the same, Caveat-Scriptor that is cleaned when full ÷ strict append",
                "",
                1.0,
            ),
        ]
    },
    measure: |run| {
        let mut measured = Vec::new();
        // As in table 5.1, where that fits without cleaning; and as it does not.
        for (percent, clean_when_full) in [(5, false), (100, true)] {
            for kind in Kind::BOTH {
                run.next(&format!("{}, {percent} % of any age", kind.name()))?;
                measured.push(aging(run, kind, percent, clean_when_full)?);
            }
        }
        measured[3] /= measured[2];
        Ok(measured.into())
    },
};

#[derive(Clone, Copy)]
enum Kind {
    Bands,
    Caveat,
}

impl Kind {
    const BOTH: [Self; 2] = [Self::Bands, Self::Caveat];

    const fn name(self) -> &'static str {
        match self {
            Self::Bands => "strict append",
            Self::Caveat => "Caveat-Scriptor",
        }
    }
}

/// A file system on a new disk that takes no time but its own.
struct Bed {
    fs: FileSystem,
    clock: Arc<SimulatedClock>,
}

impl Bed {
    fn large(run: &Run<'_>, kind: Kind) -> Result<Self, Stopped> {
        Self::new(run, kind, 32 * MIB, &MkfsOptions::default())
    }

    /// On 64 zones of a disk.
    fn new(
        run: &Run<'_>,
        kind: Kind,
        zone_size: u64,
        options: &MkfsOptions,
    ) -> Result<Self, Stopped> {
        let clock = Arc::new(SimulatedClock::default());
        let runtime = Runtime::seeded(run.seed).with_clock(clock.clone());
        // The same mechanics for both: addresses lie on the platters in their order.
        let mut profile = Profile::named(DISK)?;
        profile.zones = None;
        let (zones, conventional) = (64, 4);
        let geometry = Geometry {
            block_size: 4096,
            zone_size,
            zone_capacity: zone_size,
            zone_count: zones,
            conventional_zones: match kind {
                Kind::Bands => conventional,
                Kind::Caveat => zones,
            },
            conventional_parts: 1,
            sequential_kind: ZoneKind::SequentialWriteRequired,
            max_open_zones: 0,
            max_active_zones: 0,
            max_append_bytes: 0,
        };
        let disk = ZonedDisk::new(profile.drive(run.seed)?, geometry).map_err(Stopped::store)?;
        let timed = Timed::in_memory(Box::new(disk), clock.clone()).map_err(Stopped::store)?;
        let timed = Arc::new(timed);
        let medium = match kind {
            Kind::Bands => Medium::Bands(timed),
            Kind::Caveat => {
                // As in section 5.2.
                let shape = CaveatShape {
                    block_size: 4096,
                    isolation_distance: 16,
                    no_overlap_range: 6,
                    unshingled_bytes: u64::from(conventional) * zone_size,
                };
                let drive = CaveatDevice::in_memory(timed, &shape, None).map_err(Stopped::store)?;
                Medium::Caveat(Arc::new(drive))
            }
        };
        FileSystem::mkfs_on(&medium, &runtime, options)?;
        let fs = FileSystem::mount_on(&medium, runtime, MountOptions::default())?;
        Ok(Self { fs, clock })
    }

    /// Seconds that something takes, until it is durable.
    fn seconds(&self, work: impl FnOnce(&FileSystem) -> Result<(), Error>) -> Result<f64, Stopped> {
        let start = self.clock.now();
        work(&self.fs)?;
        self.fs.sync()?;
        Ok((self.clock.now() - start).as_secs_f64())
    }

    /// Makes a directory or a file.
    fn make(&self, dir: u64, name: u64, kind: u32) -> Result<u64, Error> {
        let new = NewInode {
            mode: kind | 0o755,
            uid: 0,
            gid: 0,
            rdev: 0,
        };
        let made = self.fs.create(dir, name.to_string().as_bytes(), new)?;
        Ok(made.ino)
    }
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self::store(error)
    }
}

/// Seconds of writing a file, reading it, reading at random, and overwriting at random.
fn large_file(bed: &Bed, bytes: u64) -> Result<[f64; 4], Stopped> {
    let file = bed.make(ROOT, 0, libc::S_IFREG)?;
    let data = vec![7; REQUEST as usize];
    let mut random = fastrand::Rng::with_seed(1);
    let in_order: Vec<u64> = (0..bytes / REQUEST).map(|n| n * REQUEST).collect();
    let mut anyhow = in_order.clone();
    random.shuffle(&mut anyhow);
    let write = |order: &[u64]| {
        bed.seconds(|fs| order.iter().try_for_each(|at| fs.write(file, *at, &data)))
    };
    let read = |order: &[u64]| {
        let mut buffer = vec![0; REQUEST as usize];
        bed.seconds(|fs| {
            order
                .iter()
                .try_for_each(|at| fs.read(file, *at, &mut buffer).map(drop))
        })
    };
    Ok([
        write(&in_order)?,
        read(&in_order)?,
        read(&anyhow)?,
        write(&anyhow)?,
    ])
}

/// Vdbench (section 5.2.2): 10,000 files, 1.2 GB together, in 110 directories; made, read and overwritten.
fn small_files(bed: &Bed, run: &mut Run<'_>) -> Result<f64, Stopped> {
    let count = run.scaled(10_000, 1_000);
    let data = vec![5; 120_000];
    let mut random = fastrand::Rng::with_seed(run.seed);
    bed.seconds(|fs| {
        let dirs: Result<Vec<u64>, Error> =
            (0..110).map(|n| bed.make(ROOT, n, libc::S_IFDIR)).collect();
        let dirs = dirs?;
        let mut files = Vec::new();
        for n in 0..count {
            let file = bed.make(dirs[(n % 110) as usize], n, libc::S_IFREG)?;
            fs.write(file, 0, &data)?;
            files.push(file);
        }
        let mut buffer = vec![0; data.len()];
        for _ in 0..count {
            let file = files[random.usize(0..files.len())];
            match random.bool() {
                true => fs.write(file, 0, &data)?,
                false => fs.read(file, 0, &mut buffer).map(drop)?,
            }
        }
        Ok(())
    })
}

/// PostMark: a pool of mails of 0.5 to 10 KB; one is read or added to, and one is made or removed.
fn postmark(bed: &Bed, run: &mut Run<'_>) -> Result<f64, Stopped> {
    let (files, transactions) = (run.scaled(5_000, 500), run.scaled(20_000, 2_000));
    let mut random = fastrand::Rng::with_seed(run.seed);
    let data = vec![3; 10_000];
    bed.seconds(|fs| {
        let mut pool = Vec::new();
        let mut next = 0;
        let mut make = |random: &mut fastrand::Rng, pool: &mut Vec<(u64, u64)>| {
            let file = bed.make(ROOT, next, libc::S_IFREG)?;
            fs.write(file, 0, &data[..random.usize(500..10_000)])?;
            pool.push((next, file));
            next += 1;
            Ok::<_, Error>(())
        };
        for _ in 0..files {
            make(&mut random, &mut pool)?;
        }
        let mut buffer = vec![0; 20_000];
        for n in 0..transactions {
            let (_, file) = pool[random.usize(0..pool.len())];
            match random.bool() {
                true => fs.read(file, 0, &mut buffer).map(drop)?,
                false => fs
                    .append(file, &data[..random.usize(500..5_000)])
                    .map(drop)?,
            }
            if random.bool() || pool.len() < 2 {
                make(&mut random, &mut pool)?;
            } else {
                let (name, _) = pool.swap_remove(random.usize(0..pool.len()));
                fs.unlink(ROOT, name.to_string().as_bytes())?;
            }
            if n % 500 == 499 {
                fs.sync()?;
            }
        }
        Ok(())
    })
}

/// A compiler's accesses, without its thinking: a tree of sources is unpacked; each is read with some headers, and an object is
/// written; all objects are read and one file is written.
fn compiling(bed: &Bed, run: &mut Run<'_>) -> Result<f64, Stopped> {
    let count = run.scaled(2_000, 300);
    let mut random = fastrand::Rng::with_seed(run.seed);
    let data = vec![1; 64 << 10];
    bed.seconds(|fs| {
        let mut sources = Vec::new();
        for n in 0..count {
            let file = bed.make(ROOT, n, libc::S_IFREG)?;
            fs.write(file, 0, &data[..random.usize(2_000..40_000)])?;
            sources.push(file);
        }
        fs.sync()?;
        let mut buffer = vec![0; 64 << 10];
        let mut objects = Vec::new();
        for (n, source) in sources.iter().enumerate() {
            fs.read(*source, 0, &mut buffer)?;
            for _ in 0..3 {
                let header = sources[random.usize(0..sources.len().min(200))];
                fs.read(header, 0, &mut buffer)?;
            }
            let object = bed.make(ROOT, count + n as u64, libc::S_IFREG)?;
            fs.write(object, 0, &data[..random.usize(4_000..60_000)])?;
            objects.push(object);
            if n % 100 == 99 {
                fs.sync()?;
            }
        }
        let program = bed.make(ROOT, 3 * count, libc::S_IFREG)?;
        for object in objects {
            let length = fs.read(object, 0, &mut buffer)?;
            fs.append(program, &buffer[..length])?;
        }
        Ok(())
    })
}

/// Bytes to the drive for each of users', behind the first fill: files of the thesis's sizes, 80 % of the drive.
fn aging(
    run: &mut Run<'_>,
    kind: Kind,
    percent: u8,
    clean_when_full: bool,
) -> Result<f64, Stopped> {
    let options = MkfsOptions {
        clean_when_full: clean_when_full && matches!(kind, Kind::Caveat),
        ..MkfsOptions::default()
    };
    let bed = Bed::new(run, kind, 4 * MIB, &options)?;
    let fs = &bed.fs;
    let drive = 60 * 4 * MIB;
    let work = Workload::new(Sizes::thesis(), drive / 10 * 8, 4096, run.seed);
    let mut work = work.with_random_removals(percent);
    let data = vec![9; 4 * MIB as usize];
    let (mut left, mut before) = (run.scaled(40_000, 12_000), None);
    while left > 0 {
        if before.is_none() && work.is_steady() {
            fs.sync()?;
            before = Some(fs.space());
        }
        left -= u64::from(before.is_some());
        match work.step() {
            Some(Step::Create { file, bytes }) => {
                let ino = bed.make(ROOT, file, libc::S_IFREG)?;
                fs.write(ino, 0, &data[..bytes as usize])?;
            }
            Some(Step::Remove { file }) => {
                fs.unlink(ROOT, file.to_string().as_bytes())?;
            }
            None => break,
        }
        if left % 200 == 0 {
            fs.sync()?;
            if run.is_interrupted() {
                return Err(Stopped::Interrupted);
            }
        }
    }
    fs.sync()?;
    let (after, before) = (fs.space(), before.ok_or(Stopped::Interrupted)?);
    let device = after.device_bytes - before.device_bytes;
    let users = device - (after.moved_bytes - before.moved_bytes);
    Ok(device as f64 / users as f64)
}
