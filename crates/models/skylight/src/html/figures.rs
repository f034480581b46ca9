//! What the tests have seen, as the main document's figures.

use super::surfaces;
use crate::examine::Observations;
use crate::fill::Filled;
use crate::samples::Samples;
use crate::statistics::median;
use crate::test::t02_cache_place::REGIONS;
use crate::test::t06_cache_size::Load;
use crate::test::{t11_band_size, t12_mapping};
use drive_model::{BLOCK_BYTES, Lba};
use plot::{Figure, LATENCY, Panel, numbered, thinned, thinning};

const OPERATION: &str = "operation";
const MIB: f64 = 1_048_576.0;

/// The figures for which something was measured, in their order.
pub fn figures(seen: &Observations) -> Vec<Figure> {
    [
        drive_type(seen),
        by_size(seen),
        cache_place(seen),
        cleaning_type(seen),
        over_time(seen),
        three_steps(seen),
        cache_size(seen),
        entries(seen),
        repeated(seen),
        shuffled(seen),
        band_size(seen),
        mapping(seen),
        surfaces::throughput(seen),
        surfaces::structure(seen),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Samples as points, with what has to be said of them.
fn sampled(samples: &Samples) -> (Vec<(f64, f64)>, String) {
    let (points, stretch) = thinned(&samples.points());
    // What was kept is two of every step already.
    let of = if stretch == 1 {
        samples.step()
    } else {
        samples.step() * stretch / 2
    };
    (points, thinning(of))
}

fn drive_type(seen: &Observations) -> Option<Figure> {
    let seen = seen.drive_type.as_ref()?;
    Some(Figure {
        number: "2.4",
        title: "Kind of drive: latency of random writes",
        caption: "Test 1: 256 blocks of 4 KiB in the first GiB and 256 in the first 8 MiB, in random \
                  order, one at a time. A translation layer writes one behind the other, each as long \
                  after the last as a turn or a journal entry takes, or at once into flash; a \
                  conventional disk takes all kinds of times."
            .into(),
        panels: vec![
            Panel::new("", OPERATION, LATENCY)
                .points("within 1 GiB", numbered(&seen.wide))
                .points("within 8 MiB", numbered(&seen.narrow)),
        ],
    })
}

fn by_size(seen: &Observations) -> Option<Figure> {
    let all = seen.by_size.as_ref()?;
    let middle =
        |(blocks, latencies): &(u32, Vec<f64>)| (f64::from(*blocks) * 4.0, median(latencies));
    let mut panel = Panel::new("", OPERATION, LATENCY);
    for (blocks, latencies) in all {
        if [1, 7, 14, 21, 64].contains(blocks) {
            panel = panel.points(format!("{} KiB", blocks * 4), numbered(latencies));
        }
    }
    Some(Figure {
        number: "2.7",
        title: "Random writes of different sizes",
        caption: "After test 1: 256 random writes of each size, 31 at a time, with the volatile cache \
                  off. Below, the median by size: where 31 writes go into one journal entry, it grows \
                  in steps of what an entry is measured in."
            .into(),
        panels: vec![
            panel,
            Panel::new("median", "size of a write (KiB)", LATENCY)
                .points("", all.iter().map(middle).collect()),
        ],
    })
}

fn cache_place(seen: &Observations) -> Option<Figure> {
    let all = &seen.cache_place.as_ref()?.latencies;
    let mut panel = Panel::new("", "block of the region, in the order of reading", LATENCY);
    for (name, region) in [
        ("low addresses", 0),
        ("in the middle", all.len() / 2),
        ("high addresses", all.len().checked_sub(1)?),
    ] {
        panel = panel.points(name, numbered(all.get(region)?));
    }
    let quickest = |(part, latencies): (f64, &Vec<f64>)| {
        (part * 100.0, crate::statistics::quantile(latencies, 0.08))
    };
    Some(Figure {
        number: "2.8",
        title: "Place of the cache: fragmented reads",
        caption: "Test 2: 96 blocks of a region of 16 MiB were written in random order, so they are in \
                  the cache; each is read behind its neighbour, which is in its own place. Below, the \
                  quickest reads of seven regions, which is the way alone: it grows with the distance \
                  from the cache. The paper reads 1,024 blocks of which every other was written."
            .into(),
        panels: vec![
            panel,
            Panel::new("quickest twelfth", "place on the drive (% of its blocks)", LATENCY)
                .line("", REGIONS.into_iter().zip(all).map(quickest).collect()),
        ],
    })
}

fn cleaning_type(seen: &Observations) -> Option<Figure> {
    let seen = seen.cleaning_type.as_ref()?;
    let (seconds, _) = seen.after.last()?;
    Some(Figure {
        number: "2.10",
        title: "Kind of cleaning: reads before and after a pause",
        caption: "Test 3: 64 blocks within 4 MiB, written in random order and each read behind its \
                  neighbour. A block in its own place comes after exactly one turn; one in the cache at \
                  any time. If they have moved in the pause, cleaning is aggressive."
            .into(),
        panels: vec![
            Panel::new("", OPERATION, LATENCY)
                .points("at once", numbered(&seen.latencies[0]))
                .points(
                    format!("after {seconds:.0} s of pause"),
                    numbered(&seen.latencies[1]),
                ),
        ],
    })
}

fn over_time(seen: &Observations) -> Option<Figure> {
    let reads = seen.over_time.as_ref()?;
    // Extremes would look like two latencies where they are mixed.
    const EVERY: usize = 4;
    let panels = reads.iter().map(|(minutes, latencies)| {
        let points = numbered(latencies).into_iter().step_by(EVERY).collect();
        let title = match *minutes {
            0.0 => "at once".to_owned(),
            minutes => format!("after {minutes:.0} minutes"),
        };
        Panel::new(title, "operation, in the order of writing", LATENCY).points("", points)
    });
    let panels = panels.collect();
    Some(Figure {
        number: "2.12",
        title: "Order of cleaning: reads after pauses",
        caption: format!(
            "Test 4: 4,096 random blocks are written one at a time and read in that order at once and \
             after 10, 30 and 50 minutes of pause. In a log they come at one latency; those that have \
             been cleaned, at any. Cleaning takes the oldest first if the varied part grows from the \
             left. One in {EVERY} is drawn."
        ),
        panels,
    })
}

fn three_steps(seen: &Observations) -> Option<Figure> {
    let reads = seen.three_steps.as_ref()?;
    let panels = reads.iter().map(|(minutes, latencies)| {
        let mut panel = Panel::new(
            format!("after {minutes:.0} min"),
            "operation, in the order of writing",
            LATENCY,
        );
        let all = numbered(latencies);
        for (name, step) in ["step 1: region", "step 2: anywhere", "step 3: region"]
            .into_iter()
            .zip(all.chunks(128))
        {
            panel = panel.points(name, step.to_vec());
        }
        panel
    });
    Some(Figure {
        number: "2.13",
        title: "Order of cleaning: whole bands at once",
        caption: "Test 5: 128 blocks of a region of 256 MiB, 128 of the whole drive, 128 others of the \
                  region, in random order; read in the order of writing. If a band is cleaned with all \
                  that the cache has of it, step 3 has moved with step 1, before step 2."
            .into(),
        panels: panels.collect(),
    })
}

fn filled(filled: &Filled, title: String) -> (Panel, String) {
    let title = match filled.beyond_ms {
        Some(ms) => format!("{title}; then {ms:.0} ms each"),
        None => title,
    };
    let (points, note) = sampled(&filled.latencies);
    let panel = Panel::new(title, OPERATION, LATENCY).logarithmic();
    (panel.points("", points), note)
}

fn cache_size(seen: &Observations) -> Option<Figure> {
    let mut fills: Vec<(u32, &Filled)> = (seen.fills.iter())
        .filter_map(|(load, filled)| match load {
            Load::Map => Some((1, filled)),
            Load::Bytes { blocks } => Some((*blocks, filled)),
            Load::Entries | Load::Fewer => None,
        })
        .collect();
    fills.sort_by_key(|(blocks, _)| *blocks);
    let mut note = String::new();
    fills.dedup_by_key(|(blocks, _)| *blocks);
    let panels: Vec<Panel> = (fills.iter())
        .map(|(blocks, fill)| {
            let until = if fill.stalled {
                format!("cleans after {}", fill.writes)
            } else {
                "never has to clean".into()
            };
            let (panel, of) = filled(fill, format!("{} KiB: {until}", blocks * 4));
            note = of;
            panel
        })
        .collect();
    (!panels.is_empty()).then(|| Figure {
        number: "2.15",
        title: "Size of the cache: writes of several sizes until it cleans",
        caption: format!(
            "Tests 7 and 8: writes spread over the drive, 31 at a time, into an empty cache. As many \
             operations of two sizes: the map is full; as many bytes: the cache is.{note}"
        ),
        panels,
    })
}

fn entries(seen: &Observations) -> Option<Figure> {
    let fill = seen.fills.iter().find(|(load, _)| *load == Load::Entries);
    let fill = &fill?.1;
    let (panel, note) = filled(fill, format!("cleans after {} writes", fill.writes));
    Some(Figure {
        number: "2.16",
        title: "Journal entries: random writes one at a time",
        caption: format!(
            "Test 6: writes of 4 KiB spread over the drive, one at a time, into an empty cache, and up \
             to 3,000 more once it cleans.{note}"
        ),
        panels: vec![panel],
    })
}

fn repeated(seen: &Observations) -> Option<Figure> {
    let seen = seen.circular_log.as_ref()?;
    let (panel, note) = filled(&seen.repeated, String::new());
    Some(Figure {
        number: "2.17",
        title: "Circular log: the same blocks in the same order",
        caption: format!(
            "Test 9: random blocks, 44 % of those that fill the cache, written again and again in the \
             same order, one at a time. The tail of a circular log holds only stale ones.{note}"
        ),
        panels: vec![panel],
    })
}

fn shuffled(seen: &Observations) -> Option<Figure> {
    let seen = seen.circular_log.as_ref()?;
    let (panel, note) = filled(
        &seen.shuffled,
        format!("cleans after {} writes", seen.shuffled.writes),
    );
    Some(Figure {
        number: "2.18",
        title: "Circular log: the same blocks in random order",
        caption: format!(
            "Test 10: as before, each write to a random one of the blocks. A circular log meets some \
             that are not stale at its tail and has to clean, once it has come round.{note}"
        ),
        panels: vec![panel],
    })
}

fn band_size(seen: &Observations) -> Option<Figure> {
    let grids = seen.bands.get(seen.bands.len() / 2)?;
    let coarse = grids.first()?;
    let (first, last) = (coarse.points.first()?.0, coarse.points.last()?.0);
    let run = t11_band_size::infer(coarse, Lba(first.0.midpoint(last.0)))?;
    let (least, most) = run.blocks();
    let margin = most.max(16 * coarse.step);
    let shown = run.front.0.0.saturating_sub(margin)..run.back.1.0 + margin;
    let offset = |lba: Lba| (lba.0 - first.0) as f64 * BLOCK_BYTES as f64 / MIB;
    let both = || coarse.points.iter().zip(&coarse.latencies);
    let of = |moved: bool| -> Vec<(f64, f64)> {
        both()
            .filter(|((lba, m), _)| *m == moved && shown.contains(&lba.0))
            .map(|((lba, _), latency)| (offset(*lba), *latency))
            .collect()
    };
    let mib = |blocks: u64| (blocks * BLOCK_BYTES) as f64 / MIB;
    Some(Figure {
        number: "2.19",
        title: "Size of a band",
        caption: format!(
            "Test 11: a block in every {:.0} MiB was written in random order, some were cleaned, and each \
             is read behind its neighbour. Where a band was cleaned they are in their own places, a turn \
             behind it: here over {:.0} to {:.0} MiB. Finer grids over its edges say more exactly.",
            mib(coarse.step),
            mib(least),
            mib(most)
        ),
        panels: vec![
            Panel::new("", "place within the region (MiB)", LATENCY)
                .points("in its own place", of(true))
                .points("in the cache", of(false)),
        ],
    })
}

fn mapping(seen: &Observations) -> Option<Figure> {
    let seen = seen.mapping.as_ref()?;
    let one = |all: &[f64]| numbered(&all[..all.len() / t12_mapping::BANDS as usize]);
    Some(Figure {
        number: "2.21",
        title: "Mapping: reads between two bands before and after one was cleaned",
        caption:
            "Test 12: 16 KiB of one stretch and 16 KiB of another in turn, 128 times; then blocks \
                  of the second are written and its band is cleaned; then the same reads. The same \
                  pattern: the band is where it was."
                .into(),
        panels: vec![
            Panel::new("before", OPERATION, LATENCY).points("", one(&seen.before)),
            Panel::new("after", OPERATION, LATENCY).points("", one(&seen.after)),
        ],
    })
}
