//! Lazy writeback for ext4: a file server, whose load is nearly all data (Postmark).

use crate::expected::Expected;
use crate::experiment::{Experiment, Run, Stopped};
use crate::ext4_lazy::{Pair, decode, trace, traced};
use crate::guest_replay::Player;
use crate::guest_trace::{Content, GuestTrace, Stage};
use crate::host::scale_cache;
use drive_model::{DiskDrive, Profile};
use runtime::HashSet;

/// Traces on a tenth of the printed partitions: 400 GB, 4 and 5 TB, 8 TB.
const SMALL: Pair = [trace!("postmark-400g-stock"), trace!("postmark-400g-lazy")];
const HALF: Pair = [trace!("postmark-4t-stock"), trace!("postmark-4t-lazy")];
const LARGE: Pair = [trace!("postmark-8t-stock"), trace!("postmark-8t-lazy")];
/// The printed load ÷ the recorded one; persistent caches are scaled in the same way.
const SCALE: u32 = 10;

const STAGES: [&str; 2] = ["WorkingSet", "Transactions"];

fn mib(trace: &GuestTrace, content: Content) -> f64 {
    let stages = trace.stages.iter();
    let of = |stage: &&Stage| STAGES.contains(&stage.name.as_str());
    stages
        .filter(of)
        .map(|stage| stage.mib(content, true))
        .sum()
}

/// The share of metadata writes that go to a block for the first time.
fn unique(trace: &GuestTrace) -> f64 {
    let (mut places, mut all) = (HashSet::default(), 0);
    for traced in trace.stages.iter().flat_map(|stage| &stage.requests) {
        let request = traced.request;
        if traced.content == Some(Content::Metadata) && request.operation.is_write() {
            places.extend(request.lba.0..request.end().0);
            all += u64::from(request.blocks);
        }
    }
    places.len() as f64 / all as f64
}

/// The printed numbers of one table, all of the same load.
struct Written {
    table: &'static str,
    /// MiB of data, metadata and journal.
    stock: [f64; 3],
    lazy: [f64; 3],
    metadata_percent: f64,
    unique: f64,
}

/// The tables of the conventional WD5000YS and of the ST8000AS0002.
const PRINTED: [Written; 2] = [
    Written {
        table: "3.3",
        stock: [34_185.0, 480.0, 1_890.0],
        lazy: [33_878.0, 0.0, 1_855.0],
        metadata_percent: 1.3,
        unique: 1.0 / 3.0,
    },
    Written {
        table: "3.4",
        stock: [32_917.0, 563.0, 1_212.0],
        lazy: [32_847.0, 0.0, 1_069.0],
        metadata_percent: 1.6,
        unique: 1.0 / 5.0,
    },
];

impl Written {
    fn expected(&self) -> Vec<Expected> {
        let row = |what: &str, unit: &'static str, printed: f64| {
            Expected::value(format!("table {}, {what}", self.table), unit, printed).part(0.25)
        };
        let mib = |what, printed| row(what, "MiB × 10", printed);
        let [data, metadata, journal] = self.stock;
        let [lazy_data, lazy_metadata, lazy_journal] = self.lazy;
        vec![
            mib("stock: data", data),
            mib("stock: metadata", metadata),
            mib("stock: journal", journal),
            row(
                "stock: metadata of all that is written",
                "%",
                self.metadata_percent,
            ),
            row(
                "stock: metadata blocks that are different ones",
                "",
                self.unique,
            ),
            mib("lazy: data", lazy_data),
            mib("lazy: metadata", lazy_metadata),
            mib("lazy: journal", lazy_journal),
        ]
    }
}

pub const TABLE_3_3: Experiment = Experiment {
    id: "lazy-table-3.3",
    title: "What a file server writes (tables 3.3 and 3.4)",
    source: traced!("CMU-CS-20-130, sections 3.4.2 and 3.4.3; a tenth of the load"),
    expected: || PRINTED.iter().flat_map(Written::expected).collect(),
    measure: |run| {
        let traces = decode(run, SMALL)?;
        let scale = f64::from(SCALE);
        let contents = [Content::Data, Content::Metadata, Content::Journal];
        let [stock, lazy] =
            [0, 1].map(|which| contents.map(|content| mib(&traces[which], content)));
        let mut measured: Vec<f64> = stock.iter().map(|mib| mib * scale).collect();
        measured.push(100.0 * stock[1] / stock.iter().sum::<f64>());
        measured.push(unique(&traces[0]));
        measured.extend(lazy.iter().map(|mib| mib * scale));
        // The guest writes the same for both printed drives.
        let measured = measured.repeat(PRINTED.len());
        Ok(measured.into())
    },
};

/// A drive with a tenth of its persistent cache.
fn drive(run: &Run<'_>, name: &str) -> Result<DiskDrive, Stopped> {
    let mut profile = Profile::named(name)?;
    scale_cache(&mut profile.layer, 1.0 / f64::from(SCALE));
    Ok(profile.drive(run.seed)?)
}

/// Drive, partition, traces, and the printed speed-up; that of the second one is “more than” this.
const SPEED_UPS: [(&str, &str, &Pair, f64); 6] = [
    ("wd5000ys", "400 GB", &SMALL, 1.05),
    ("st8000as0002", "400 GB", &SMALL, 2.0),
    ("st8000as0002", "8 TB", &LARGE, 5.4),
    ("st4000lm016", "4 TB", &HALF, 2.0),
    ("st5000as0011", "4 TB", &HALF, 2.0),
    ("wd40nmzw", "4 TB", &HALF, 1.7),
];

pub const FIGURE_3_13: Experiment = Experiment {
    id: "lazy-figure-3.13",
    title: "A file server on conventional and drive-managed drives (figures 3.9, 3.12 to 3.14)",
    source: traced!(
        "CMU-CS-20-130, sections 3.4.2 and 3.4.3; a tenth of load, partition and persistent cache"
    ),
    expected: || {
        let row = |(drive, partition, _, printed): (&str, &str, _, f64)| {
            let what = format!("{drive}, a tenth of {partition}: stock ÷ lazy");
            let tolerance = if printed < 1.5 { 0.05 } else { 0.3 };
            let row = match (drive, partition) {
                ("st8000as0002", "400 GB") => Expected::at_least(what, "", printed),
                _ => Expected::value(what, "", printed),
            };
            row.part(tolerance)
        };
        SPEED_UPS.map(row).to_vec()
    },
    measure: |run| {
        let mut measured = Vec::new();
        for (name, _, pair, _) in SPEED_UPS {
            let mut seconds = Vec::new();
            for trace in decode(run, *pair)? {
                run.next(&format!("{name} {}", trace.head.file_system))?;
                let mut player = Player::new(drive(run, name)?);
                let mut all = 0.0;
                for stage in STAGES {
                    all += player.play(run, &trace.stage(stage)?.requests)?;
                }
                seconds.push(all);
            }
            measured.push(seconds[0] / seconds[1]);
        }
        Ok(measured.into())
    },
};
