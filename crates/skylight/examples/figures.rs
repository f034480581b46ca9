//! The figures of docs/skylight.md, from the models of the drives of the paper.
//!
//! `cargo run --release -p skylight --example figures -- docs/figures/skylight [SEED]`

use skylight::cliff;
use skylight::html::{figures, plot};
use skylight::{Model, Options, Random, examine_for_figures};
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

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("the folder to write into?")?;
    let seed = arguments.next().map_or(Ok(1), |seed| seed.parse())?;
    let folder = Path::new(&folder);
    fs::create_dir_all(folder)?;
    let mut drives = Vec::new();
    for name in CLIFF {
        let mut model = Model::named(name, seed)?;
        let mut random = Random::new(seed);
        drives.push((
            name,
            cliff::random_writes(&mut model, &mut random, 4_000.0, 20.0)?,
        ));
        println!("{name}: random writes");
    }
    fs::write(
        folder.join("3.1.svg"),
        plot::document(&cliff::figure(&drives)),
    )?;
    for (name, shown) in DRIVES {
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
