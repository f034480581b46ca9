//! Measures how long clusters of up to 10,000 drives take to simulate, and prints their results: with turns that
//! drives have as they come, and with shifts where the ring has zones. Clusters of 8 and of 32 drives come first.
//!
//! `cargo run --release -p sim --example scale [NODES DRIVES ZONES TURN WARM_UP SECONDS]`

use drive_model::{Profile, Span};
use sim::cluster::{
    Coordination, Fleet, Impossible, Load, Redundancy, Report, Scenario, Simulation, Until,
};
use sim::policy::Policy;
use std::time::Instant;

fn main() -> Result<(), Impossible> {
    let fleet = Fleet {
        profile: Profile::named("hm-smr-14tb")?,
        models: false,
        zones: 100,
        utilization: 0.7,
        free_zones: "2..8".parse().unwrap_or_default(),
        pace: zone_alloc::Pace::Full,
        policy: Policy::CostBenefit,
    };
    let (disks, layout) = fleet.build(1 << 20, 1)?;
    let words: Vec<u32> = std::env::args()
        .skip(1)
        .flat_map(|word| word.parse())
        .collect();
    let all = match words[..] {
        [nodes, drives, zones, turn, warm_up, time] => {
            vec![(nodes, drives, zones, turn, warm_up, time)]
        }
        _ => vec![
            (8, 1, 1, 30, 300, 600),
            (8, 4, 1, 30, 300, 600),
            (400, 25, 1, 10, 60, 60),
            (400, 25, 4, 10, 60, 60),
        ],
    };
    for (nodes, drives_per_node, failure_zones, turn, warm_up, time) in all {
        let mut reports = Vec::new();
        for (_, coordination, _) in Coordination::ALL {
            let scenario = Scenario {
                seed: 1,
                nodes,
                drives_per_node,
                failure_zones,
                proxies: (nodes * drives_per_node).div_ceil(32),
                partitions_a_drive: 100,
                redundancy: Redundancy::Replicas(3),
                object_bytes: 1 << 20,
                disks: disks.clone(),
                layout: layout.clone(),
                link_bytes_per_second: 1_250_000_000,
                hop: Span::from_micros(50.0),
                after_quorum: Span::from_seconds(0.5),
                coordination,
                news_delay: Span::from_seconds(1.0),
                turn: Span::from_seconds(f64::from(turn)),
                budget_percent: 25,
                lost: None,
            };
            let load = Load {
                per_second: f64::from(nodes * drives_per_node) * 5.0,
                reads: 0.9,
                readers: 0,
                writers: 0,
                overwrites: true,
                warm_up_seconds: f64::from(warm_up),
                until: Until::Seconds(f64::from(time)),
            };
            let began = Instant::now();
            let mut simulation = Simulation::new(&scenario)?;
            let built = began.elapsed();
            let report = simulation.run(&load, &mut |_| true)?;
            let (drives, all) = (nodes * drives_per_node, began.elapsed());
            println!(
                "{drives} drives in {failure_zones} zones: {all:.1?}, of that {built:.1?} to build; {} events",
                report.events
            );
            reports.push(report);
        }
        for row in Report::rows(&reports) {
            println!("{}", row.join(" | "));
        }
    }
    Ok(())
}
