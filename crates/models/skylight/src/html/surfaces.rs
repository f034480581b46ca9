//! The figures of test 14: what sequential reads say of surfaces.

use crate::examine::Observations;
use crate::strokes::narrow;
use crate::test::t14_zone_structure;
use drive_model::{BLOCK_BYTES, Lba};
use plot::{Figure, LATENCY, Panel, thinned, thinning};

const GIB: f64 = 1_073_741_824.0;
const MIB: f64 = 1_048_576.0;

/// Reads of a mebibyte whose mean rate is one point.
const MEAN_OF: usize = 256;

fn rate(times: &[f64], bytes: f64) -> f64 {
    bytes * times.len() as f64 / 1e6 / (times.iter().sum::<f64>() / 1e3).max(1e-9)
}

/// Figure 2.22.
pub fn throughput(seen: &Observations) -> Option<Figure> {
    let seen = seen.zone_structure.as_ref()?;
    let tb = |lba: &Lba| lba.0 as f64 * BLOCK_BYTES as f64 / 1e12;
    let across = seen.across.iter().map(|(lba, rate)| (tb(lba), rate / 1e6));
    let mut panels = vec![
        Panel::new(
            "the whole drive",
            "place on the drive (TB)",
            "throughput (MB/s)",
        )
        .points("", across.collect()),
    ];
    let (times, each, of) = if seen.begin.is_empty() {
        let two_gib = seen.fine.len().min(1 << 15);
        (&seen.fine[..two_gib], t14_zone_structure::FINE, 64)
    } else {
        (seen.begin.as_slice(), t14_zone_structure::COARSE, MEAN_OF)
    };
    let bytes = (each * BLOCK_BYTES) as f64;
    let mut second = 0.0;
    let mut zoom: Vec<(f64, f64)> = Vec::new();
    for chunk in times.chunks_exact(of) {
        zoom.push((second, rate(chunk, bytes)));
        second += chunk.iter().sum::<f64>() / 1e3;
    }
    let (zoom, every) = thinned(&zoom);
    panels.push(
        Panel::new(
            format!("its first {:.0} GiB", times.len() as f64 * bytes / GIB),
            "time (s)",
            "throughput (MB/s)",
        )
        .line("", zoom),
    );
    Some(Figure {
        number: "2.22",
        title: "Throughput of sequential reads",
        caption: format!(
            "Test 14. Above, 8 MiB in each of {} places (the paper reads the whole drive): two rates side \
             by side are two surfaces. Below, all of the first part, the mean of every {:.0} MiB: a \
             plateau is a stretch on one surface.{}",
            seen.across.len(),
            of as f64 * bytes / MIB,
            thinning(every)
        ),
        panels,
    })
}

/// Figure 2.26.
pub fn structure(seen: &Observations) -> Option<Figure> {
    let seen = seen.zone_structure.as_ref()?;
    let bytes = |reads: usize, each: u64| reads as f64 * (each * BLOCK_BYTES) as f64;
    let place = "place on the drive (MiB)";
    if !seen.begin.is_empty() {
        let each = t14_zone_structure::COARSE;
        let means = seen.begin.chunks(MEAN_OF).enumerate().map(|(n, chunk)| {
            let at = bytes(n * MEAN_OF, each) / GIB;
            (at, chunk.iter().sum::<f64>() / chunk.len() as f64)
        });
        let (points, every) = thinned(&means.collect::<Vec<_>>());
        return Some(Figure {
            number: "2.26",
            title: STRUCTURE,
            caption: format!(
                "Test 14: reads of 1 MiB one behind the other, another always waiting, the mean of every \
                 256: each plateau is a stretch on one surface.{}",
                thinning(every)
            ),
            panels: vec![Panel::new("", "place on the drive (GiB)", LATENCY).line("", points)],
        });
    }
    // As many as show the way down through the surfaces and up again, twice.
    let each = t14_zone_structure::FINE;
    let strokes = narrow(&seen.fine, seen.turn_ms);
    let shown = strokes.get(..40).unwrap_or(&strokes);
    let end = shown.last().map_or(0, |last| last.first + last.reads);
    let reads = seen.fine[..end].iter().enumerate();
    let reads: Vec<(f64, f64)> = reads.map(|(n, ms)| (bytes(n, each) / MIB, *ms)).collect();
    let (points, every) = thinned(&reads);
    let rates = shown.iter().flat_map(|stroke| {
        let at = |n: usize| bytes(stroke.first + n, each) / MIB;
        // The logarithm is of reads a millisecond.
        let rate = stroke.rate.exp() * bytes(1, each) / 1e3;
        [(at(0), rate), (at(stroke.reads), rate)]
    });
    Some(Figure {
        number: "2.26",
        title: STRUCTURE,
        caption: format!(
            "Test 14: reads of 64 KiB one behind the other, another always waiting. The lower spikes are \
             changes of the track, the higher ones of the surface. Below, how fast reads between them \
             are, by stroke: down through the surfaces and up again.{}",
            thinning(every)
        ),
        panels: vec![
            Panel::new("", place, LATENCY).points("", points),
            Panel::new("within tracks", place, "throughput (MB/s)").line("", rates.collect()),
        ],
    })
}

const STRUCTURE: &str = "Latency of sequential reads, down through the surfaces and up again";
