//! Lazy writeback for ext4: trees of directories and files on drives, with it and without it.
//!
//! The requests were recorded once from user-mode Linux with the patches in kernel/ext4-lazy; the drives are models.

use crate::expected::Expected;
use crate::experiment::{Experiment, Outcome, Run, Stopped};
use crate::guest_replay::Player;
use crate::guest_trace::{Content, GuestTrace, Stage, Traced};
use plot::{Figure, Panel, thinned};

const CMR: &str = "wd5000ys";
const DM_SMR: &str = "st8000as0002";

/// The name and the bytes of a trace in `traces/`.
macro_rules! trace {
    ($name:literal) => {
        ($name, include_bytes!(concat!("../traces/", $name, ".zst")))
    };
}
pub(crate) use trace;

/// A source, followed by the origin of the traces.
macro_rules! traced {
    ($source:literal) => {
        concat!(
            $source,
            "; traces of user-mode Linux 6.1.192 of 2026-11-25, seed 1"
        )
    };
}
pub(crate) use traced;

/// A trace of stock ext4, and one with lazy writeback.
pub(crate) type Pair = [(&'static str, &'static [u8]); 2];

const DIRECTORIES: Pair = [trace!("directories-stock"), trace!("directories-lazy")];
const FILES: Pair = [trace!("files-stock"), trace!("files-lazy")];

/// Decodes both traces, and reports where they come from.
pub(crate) fn decode(run: &mut Run<'_>, pair: Pair) -> Result<[GuestTrace; 2], Stopped> {
    let mut read = |(name, packed)| -> Result<GuestTrace, Stopped> {
        let trace = GuestTrace::decode(name, packed)?;
        run.next(&trace.origin())?;
        Ok(trace)
    };
    Ok([read(pair[0])?, read(pair[1])?])
}

pub const TABLE_3_2: Experiment = Experiment {
    id: "lazy-table-3.2",
    title: "MakeDirs and RemoveDirs write metadata once",
    source: traced!(
        "CMU-CS-20-130, section 3.4.2, tables 3.2 and figure 3.8; a fortieth of the load"
    ),
    expected: || {
        let mib = |what: &str, printed: f64| Expected::value(what, "MiB × 40", printed).part(0.25);
        vec![
            mib("MakeDirs, stock: metadata read", 143.7),
            mib("MakeDirs, stock: metadata written", 4_631.0),
            mib("MakeDirs, stock: journal written", 4_735.0),
            mib("MakeDirs, lazy: metadata read", 144.0),
            Expected::value("MakeDirs, lazy: metadata written", "MiB × 40", 0.0),
            mib("MakeDirs, lazy: journal written", 4_707.0),
            mib("RemoveDirs, stock: metadata read", 4_066.0),
            mib("RemoveDirs, stock: metadata written", 322.4),
            mib("RemoveDirs, stock: journal written", 1_119.0),
            mib("RemoveDirs, lazy: metadata read", 4_066.0),
            Expected::value("RemoveDirs, lazy: metadata written", "MiB × 40", 0.0),
            mib("RemoveDirs, lazy: journal written", 472.0),
        ]
    },
    measure: |run| {
        let traces = decode(run, DIRECTORIES)?;
        let (mut measured, mut panels) = (Vec::new(), Vec::new());
        for name in ["MakeDirs", "RemoveDirs"] {
            for trace in &traces {
                let stage = trace.stage(name)?;
                panels.push(offsets(stage, &trace.head.file_system));
                // With lazy writeback, metadata is read out of the journal.
                let read = stage.mib(Content::Metadata, false) + stage.mib(Content::Journal, false);
                let written = stage.mib(Content::Metadata, true);
                let journal = stage.mib(Content::Journal, true);
                let scale = f64::from(trace.head.scale);
                measured.extend([read, written, journal].map(|mib| mib * scale));
            }
        }
        Ok(Outcome::from(measured).with(Figure {
            number: "3.8",
            title: "Where MakeDirs and RemoveDirs read and write",
            caption: "Extremes of many requests in a row; the journal is in the middle.".into(),
            panels,
        }))
    },
};

/// The places of a stage's requests in the order of arrival.
fn offsets(stage: &Stage, file_system: &str) -> Panel {
    let mut panel = Panel::new(
        format!("{}, {file_system}", stage.name),
        "request",
        "offset (GiB)",
    );
    let kinds = [
        ("metadata reads", Content::Metadata, false),
        ("metadata writes", Content::Metadata, true),
        ("journal reads", Content::Journal, false),
        ("journal writes", Content::Journal, true),
    ];
    for (name, content, written) in kinds {
        let of =
            |t: &Traced| t.content == Some(content) && t.request.operation.is_write() == written;
        let all = stage.requests.iter().enumerate().filter(|(_, t)| of(t));
        let places = all.map(|(n, t)| (n as f64, t.request.lba.0 as f64 / 262_144.0));
        let places = thinned(&places.collect::<Vec<_>>()).0;
        if !places.is_empty() {
            panel = panel.points(name, places);
        }
    }
    panel
}

