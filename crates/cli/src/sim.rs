//! `zonestore sim`: simulations of what the cleaners decide.

use crate::args::{SimCleaning, SimCommand, wanted};
use crate::errors::{CommandError, CommandResult, Exit, fail};
use crate::output::Output;
use ::sim::cleaning::{Load, Skew};
use ::sim::policy::{Cost, Policy};
use terminal::Progress;

/// Runs the command.
pub fn run(command: SimCommand, out: &mut Output) -> CommandResult {
    match command {
        SimCommand::Cleaning(arguments) => cleaning(&arguments, out),
    }
}

fn cleaning(arguments: &SimCleaning, out: &mut Output) -> CommandResult {
    let load = Load {
        zones: arguments.zones,
        blocks_per_zone: arguments.blocks_per_zone,
        utilization: arguments.utilization,
        skew: arguments.skew.map(|skew| Skew {
            shifts: arguments.shifting,
            ..skew
        }),
        placement: arguments.placement,
        writes: arguments.writes,
        seed: arguments.seed,
    };
    if load.writes == 0 {
        return fail!(Usage, "nothing to count"; "--writes takes 1 or more");
    }
    let measure = |policy: Policy| {
        let progress = Progress::steps(policy.name(), None);
        let cost = policy.measure(&load, |done, all| progress.set_of(done, all));
        cost.map_err(|error| CommandError::new(Exit::Usage, error))
    };
    let policies = wanted(&Policy::ALL, &arguments.policy).into_iter();
    let costs: Vec<Cost> = policies.map(measure).collect::<CommandResult<_>>()?;
    out.table(&[0], &Cost::rows(&costs))?;
    out.value(&costs)
}
