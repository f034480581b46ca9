//! Measures what a store loses to one damage, or to two: random damages to stores with two copies of their metadata,
//! each followed by a mount, a read of every byte, a scrub, another mount and a check.
//!
//! Drives are in memory, where a flush has nothing to do: acknowledged data is there. Every damage follows from the
//! seed and its number, so that a single one can be repeated.

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

/// The parameters of the trials.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Number of trials.
    pub damages: u64,
    /// Seed of the stores and the damages.
    pub seed: u64,
    /// Number of the first trial.
    pub first: u64,
    /// Whether a trial has two damages: then a mount may be refused and objects may be lost, but no data may be
    /// wrong.
    pub two: bool,
    /// Trials at the same time.
    pub threads: u32,
}

/// Runs all trials.
///
/// # Errors
/// A store cannot be made, or the watch has stopped the benchmark.
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