/// Journals of a tenth of 128 MiB and of a tenth of 10 GiB.
const JOURNALS: Pair = [trace!("journal-128m-stock"), trace!("journal-10g-stock")];

pub const FIGURE_3_5: Experiment = Experiment {
    id: "lazy-figure-3.5",
    title: "A small journal is a bottleneck (figures 3.5 and 3.6)",
    source: traced!("CMU-CS-20-130, section 3.4.1; a tenth of the load and of the journals"),
    expected: || {
        vec![
            Expected::at_least("128 MiB: written home before all was created", "MiB", 1.0).ours(),
            Expected::value("10 GiB: written home before all was created", "MiB", 0.0).ours(),
            Expected::value("time to create: 128 MiB ÷ 10 GiB", "", 46.0).part(0.5),
        ]
    },
    measure: |run| {
        let traces = decode(run, JOURNALS)?;
        let (mut homes, mut seconds) = (Vec::new(), Vec::new());
        for trace in &traces {
            let stage = trace.stage("Create")?;
            let work = &stage.requests[..stage.work];
            // Creating waits for room in the journal, and so for metadata that is written home to free it.
            let home: Vec<_> = work.iter().filter(|t| is_home(t)).copied().collect();
            let blocks: u64 = home.iter().map(|t| u64::from(t.request.blocks)).sum();
            homes.push(blocks as f64 / 256.0);
            let waited = Player::new(run.disk(CMR)?).play(run, &home)?;
            seconds.push(stage.seconds + if home.is_empty() { 0.0 } else { waited });
        }
        homes.push(seconds[0] / seconds[1]);
        Ok(homes.into())
    },
};

fn is_home(traced: &Traced) -> bool {
    traced.content == Some(Content::Metadata) && traced.request.operation.is_write()
}

/// Seconds of a stage, and seconds that the drive then cleaned; stock and lazy.
struct Times {
    stage: &'static str,
    run: [f64; 2],
    cleaning: [f64; 2],
}

const STAGES: [&str; 8] = [
    "MakeDirs",
    "ListDirs",
    "TarDirs",
    "RemoveDirs",
    "CreateFiles",
    "FindFiles",
    "TarFiles",
    "RemoveFiles",
];

fn times(run: &mut Run<'_>, drive: &str) -> Result<Vec<Times>, Stopped> {
    let mut all: Vec<Times> = STAGES
        .iter()
        .map(|&stage| Times {
            stage,
            run: [0.0; 2],
            cleaning: [0.0; 2],
        })
        .collect();
    for pair in [DIRECTORIES, FILES] {
        for (which, trace) in decode(run, pair)?.iter().enumerate() {
            let mut player = Player::new(run.disk(drive)?);
            for stage in &trace.stages {
                let Some(times) = all.iter_mut().find(|times| times.stage == stage.name) else {
                    continue;
                };
                run.next(&format!("{} {}", trace.head.file_system, stage.name))?;
                times.run[which] = player.play(run, &stage.requests)?;
                times.cleaning[which] = player.clean();
            }
        }
    }
    Ok(all)
}

pub const FIGURE_3_7: Experiment = Experiment {
    id: "lazy-figure-3.7",
    title: "Trees of directories and files on a conventional drive",
    source: traced!("CMU-CS-20-130, section 3.4.2, figure 3.7; a fortieth of the load"),
    expected: || {
        let row = |stage: &str| {
            let what = format!("{stage}: stock ÷ lazy");
            match stage {
                "MakeDirs" | "CreateFiles" => Expected::range(what, "", 1.5, 2.0).part(0.1),
                "TarFiles" => {
                    let words = "no dramatic improvement";
                    Expected::range(what, "", 1.0, 1.5).part(0.1).words(words)
                }
                "ListDirs" => Expected::value(what, "", 5.0).part(0.3),
                _ => Expected::range(what, "", 3.0, 5.0).part(0.1),
            }
        };
        STAGES.map(row).to_vec()
    },
    measure: |run| {
        let all = times(run, CMR)?;
        let ratios = all.iter().map(|times| times.run[0] / times.run[1]);
        Ok(ratios.collect::<Vec<_>>().into())
    },
};

