//! The figures of docs/skylight.md, from the models of the drives of the paper.
//!
//! `cargo run --release -p skylight --example figures -- docs/figures/skylight [SEED [NAME…]]`: all of
//! them, or figure `3.1` and those of the drives that are named.

use skylight::cliff;
use skylight::html::{figures, plot};
use skylight::{Model, Options, Random, Target, examine_for_figures};
use std::error::Error;
use std::fs;
use std::path::Path;

/// The drives, and the figures that the paper has of them.
const DRIVES: [(&str, &[&str]); 5] = [
    ("emulated-smr-1", &["2.4", "2.8", "2.10", "2.19", "2.21"]),
    ("emulated-smr-2", &["2.4", "2.8", "2.10", "2.19", "2.21"]),
    ("emulated-smr-3", &["2.4", "2.8", "2.10", "2.19", "2.21"]),
    ("seagate-cmr", &["2.4", "2.26"]),
    (
        "st5000as0011",
        &[
            "2.4", "2.7", "2.8", "2.10", "2.12", "2.13", "2.15", "2.16", "2.17", "2.18", "2.19",
            "2.21", "2.22", "2.26",
        ],
    ),
];

/// Those of figure 3.1.
const CLIFF: [&str; 5] = [
    "st8000as0002",
    "st5000as0011",
    "st4000lm016",
    "wd40nmzw",
    "wd5000ys",
];

/// Seconds that the figure shows, and that the drives go on behind them.
const SHOWN_SECONDS: f64 = 4_000.0;
const STEADY_SECONDS: f64 = 200_000.0;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("the folder to write into?")?;
    let seed = arguments.next().map_or(Ok(1), |seed| seed.parse())?;
    let only: Vec<String> = arguments.collect();
    let wanted = |name: &str| only.is_empty() || only.iter().any(|only| only == name);
    let folder = Path::new(&folder);
    fs::create_dir_all(folder)?;
    if wanted("3.1") {
        fs::write(folder.join("3.1.svg"), cliffs(seed)?)?;
    }
    for (name, shown) in DRIVES.into_iter().filter(|(name, _)| wanted(name)) {
        let mut model = Model::named(name, seed)?;
        let options = Options { quick: false, seed };
        let (_, seen, result) = examine_for_figures(&mut model, options, &mut |_| {});
        result?;
        for figure in figures::figures(&seen) {
            if shown.contains(&figure.number) {
                let file = format!("{}-{name}.svg", figure.number);
                fs::write(folder.join(file), plot::document(&figure))?;
            }
        }
        println!("{name}");
    }
    Ok(())
}

/// Figure 3.1 with the volatile cache off, and with it on. The steady state of a cache that cleans in the order
/// of writing comes when all of it has been written anew, in a day or two: that is printed, with the cache off.
fn cliffs(seed: u64) -> Result<String, Box<dyn Error>> {
    let mut drives = [cliff::Drives::new(), cliff::Drives::new()];
    for name in CLIFF {
        for (volatile_cache, drives) in [false, true].into_iter().zip(&mut drives) {
            let mut model = Model::named(name, seed)?;
            model.set_volatile_cache(volatile_cache);
            let mut random = Random::new(seed);
            let first = cliff::random_writes(&mut model, &mut random, SHOWN_SECONDS, 20.0)?;
            let state = if volatile_cache { "on" } else { "off" };
            println!(
                "{name}, volatile cache {state}: {:.1} writes a second at first, {:.2} in the last quarter \
                 of the figure",
                first.rate(0.0, 0.03),
                first.rate(0.75, 1.0)
            );
            if !volatile_cache {
                let later =
                    cliff::random_writes(&mut model, &mut random, STEADY_SECONDS, 20_000.0)?;
                let steady = later.rate(0.75, 1.0);
                println!("    {steady:.2} in the last quarter of {STEADY_SECONDS} s behind it");
            }
            drives.push((name, first));
        }
    }
    let [off, on] = &drives;
    Ok(plot::document(&cliff::figure(off, on)))
}
