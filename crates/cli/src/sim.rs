//! `zonestore sim`: simulations of what the cleaners decide.

use crate::args::{Placement, Policy, SimCleaning, SimCommand};
use crate::errors::{CommandError, CommandResult, Exit};
use crate::output::Output;
use ::sim::baseline::{Fifo, Random};
use ::sim::cleaning::{Load, Outcome, Skew};
use ::sim::{closed_form, placement};
use clap::ValueEnum;
use serde::Serialize;
use terminal::Progress;
use zone_alloc::{CleaningPolicy, CostBenefit, Greedy};

/// Runs the command.
pub fn run(command: SimCommand, out: &mut Output) -> CommandResult {
    match command {
        SimCommand::Cleaning(arguments) => cleaning(&arguments, out),
    }
}

/// One policy's figures.
#[derive(Serialize)]
struct Row {
    policy: String,
    blocks_written: u64,
    blocks_moved: u64,
    zones_cleaned: u64,
    write_amplification: f64,
    theory: Option<f64>,
}

fn cleaning(arguments: &SimCleaning, out: &mut Output) -> CommandResult {
    let load = Load {
        zones: arguments.zones,
        blocks_per_zone: arguments.blocks_per_zone,
        utilization: arguments.utilization,
        skew: arguments.skew.map(|skew| Skew {
            data: skew.0 / 100.0,
            writes: skew.1 / 100.0,
            shifts: arguments.shifting,
        }),
        placement: match arguments.placement {
            Placement::Mixed => placement::Placement::Mixed,
            Placement::MovedApart => placement::Placement::MovedApart,
            Placement::ByHeat => placement::Placement::ByHeat,
            Placement::ByLifetime => placement::Placement::ByLifetime,
            Placement::Sepbit => placement::Placement::SepBit,
        },
        writes: arguments.writes,
        seed: arguments.seed,
    };
    if load.writes == 0 {
        return Err(
            CommandError::new(Exit::Usage, "nothing to count").hint("--writes takes 1 or more")
        );
    }
    let policies = if arguments.policy.is_empty() {
        Policy::value_variants()
    } else {
        &arguments.policy[..]
    };
    let mut rows = Vec::new();
    for policy in policies {
        let name = policy.to_possible_value();
        let name = name.map_or_else(String::new, |name| name.get_name().to_owned());
        let progress = Progress::steps(&name, None);
        let outcome = load
            .run(&*made(*policy, load.seed), |done, all| {
                progress.set_of(done, all)
            })
            .map_err(|error| CommandError::new(Exit::Usage, error))?;
        rows.push(row(*policy, name, &load, outcome));
    }
    let mut table = vec![
        ["policy", "write amplification", "theory", "ratio"]
            .map(str::to_owned)
            .to_vec(),
    ];
    table.extend(rows.iter().map(|row| {
        let or_dash =
            |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |v| format!("{v:.3}"));
        vec![
            row.policy.clone(),
            format!("{:.3}", row.write_amplification),
            or_dash(row.theory),
            or_dash(row.theory.map(|theory| row.write_amplification / theory)),
        ]
    }));
    out.table(&[0], &table)?;
    out.value(&rows)
}

fn made(policy: Policy, seed: u64) -> Box<dyn CleaningPolicy> {
    match policy {
        Policy::Greedy => Box::new(Greedy),
        Policy::CostBenefit => Box::new(CostBenefit),
        Policy::Fifo => Box::new(Fifo),
        Policy::Random => Box::new(Random { seed }),
    }
}

fn row(policy: Policy, name: String, load: &Load, outcome: Outcome) -> Row {
    let u = load.utilization;
    let theory = match (load.skew, policy) {
        (Some(skew), _) => Some(closed_form::two_groups(u, skew.data, skew.writes)),
        (None, Policy::Greedy) => Some(closed_form::greedy(u, load.blocks_per_zone)),
        (None, Policy::Fifo) => Some(closed_form::fifo(u)),
        (None, Policy::Random) => Some(closed_form::random(u)),
        (None, Policy::CostBenefit) => None,
    };
    Row {
        policy: name,
        blocks_written: outcome.written,
        blocks_moved: outcome.moved,
        zones_cleaned: outcome.cleaned,
        write_amplification: outcome.write_amplification(),
        theory,
    }
}
