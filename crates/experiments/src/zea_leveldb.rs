//! LevelDB on ZEAFS, on ext4 and on BlueFS, on the models of a host-managed and of a drive-managed disk.
//!
//! The requests of Debian's LevelDB were recorded once, at a quarter of the printed load. The drives are models with
//! their caches on; the host's own time is not counted.

use crate::expected::Expected;
use crate::experiment::{Experiment, Outcome, Run, Stopped};
use crate::guest_replay::Player;
use crate::guest_trace::Traced;
use crate::leveldb_trace::{LevelDbTrace, Load};
use drive_model::{Profile, Request, RequestKind};
use plot::{Figure, Panel};
use std::collections::BTreeSet;

/// The host-managed disk: more tracks than the paper's HDA, and younger.
const HDA: &str = "hm-smr-14tb";
/// The drive-managed disk, of 8 TB.
const HDB: &str = "st8000as0002";
/// Bytes of values.
const SIZES: [u64; 4] = [4 << 10, 32 << 10, 256 << 10, 2 << 20];

const TRACES: [&[u8]; 3] = [
    include_bytes!("../traces/leveldb-ext4.zst"),
    include_bytes!("../traces/leveldb-zeafs.zst"),
    include_bytes!("../traces/leveldb-bluefs.zst"),
];

/// A file system on a drive: index in [`TRACES`], the drive, words for both, and whether the requests go through a
/// page cache of the host.
///
/// In the paper they do where zones are emulated on HDB; the requests of ext4 were recorded below it. Under ext4, HDA
/// has no zones, as with its own firmware.
const BEDS: [(usize, &str, &str, bool); 5] = [
    (0, HDB, "ext4 on HDB", false),
    (1, HDB, "ZEAFS on HDB", true),
    (0, HDA, "ext4 on HDA", false),
    (1, HDA, "ZEAFS on HDA", false),
    (2, HDA, "BlueFS on HDA", false),
];
/// Index in [`BEDS`] of ext4 on each drive; the next one is ZEAFS on the same drive.
const OF_EXT4: [(usize, &str); 2] = [(0, "HDB"), (2, "HDA")];

/// The least number of blocks that the page cache reads: Linux's 128 KiB.
const READ_AHEAD: u32 = 32;

/// Kinds of operations: name, whether they are synced, and whether they read.
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
        let row = |(kind, disk): (usize, &str)| {
            let (words, _, reads) = KINDS[kind];
            let row = move |size: u64| {
                let what = format!("{words} of {} KiB on {disk}: ZEAFS ÷ ext4", size >> 10);
                // There, nothing reads ahead for ZEAFS: its gets are not as fast, except for one size.
                if reads && disk == "HDA" && size != 256 << 10 {
                    Expected::at_most(what, "", 1.0).by(0.05)
                } else {
                    Expected::at_least(what, "", 1.0).by(0.05)
                }
            };
            SIZES.map(row)
        };
        compared().flat_map(row).collect()
    },
    measure: |run| {
        let traces = TRACES.map(LevelDbTrace::decode);
        let traces = traces.into_iter().collect::<Result<Vec<_>, _>>()?;
        let mut rates = Vec::new();
        for (trace, drive, words, cached) in BEDS {
            run.next(&format!(
                "{words}, recorded {} with Linux {}",
                traces[trace].head.date, traces[trace].head.kernel
            ))?;
            let mut profile = Profile::named(drive)?;
            if trace == 0 {
                profile.zones = None;
            }
            rates.push(measured(run, &traces[trace], &profile, cached)?);
        }
        let ratios = OF_EXT4.iter().flat_map(|(bed, _)| {
            let (ext4, zeafs) = (
                rates[*bed].iter().flatten(),
                rates[bed + 1].iter().flatten(),
            );
            zeafs.zip(ext4).map(|(zeafs, ext4)| zeafs / ext4)
        });
        let outcome = Outcome::from(ratios.collect::<Vec<f64>>());
        let panels = KINDS.iter().enumerate().map(|(kind, (title, ..))| {
            let panel = Panel::new(*title, "KiB of a value", "MiB/s").logarithmic();
            rates
                .iter()
                .zip(BEDS)
                .fold(panel, |panel, (rates, (_, _, words, _))| {
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

/// Kinds of operations with drives, in the order of the rows.
fn compared() -> impl Iterator<Item = (usize, &'static str)> {
    let of = |(_, disk)| (0..KINDS.len()).map(move |kind| (kind, disk));
    OF_EXT4.into_iter().flat_map(of)
}

/// MiB/s of values, by kind of operation and size.
fn measured(
    run: &mut Run<'_>,
    trace: &LevelDbTrace,
    drive: &Profile,
    cached: bool,
) -> Result<[Vec<f64>; 3], Stopped> {
    let mut rates: [Vec<f64>; 3] = Default::default();
    for value in SIZES {
        for synced in [false, true] {
            let mut player = match drive.zones {
                Some(_) => Player::with_zones(drive.zoned(run.seed)?),
                None => Player::new(drive.drive(run.seed)?),
            };
            for (kind, (_, of_synced, reads)) in KINDS.iter().enumerate() {
                if *of_synced == synced {
                    let stage = trace.stage(Load { value, synced }, *reads)?;
                    let seconds = match cached {
                        true => player.play(run, &through_page_cache(&stage.requests))?,
                        false => player.play(run, &stage.requests)?,
                    };
                    rates[kind].push(stage.moved as f64 / f64::from(1 << 20) / seconds);
                }
            }
        }
    }
    Ok(rates)
}

/// The requests that remain behind a page cache which is empty at first and never evicts: blocks that were written or
/// read are not read again, and each read is of at least [`READ_AHEAD`] blocks.
fn through_page_cache(requests: &[Traced]) -> Vec<Traced> {
    let mut held = BTreeSet::new();
    let mut left = Vec::new();
    for traced in requests {
        let mut traced = *traced;
        let blocks = |request: &Request| request.lba.0..request.end().0;
        match traced.request.operation {
            RequestKind::Write => held.extend(blocks(&traced.request)),
            RequestKind::Read => {
                if blocks(&traced.request).all(|block| held.contains(&block)) {
                    continue;
                }
                traced.request.blocks = traced.request.blocks.max(READ_AHEAD);
                held.extend(blocks(&traced.request));
            }
            _ => {}
        }
        left.push(traced);
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use drive_model::Lba;

    #[test]
    fn a_page_cache_has_what_was_written_and_reads_ahead() {
        let asked = [
            Request::write(Lba(8), 4),
            Request::read(Lba(9), 2),
            Request::read(Lba(11), 2),
            Request::read(Lba(40), 3),
            Request::flush(),
        ];
        let asked = asked.map(|request| Traced {
            request,
            content: None,
            ahead: false,
        });
        let left: Vec<Request> = through_page_cache(&asked)
            .iter()
            .map(|t| t.request)
            .collect();
        let expected = [
            Request::write(Lba(8), 4),
            Request::read(Lba(11), 32),
            Request::flush(),
        ];
        assert_eq!(left, expected);
    }
}
