//! What a store loses to one damage, or two: random damages to stores with two copies of their metadata, each
//! followed by a mount, a look at every byte, a scrub, a check and another mount.
//!
//! Drives are in memory, so a flush has nothing to do: what was acknowledged is there. Every damage follows from the seed
//! and its number, so one can be tried again.

mod report;
mod strike;
mod trial;
mod world;

pub use report::{Outcome, Report};

use crate::error::Result;
use crate::together::together;
use crate::watch::Watch;
use runtime::sync::Mutex;
use world::World;

/// What is tried.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many damages.
    pub damages: u64,
    /// What they follow from.
    pub seed: u64,
    /// The first one's number.
    pub first: u64,
    /// Two at a time: nothing may be silent then, but a mount may be refused and objects lost.
    pub two: bool,
    /// How many are tried side by side.
    pub threads: u32,
}

/// Tries all.
///
/// # Errors
/// Of making the stores, and that it was interrupted.
pub fn run(options: &Options, watch: &dyn Watch) -> Result<Report> {
    watch.steps(options.damages);
    watch.measures("stores to damage".to_owned());
    let worlds = (0..World::COUNT).map(|number| World::new(options.seed, number));
    let worlds: Vec<World> = worlds.collect::<Result<_>>()?;
    watch.measures("damages".to_owned());
    let report = Mutex::new(Report::default());
    together(options.threads, options.damages, watch, |number| {
        let number = options.first.wrapping_add(number);
        let mut random = fastrand::Rng::with_seed(options.seed);
        random = fastrand::Rng::with_seed(random.u64(..) ^ number);
        let world = &worlds[random.usize(..worlds.len())];
        let strikes = strike::strikes(world, if options.two { 2 } else { 1 }, &mut random);
        let what = strike::words(&strikes);
        let outcome = trial::outcome(world, &strikes, options.two);
        report.lock().add(number, strikes[0].kind(), &what, outcome);
        watch.step();
        Ok(())
    })?;
    Ok(report.into_inner())
}