pub const FIGURE_3_11: Experiment = Experiment {
    id: "lazy-figure-3.11",
    title: "Trees of directories and files on a drive-managed drive, and its cleaning after them",
    source: traced!("CMU-CS-20-130, sections 3.1 and 3.4.3, figure 3.11; a fortieth of the load"),
    expected: || {
        let mut rows: Vec<Expected> = Vec::new();
        for stage in STAGES {
            let what = format!("{stage}: stock ÷ lazy");
            rows.push(match stage {
                "MakeDirs" | "CreateFiles" => Expected::range(what, "", 1.5, 2.5).part(0.1),
                "ListDirs" => Expected::value(what, "", 13.0).part(0.3),
                "TarFiles" => Expected::range(what, "", 1.0, 2.0).part(0.1).ours(),
                // Section 3.1; section 3.4.3 has no number for these.
                _ => Expected::range(what, "", 2.0, 13.0).part(0.1),
            });
        }
        let cleaning = |stage: &str| format!("{stage}: cleaning, lazy ÷ stock");
        rows.extend([
            Expected::value(cleaning("MakeDirs"), "", 0.0).by(0.01),
            Expected::range(cleaning("RemoveDirs"), "", 10.0 / 590.0, 20.0 / 590.0).part(0.25),
            Expected::range(cleaning("RemoveFiles"), "", 10.0 / 366.0, 20.0 / 366.0).part(0.25),
        ]);
        rows
    },
    measure: |run| {
        let all = times(run, DM_SMR)?;
        let ratio = |times: &Times| times.run[0] / times.run[1];
        let mut measured: Vec<f64> = all.iter().map(ratio).collect();
        for at in [0, 3, 7] {
            let [stock, lazy] = all[at].cleaning;
            measured.push(lazy / stock);
        }
        Ok(measured.into())
    },
};

pub const SECTION_3_4_4: Experiment = Experiment {
    id: "lazy-section-3.4.4",
    title: "What lazy writeback costs: memory, mounting, the processor",
    source: traced!("CMU-CS-20-130, section 3.4.4, and section 3.3.3 for mounting"),
    expected: || {
        vec![
            Expected::value(
                "memory of a map of a million entries, journal of 10 GiB (computed)",
                "MiB",
                53.0,
            )
            .part(0.1),
            Expected::value("mounting with a GiB in the journal", "s", 5.0).part(0.5),
            Expected::at_most("processor: lazy ÷ stock (medians of five runs)", "", 1.03).ours(),
        ]
    },
    measure: |run| {
        let memory = map_bytes(1_000_000, 10 << 18) as f64 / f64::from(1 << 20);
        let [_, trace] = decode(run, FILES)?;
        let mount = trace.stage("Mount")?;
        let seconds = Player::new(run.disk(CMR)?).play(run, &mount.requests)?;
        let gib = trace.head.log_used as f64 / 262_144.0;
        let processor = Processor::decode()?;
        run.next(&format!(
            "the processor: measured {} with Linux {}",
            processor.date, processor.kernel
        ))?;
        Ok(vec![memory, seconds / gib, processor.ratio()].into())
    },
};

/// Bytes that so many entries of a map take with a journal of so many blocks, without what the allocator adds: 56 each,
/// sizeof(struct jmap_entry), and the heads of the lists that they are in (jmap_init in kernel/ext4-lazy/patches).
const fn map_bytes(entries: u64, journal: u64) -> u64 {
    let half = if journal / 2 > 64 { journal / 2 } else { 64 };
    let bits = half.ilog2();
    let bits = if bits < 24 { bits } else { 24 };
    entries * 56 + (8 << bits)
}

/// CPU seconds of the host for one load, in several runs; `boot` is without a load.
#[derive(serde::Deserialize)]
struct Processor {
    kernel: String,
    date: String,
    boot: Vec<f64>,
    stock: Vec<f64>,
    lazy: Vec<f64>,
}

impl Processor {
    fn decode() -> Result<Self, Stopped> {
        let text = include_str!("../traces/processor.json");
        serde_json::from_str(text).map_err(|error| Stopped::Trace {
            reason: format!("processor.json: {error}"),
        })
    }

    fn ratio(&self) -> f64 {
        let [boot, stock, lazy] = [&self.boot, &self.stock, &self.lazy].map(|all| median(all));
        (lazy - boot) / (stock - boot)
    }
}

fn median(all: &[f64]) -> f64 {
    let mut sorted = all.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_source_says_what_the_traces_say() {
        for (name, packed) in [DIRECTORIES, FILES, JOURNALS].concat() {
            let head = GuestTrace::decode(name, packed).unwrap().head;
            let is = format!("Linux {} of {}, seed {}", head.kernel, head.date, head.seed);
            assert!(TABLE_3_2.source.ends_with(&is), "{name}: {is}");
        }
    }
}
