//! LevelDB on ZEAFS, on ext4 and on BlueFS, on the models of a host-managed and of a drive-managed disk.
//!
//! The requests are those of Debian's LevelDB, recorded once, a quarter of the printed load; the drives are models, caches on. Nothing
//! is counted of the host's own time.

use crate::expected::Expected;
use crate::experiment::{Experiment, Outcome, Run, Stopped};
use crate::leveldb_trace::{LevelDbTrace, Load, Stage};
use drive_model::{DiskDrive, Profile, Request, RequestKind, Tag, Time};
use plot::{Figure, Panel};

/// The host-managed disk: more tracks than the paper's HDA, and younger.
const HDA: &str = "hm-smr-14tb";
/// The drive-managed one of 8 TB.
const HDB: &str = "st8000as0002";
/// Bytes of values.
const SIZES: [u64; 4] = [4 << 10, 32 << 10, 256 << 10, 2 << 20];
/// Requests that nobody waits for and that are under way, at most: SATA's.
const DEPTH: usize = 31;

const TRACES: [&[u8]; 3] = [
    include_bytes!("../traces/leveldb-ext4.zst"),
    include_bytes!("../traces/leveldb-zeafs.zst"),
    include_bytes!("../traces/leveldb-bluefs.zst"),
];

/// A file system on a drive: which trace, the drive, and words for both.
const BEDS: [(usize, &str, &str); 4] = [
    (0, HDB, "ext4 on HDB"),
    (1, HDB, "ZEAFS on HDB"),
    (1, HDA, "ZEAFS on HDA"),
    (2, HDA, "BlueFS on HDA"),
];

/// Puts that are not synced, puts that are, and gets.
const KINDS: [(&str, bool, bool); 3] = [
    ("puts", false, false),
    ("synced puts", true, false),
    ("gets", false, true),
];

pub const FIGURE_4: Experiment = Experiment {
    id: "zea-figure-4",
    title: "LevelDB on ZEAFS is at least as fast as on ext4",
    source: "Manzanares et al., ZEA, A Data Management Approach for SMR, figure 4; a quarter of the load",
    expected: || {
        let row = |kind: &'static str| {
            SIZES.map(|size| {
                let what = format!("{kind} of {} KiB on HDB: ZEAFS ÷ ext4", size >> 10);
                Expected::at_least(what, "", 1.0)
            })
        };
        KINDS.into_iter().flat_map(|(kind, ..)| row(kind)).collect()
    },
    measure: |run| {
        let traces = TRACES.map(LevelDbTrace::decode);
        let traces = traces.into_iter().collect::<Result<Vec<_>, _>>()?;
        let mut rates = Vec::new();
        for (trace, drive, words) in BEDS {
            run.next(&format!(
                "{words}, recorded {} with Linux {}",
                traces[trace].head.date, traces[trace].head.kernel
            ))?;
            rates.push(measured(run, &traces[trace], drive)?);
        }
        let ratios = (0..KINDS.len()).flat_map(|kind| {
            let (ext4, zeafs) = (&rates[0][kind], &rates[1][kind]);
            zeafs
                .iter()
                .zip(ext4)
                .map(|(zeafs, ext4)| zeafs / ext4)
                .collect::<Vec<_>>()
        });
        let outcome = Outcome::from(ratios.collect::<Vec<f64>>());
        let panels = KINDS.iter().enumerate().map(|(kind, (title, ..))| {
            let panel = Panel::new(*title, "KiB of a value", "MiB/s").logarithmic();
            rates
                .iter()
                .zip(BEDS)
                .fold(panel, |panel, (rates, (_, _, words))| {
                    let points = SIZES.iter().zip(&rates[kind]);
                    panel.line(
                        words,
                        points
                            .map(|(size, rate)| ((size >> 10) as f64, *rate))
                            .collect(),
                    )
                })
        });
        Ok(outcome.with(Figure {
            number: "zea-4",
            title: "LevelDB on file systems",
            caption: format!("HDA: {HDA}, HDB: {HDB}, the drive's time alone; values of 256 MiB, 256 puts with sync."),
            panels: panels.collect(),
        }))
    },
};

/// MiB/s of values, for each kind and size.
fn measured(
    run: &mut Run<'_>,
    trace: &LevelDbTrace,
    drive: &str,
) -> Result<[Vec<f64>; 3], Stopped> {
    let mut rates: [Vec<f64>; 3] = Default::default();
    for value in SIZES {
        for synced in [false, true] {
            let mut player = Player::new(Profile::named(drive)?.drive(run.seed)?);
            for (kind, (_, of_synced, reads)) in KINDS.iter().enumerate() {
                if *of_synced == synced {
                    let stage = trace.stage(Load { value, synced }, *reads)?;
                    let seconds = player.play(run, stage)?;
                    rates[kind].push(stage.moved as f64 / f64::from(1 << 20) / seconds);
                }
            }
        }
    }
    Ok(rates)
}

/// A new drive, whose clock goes on from one stage to the next.
struct Player {
    drive: DiskDrive,
    has_zones: bool,
    now: Time,
    under_way: usize,
}

impl Player {
    fn new(mut drive: DiskDrive) -> Self {
        drive.set_volatile_cache(true);
        drive.set_look_ahead(true);
        let has_zones = drive_model::Model::zones(&drive).is_some();
        Self {
            drive,
            has_zones,
            now: Time::START,
            under_way: 0,
        }
    }

    /// Seconds until all of it is done and on the medium. The next request is sent unless somebody waits: for a read, for
    /// all that is under way before a flush, for a place among those under way; and in zones for every write, whose
    /// order counts.
    fn play(&mut self, run: &Run<'_>, stage: &Stage) -> Result<f64, Stopped> {
        let begin = self.now;
        for (number, traced) in stage.requests.iter().enumerate() {
            if number % 1024 == 0 && run.is_interrupted() {
                return Err(Stopped::Interrupted);
            }
            match traced.request.operation {
                RequestKind::Read if traced.ahead => self.send_beside(traced.request)?,
                RequestKind::Write if !self.has_zones => self.send_beside(traced.request)?,
                RequestKind::Read | RequestKind::Write => {
                    let tag = self.send(traced.request);
                    while self.take()?.is_some_and(|done| done != tag) {}
                }
                // A drive without zones has nothing to reset.
                RequestKind::ResetZone | RequestKind::FinishZone if !self.has_zones => {}
                _ => self.alone(traced.request)?,
            }
        }
        self.alone(Request::flush())?;
        Ok(self.now.since(begin).seconds())
    }

    fn alone(&mut self, request: Request) -> Result<(), Stopped> {
        self.wait_until_under_way(0)?;
        self.send(request);
        self.wait_until_under_way(0)
    }

    fn send_beside(&mut self, request: Request) -> Result<(), Stopped> {
        self.wait_until_under_way(DEPTH - 1)?;
        self.send(request);
        Ok(())
    }

    fn send(&mut self, request: Request) -> Tag {
        self.under_way += 1;
        self.drive.enqueue(request, self.now)
    }

    fn wait_until_under_way(&mut self, most: usize) -> Result<(), Stopped> {
        while self.under_way > most && self.take()?.is_some() {}
        Ok(())
    }

    /// The next answer.
    fn take(&mut self) -> Result<Option<Tag>, Stopped> {
        let Some(done) = self.drive.next_completion() else {
            self.under_way = 0;
            return Ok(None);
        };
        self.under_way -= 1;
        self.now = self.now.max(done.at);
        match done.result {
            Ok(()) => Ok(Some(done.tag)),
            Err(reason) => Err(Stopped::refused(&Request::read(done.lba, 0), &reason)),
        }
    }
}
