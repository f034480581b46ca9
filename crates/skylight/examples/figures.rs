//! The figures of docs/skylight.md, from the models of the drives of the paper.
//!
//! `cargo run --release -p skylight --example figures -- docs/figures/skylight [SEED]`

use skylight::html::{figures, page, plot};
use skylight::{Model, Options, Target, examine_for_figures};
use std::error::Error;
use std::fs;
use std::path::Path;

/// The drives that have a chapter in the document, and the conventional one beside them.
const DRIVES: [&str; 6] = [
    "emulated-smr-1",
    "emulated-smr-2",
    "emulated-smr-3",
    "seagate-cmr",
    "st5000as0011",
    "wd40nmzw",
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("the folder to write into?")?;
    let seed = arguments.next().map_or(Ok(1), |seed| seed.parse())?;
    let folder = Path::new(&folder);
    fs::create_dir_all(folder)?;
    for name in DRIVES {
        let mut model = Model::named(name, seed)?;
        let options = Options { quick: false, seed };
        let (found, seen, result) = examine_for_figures(&mut model, options, &mut |_| {});
        result?;
        for figure in figures::figures(&seen) {
            let file = format!("{}-{name}.svg", figure.number);
            fs::write(folder.join(file), plot::document(&figure))?;
        }
        if std::env::var_os("SKYLIGHT_PAGES").is_some() {
            let page = page(name, model.blocks(), &found, &seen);
            fs::write(folder.join(format!("{name}.html")), page)?;
        }
        println!("{name}");
    }
    Ok(())
}
