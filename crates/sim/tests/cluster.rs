//! Simulated clusters compared with closed forms of queues, and properties that always hold.

use drive_model::layer::LayerShape;
use drive_model::{Profile, Span, profile};
use sim::closed_form;
use sim::cluster::{
    BackEnd, Calibrated, Coordination, Disks, Fleet, Impossible, Layout, Load, Lost, Redundancy,
    Report, Scenario, Service, Simulation, Sizes, Until, calibrate,
};
use sim::policy::Policy;
use std::sync::Arc;
use zone_alloc::Pace;

const MIB: u64 = 1 << 20;

fn ms(ms: f64) -> Span {
    Span::from_millis(ms)
}

fn served(read: Service, write: Service) -> Disks {
    Disks::Served(Arc::new(Calibrated {
        read,
        write,
        moved: Service::Constant(ms(10.0)),
        translation: None,
    }))
}

const ANYWHERE: Layout = Layout::Blocks {
    bytes: 1 << 40,
    utilization: 0.0,
};

/// One drive in one node, whose network takes no time.
fn single(disks: Disks) -> Scenario {
    Scenario {
        seed: 1,
        nodes: 1,
        drives_per_node: 1,
        failure_zones: 1,
        proxies: 1,
        partitions_a_drive: 100,
        redundancy: Redundancy::Replicas(1),
        object_bytes: MIB,
        disks,
        layout: ANYWHERE,
        link_bytes_per_second: 0,
        hop: Span::ZERO,
        after_quorum: Span::ZERO,
        coordination: Coordination::None,
        news_delay: ms(1_000.0),
        turn: ms(30_000.0),
        budget_percent: 100,
        lost: None,
    }
}

fn open(per_second: f64, reads: f64, seconds: f64) -> Load {
    Load {
        per_second,
        reads,
        readers: 0,
        writers: 0,
        overwrites: true,
        warm_up_seconds: seconds / 20.0,
        until: Until::Seconds(seconds),
    }
}

fn run(scenario: &Scenario, load: &Load) -> Report {
    let mut simulation = Simulation::new(scenario).unwrap();
    let report = simulation.run(load, &mut |_| true).unwrap();
    assert_eq!(report.begun, report.ended, "every request ends");
    report
}

#[track_caller]
fn near(found: f64, theory: f64, part: f64) {
    assert!((found / theory - 1.0).abs() < part, "{found} for {theory}");
}

#[test]
fn one_drive_with_constant_times_waits_as_md1() {
    for utilization in [0.3, 0.6, 0.8] {
        let disks = served(Service::Constant(ms(10.0)), Service::Constant(ms(10.0)));
        let report = run(&single(disks), &open(utilization * 100.0, 1.0, 4_000.0));
        near(
            report.reads.mean_ms,
            closed_form::md1_response(10.0, utilization),
            0.02,
        );
        near(report.drives_busy, utilization, 0.02);
    }
}

#[test]
fn one_drive_with_exponential_times_answers_as_mm1() {
    for utilization in [0.3, 0.7] {
        let disks = served(Service::Exponential(ms(10.0)), Service::Constant(ms(10.0)));
        let report = run(&single(disks), &open(utilization * 100.0, 1.0, 4_000.0));
        let mean = 10.0 / (1.0 - utilization);
        // The response time is exponential, too.
        near(report.reads.mean_ms, mean, 0.03);
        near(report.reads.p50_ms, mean * 2f64.ln(), 0.03);
        near(report.reads.p99_ms, mean * 100f64.ln(), 0.05);
    }
}

#[test]
fn a_quorum_is_the_order_statistic_of_its_parts() {
    let disks = || {
        served(
            Service::Exponential(ms(10.0)),
            Service::Exponential(ms(10.0)),
        )
    };
    for (redundancy, write, read) in [
        // Write: the second of three, 1/3 + 1/2. Read: any one.
        (
            Redundancy::Replicas(3),
            closed_form::order_statistic(3, 2),
            1.0,
        ),
        // Write: the fifth of six. Read: all of four.
        (
            Redundancy::Erasure { data: 4, parity: 2 },
            closed_form::order_statistic(6, 5),
            closed_form::order_statistic(4, 4),
        ),
    ] {
        let scenario = Scenario {
            nodes: 60,
            redundancy,
            ..single(disks())
        };
        // So few requests come that none waits for a drive.
        let report = run(&scenario, &open(5.0, 0.5, 8_000.0));
        near(report.writes.mean_ms, 10.0 * write, 0.03);
        near(report.reads.mean_ms, 10.0 * read, 0.03);
        // With a long wait for the last parts all of them count, with a short one only some.
        let of = |after: f64| {
            let scenario = Scenario {
                after_quorum: ms(after),
                ..scenario.clone()
            };
            run(&scenario, &open(5.0, 0.0, 4_000.0)).writes.mean_ms
        };
        let width = redundancy.width();
        near(
            of(500.0),
            10.0 * closed_form::order_statistic(width, width),
            0.03,
        );
        let some = of(5.0);
        assert!(some > 10.0 * write && some < 10.0 * write + 5.0, "{some}");
    }
}

#[test]
fn drives_are_busy_as_the_utilisation_law_says() {
    let scenario = Scenario {
        nodes: 8,
        drives_per_node: 2,
        redundancy: Redundancy::Replicas(3),
        ..single(served(
            Service::Constant(ms(8.0)),
            Service::Exponential(ms(15.0)),
        ))
    };
    let report = run(&scenario, &open(300.0, 0.8, 200.0));
    let theory = (report.reads_per_second * 0.008 + report.writes_per_second * 3.0 * 0.015) / 16.0;
    near(report.drives_busy, theory, 0.02);
}

#[test]
fn throughput_reaches_what_links_and_drives_give_and_no_more() {
    let clients = |readers, writers| Load {
        readers,
        writers,
        ..open(0.0, 0.0, 60.0)
    };
    // Each of two proxies sends three copies of what is written.
    let fast = || served(Service::Constant(ms(0.1)), Service::Constant(ms(0.1)));
    let network = Scenario {
        nodes: 8,
        proxies: 2,
        redundancy: Redundancy::Replicas(3),
        link_bytes_per_second: 100 * MIB,
        ..single(fast())
    };
    let report = run(&network, &clients(0, 64));
    near(
        report.written_bytes_per_second,
        200.0 * MIB as f64 / 3.0,
        0.02,
    );
    assert!(report.written_bytes_per_second <= 201.0 * MIB as f64 / 3.0);
    let report = run(&network, &clients(64, 0));
    near(report.read_bytes_per_second, 200.0 * MIB as f64, 0.02);
    // Eight drives, each of which takes 20 ms for a copy.
    let drives = Scenario {
        disks: served(Service::Constant(ms(10.0)), Service::Constant(ms(20.0))),
        link_bytes_per_second: 0,
        ..network
    };
    let report = run(&drives, &clients(0, 256));
    near(report.writes_per_second, 8.0 * 50.0 / 3.0, 0.02);
}

/// Drives with zones, under writes that make them clean.
fn zoned(coordination: Coordination, nodes: u32) -> Scenario {
    Scenario {
        nodes,
        proxies: 4,
        redundancy: Redundancy::Replicas(3),
        coordination,
        news_delay: ms(200.0),
        layout: Layout::Zones {
            zones: 60,
            zone_bytes: 64 * MIB,
            utilization: 0.7,
            free_zones: "2..6".parse().unwrap(),
            pace: Pace::Full,
            policy: Policy::Greedy,
        },
        link_bytes_per_second: 1_250_000_000,
        hop: Span::from_micros(100.0),
        ..single(served(
            Service::Exponential(ms(12.0)),
            Service::Exponential(ms(14.0)),
        ))
    }
}

#[test]
fn with_turns_no_replica_is_cleaned_beside_another_unless_it_is_forced() {
    // One of nine drives at a time is as much as they need to clean.
    let load = open(200.0, 0.97, 300.0);
    let of = |coordination| run(&zoned(coordination, 9), &load);
    let [none, news, turns] = [Coordination::None, Coordination::News, Coordination::Turns].map(of);
    let cleaned = |report: &Report| report.cleaning.unwrap();
    assert!(
        cleaned(&none).beside > 0 && cleaned(&none).reads_from_cleaning > 0.02,
        "{none:?}"
    );
    assert_eq!(cleaned(&turns).beside, 0, "{turns:?}");
    assert!(cleaned(&turns).begun > 20, "{turns:?}");
    for better in [&news, &turns] {
        assert!(cleaned(better).reads_from_cleaning < cleaned(&none).reads_from_cleaning / 2.0);
    }
    // The amount of cleaning depends on what is written, not on the coordination.
    for other in [&news, &turns] {
        near(
            cleaned(other).write_amplification,
            cleaned(&none).write_amplification,
            0.25,
        );
    }
}

#[test]
fn the_budget_holds_but_for_those_that_are_forced() {
    let scenario = Scenario {
        budget_percent: 4,
        ..zoned(Coordination::Turns, 30)
    };
    let report = run(&scenario, &open(100.0, 0.5, 60.0));
    let cleaned = report.cleaning.unwrap();
    assert_eq!(cleaned.beside, 0);
    assert!(cleaned.begun > 0);
    // One of thirty, unless drives are forced.
    assert!(
        cleaned.forced > 0 || cleaned.time_part <= 1.0 / 30.0 + 1e-9,
        "{cleaned:?}"
    );
}

#[test]
fn by_shifts_many_clean_where_few_can_as_they_come() {
    let of = |failure_zones| {
        let scenario = Scenario {
            failure_zones,
            turn: ms(10_000.0),
            ..zoned(Coordination::Turns, 60)
        };
        run(&scenario, &open(400.0, 0.8, 120.0)).cleaning.unwrap()
    };
    let (come, shifts) = (of(1), of(3));
    assert_eq!((come.shifts, shifts.shifts), (None, Some(3)));
    assert_eq!((come.beside, shifts.beside), (0, 0));
    assert!(shifts.forced * 4 < come.forced, "{shifts:?} {come:?}");
    assert!(shifts.zones > come.zones, "{shifts:?} {come:?}");
}

#[test]
fn the_same_seed_gives_the_same_report_and_another_one_another() {
    let of = |seed| {
        let scenario = Scenario {
            seed,
            lost: Some(Lost {
                after_seconds: 2.0,
                bytes_per_second: 50 * MIB,
            }),
            ..zoned(Coordination::Turns, 8)
        };
        run(&scenario, &open(80.0, 0.6, 20.0))
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

#[test]
fn a_lost_drive_is_made_again_at_the_rate() {
    let scenario = Scenario {
        lost: Some(Lost {
            after_seconds: 5.0,
            bytes_per_second: 20 * MIB,
        }),
        ..zoned(Coordination::None, 12)
    };
    let report = run(&scenario, &open(20.0, 1.0, 200.0));
    let rebuilt = report.rebuild.unwrap();
    assert!(rebuilt.complete, "{rebuilt:?}");
    assert_eq!(rebuilt.bytes, rebuilt.of_bytes);
    near(rebuilt.bytes as f64, 0.7 * 60.0 * 64.0 * MIB as f64, 0.01);
    near(rebuilt.bytes_per_second, 20.0 * MIB as f64, 0.02);
    assert_eq!(rebuilt.read_bytes, rebuilt.bytes, "a copy is made of one");
    let coded = Scenario {
        redundancy: Redundancy::Erasure { data: 4, parity: 2 },
        ..scenario
    };
    let rebuilt = run(&coded, &open(20.0, 1.0, 250.0)).rebuild.unwrap();
    assert_eq!(
        rebuilt.read_bytes,
        4 * rebuilt.bytes,
        "a fragment is made of four"
    );
}

#[test]
fn writes_wait_for_zones_and_end_and_a_full_cluster_says_so() {
    // Cleaning takes longer than the load allows.
    let slow = Scenario {
        disks: Disks::Served(Arc::new(Calibrated {
            read: Service::Constant(ms(10.0)),
            write: Service::Constant(ms(2.0)),
            moved: Service::Constant(ms(60.0)),
            translation: None,
        })),
        ..zoned(Coordination::Turns, 6)
    };
    let load = Load {
        writers: 24,
        warm_up_seconds: 0.0,
        ..open(0.0, 0.0, 60.0)
    };
    let report = run(&slow, &load);
    let cleaned = report.cleaning.unwrap();
    assert!(
        cleaned.writes_waited > 0 && cleaned.forced > 0,
        "{cleaned:?}"
    );
    let filling = Load {
        overwrites: false,
        until: Until::Requests(1_000_000),
        ..load
    };
    let mut simulation = Simulation::new(&slow).unwrap();
    assert_eq!(
        simulation.run(&filling, &mut |_| true),
        Err(Impossible::Full)
    );
    // Here the write that waits is the last event.
    let one_by_one = Load {
        writers: 1,
        overwrites: false,
        until: Until::Seconds(1e5),
        ..open(0.0, 0.0, 60.0)
    };
    let alone = Scenario {
        nodes: 1,
        redundancy: Redundancy::Replicas(1),
        coordination: Coordination::None,
        ..slow.clone()
    };
    let mut simulation = Simulation::new(&alone).unwrap();
    assert_eq!(
        simulation.run(&one_by_one, &mut |_| true),
        Err(Impossible::Full)
    );
    let mut simulation = Simulation::new(&slow).unwrap();
    assert_eq!(
        simulation.run(&load, &mut |_| false),
        Err(Impossible::Interrupted)
    );
}

#[test]
fn drives_as_models_and_as_measured_of_the_model_are_alike_where_hardly_anything_waits() {
    let profile = Profile::named("hm-smr-14tb").unwrap();
    let sizes = Sizes {
        part: MIB,
        piece: MIB / 2,
        band_part: 1.0,
    };
    let times = calibrate(&profile, BackEnd::OneFlush, sizes, 1).unwrap();
    // Half a stroke, half a turn, a MiB at 175 to 220 MiB/s; and both ways to the log and back for a write.
    let read = times.read.mean().millis();
    assert!((12.0..25.0).contains(&read), "{read}");
    assert!(times.write.mean() > times.read.mean());
    let layout = |zones: u32| Layout::Zones {
        zones,
        zone_bytes: 256 * MIB,
        utilization: 0.6,
        free_zones: "1..2".parse().unwrap(),
        pace: Pace::Full,
        policy: Policy::CostBenefit,
    };
    let models = Scenario {
        nodes: 4,
        redundancy: Redundancy::Replicas(3),
        layout: layout(200),
        ..single(Disks::Models {
            profile: Box::new(profile),
            back_end: BackEnd::OneFlush,
        })
    };
    let measured = Scenario {
        disks: Disks::Served(Arc::new(times)),
        ..models.clone()
    };
    let load = open(10.0, 0.8, 60.0);
    let [models, measured] = [&models, &measured].map(|scenario| run(scenario, &load));
    // The models' data lies side by side, so that their arms have less far to go.
    assert!(models.reads.p50_ms < measured.reads.p50_ms);
    assert!(
        models.reads.p50_ms > 0.4 * measured.reads.p50_ms,
        "{models:?} {measured:?}"
    );
}

/// Of 20 zones, 6 are free, and the cleaner would like 8.
#[test]
fn every_policy_goes_on_where_the_free_zones_it_would_like_cannot_be_won() {
    for policy in Policy::ALL.map(|(_, policy, _)| policy) {
        let scenario = Scenario {
            layout: Layout::Zones {
                zones: 20,
                zone_bytes: 64 * MIB,
                utilization: 0.7,
                free_zones: "2..8".parse().unwrap(),
                pace: Pace::Full,
                policy,
            },
            ..zoned(Coordination::Turns, 4)
        };
        let report = run(&scenario, &open(40.0, 0.5, 60.0));
        assert!(report.writes_per_second > 0.0);
    }
}

#[test]
fn a_drive_that_refuses_jobs_while_their_times_are_measured_is_refused() {
    let with = |name, change: &dyn Fn(&mut Profile)| {
        let mut profile = Profile::named(name).unwrap();
        change(&mut profile);
        let sizes = Sizes {
            part: 16 * MIB,
            piece: MIB / 2,
            band_part: 1.0,
        };
        calibrate(&profile, BackEnd::OneFlush, sizes, 1).map(|_| ())
    };
    assert_eq!(with("hm-smr-14tb", &|_| ()), Ok(()));
    let few_zones = |profile: &mut Profile| profile.capacity_bytes = 600 * 256 * MIB;
    let small = |profile: &mut Profile| profile.capacity_bytes = 8 * MIB;
    for refused in [with("hm-smr-14tb", &few_zones), with("wd5000ys", &small)] {
        assert!(matches!(refused, Err(Impossible::Drive(_))), "{refused:?}");
    }
}

#[test]
fn ageing_is_watched_and_can_be_interrupted() {
    let scenario = zoned(Coordination::None, 8);
    let mut parts = Vec::new();
    let aged = Simulation::watched(&scenario, &mut |part| {
        parts.push(part);
        part < 0.5
    });
    assert_eq!(aged.unwrap_err(), Impossible::Interrupted);
    let drives = (scenario.nodes * scenario.drives_per_node) as usize;
    assert_eq!(parts.len(), drives / 2 + 1);
    assert!(parts[0] == 0.0 && parts.is_sorted());
}

#[test]
fn what_cannot_be_is_refused() {
    let fine = zoned(Coordination::None, 8);
    let refused = |scenario: Scenario| Simulation::new(&scenario).unwrap_err();
    assert!(Simulation::new(&fine).is_ok());
    let of = |change: &dyn Fn(&mut Scenario)| {
        let mut scenario = fine.clone();
        change(&mut scenario);
        refused(scenario)
    };
    assert_eq!(of(&|s| s.nodes = 0), Impossible::Size);
    assert_eq!(of(&|s| s.proxies = 0), Impossible::Size);
    assert_eq!(of(&|s| s.proxies = u32::MAX), Impossible::Size);
    assert_eq!(of(&|s| s.nodes = u32::MAX), Impossible::Size);
    assert!(matches!(
        of(&|s| s.nodes = 2),
        Impossible::TooFewDrives { .. }
    ));
    for bytes in [1 << 40, u64::MAX] {
        assert!(matches!(
            of(&|s| s.object_bytes = bytes),
            Impossible::ObjectSize { .. }
        ));
    }
    assert!(matches!(
        of(&|s| s.budget_percent = 0),
        Impossible::Number { .. }
    ));
    let lost = |bytes_per_second| Lost {
        after_seconds: 0.0,
        bytes_per_second,
    };
    assert!(matches!(
        of(&|s| s.lost = Some(lost(0))),
        Impossible::Number { .. }
    ));
    assert!(matches!(
        of(&|s| (s.nodes, s.lost) = (3, Some(lost(1)))),
        Impossible::TooFewDrives { .. }
    ));
    let alone = |s: &mut Scenario| {
        (s.redundancy, s.lost) = (Redundancy::Replicas(1), Some(lost(1)));
    };
    assert!(matches!(of(&alone), Impossible::Number { .. }));
    let many = |s: &mut Scenario| (s.nodes, s.partitions_a_drive) = (20_000, 1_000);
    assert!(matches!(of(&many), Impossible::Number { .. }));
    let at = |share: f64| {
        of(&|s| {
            if let Layout::Zones { utilization, .. } = &mut s.layout {
                *utilization = share;
            }
        })
    };
    assert!(matches!(at(0.99), Impossible::TooFull { .. }));
    for wrong in [-0.1, f64::NAN, 1.0] {
        assert!(matches!(at(wrong), Impossible::Number { .. }), "{wrong}");
    }
    let mut simulation = Simulation::new(&fine).unwrap();
    let mut refused = |load: Load| simulation.run(&load, &mut |_| true).unwrap_err();
    for wrong in [
        open(0.0, 0.5, 1.0),
        open(1.0, 2.0, 1.0),
        open(1.0, 0.5, 0.0),
        open(f64::NAN, 0.5, 1.0),
        Load {
            readers: u32::MAX,
            writers: 1,
            ..open(0.0, 0.5, 1.0)
        },
    ] {
        assert!(
            matches!(refused(wrong), Impossible::Number { .. }),
            "{wrong:?}"
        );
    }
}

#[test]
fn a_kind_of_drive_whose_reads_fail_is_refused_and_every_other_one_is_read() {
    for name in profile::all_names() {
        // Flash has no disk profile.
        let Ok(profile) = Profile::named(name) else {
            continue;
        };
        let is_refused = matches!(profile.layer, LayerShape::CaveatScriptor(_));
        for models in [false, true] {
            let fleet = Fleet {
                profile: profile.clone(),
                models,
                zones: 10,
                utilization: 0.5,
                free_zones: "1..2".parse().unwrap(),
                pace: Pace::Full,
                policy: Policy::Greedy,
            };
            let built = fleet.build(MIB, 1);
            assert_eq!(built.is_err(), is_refused, "{name}");
            let Ok((disks, layout)) = built else {
                continue;
            };
            let scenario = Scenario {
                layout,
                ..single(disks)
            };
            let report = run(&scenario, &open(5.0, 0.8, 20.0));
            assert!(report.reads_per_second > 0.0, "{name}");
        }
        if is_refused {
            let disks = Disks::Models {
                profile: Box::new(profile),
                back_end: BackEnd::TwoFlushes,
            };
            let refused = Simulation::new(&single(disks)).map(|_| ());
            assert!(matches!(refused, Err(Impossible::Drive(_))), "{name}");
        }
    }
}

/// Events of an earlier run are none of a later one's: no arrivals or clients more than it asks for, and one loss of a
/// drive, whose rebuild goes on in each run.
#[test]
fn one_load_after_another_is_each_as_it_was_asked_for() {
    let constant = || served(Service::Constant(ms(10.0)), Service::Constant(ms(10.0)));
    let mut simulation = Simulation::new(&single(constant())).unwrap();
    let mut begun = |load: &Load| {
        let report = simulation.run(load, &mut |_| true).unwrap();
        assert_eq!(report.begun, report.ended);
        report.begun as f64
    };
    let arrivals = open(50.0, 1.0, 200.0);
    let reader = Load {
        readers: 1,
        ..open(0.0, 1.0, 200.0)
    };
    let first = [&arrivals, &reader].map(&mut begun);
    near(first[0], 50.0 * 210.0, 0.1);
    near(first[1], 100.0 * 210.0, 0.01);
    for _ in 0..4 {
        near(begun(&arrivals), first[0], 0.05);
        near(begun(&reader), first[1], 0.01);
    }

    let rate = 20 * MIB;
    let scenario = Scenario {
        nodes: 8,
        redundancy: Redundancy::Replicas(3),
        layout: Layout::Blocks {
            bytes: 10_000 * MIB,
            utilization: 0.5,
        },
        lost: Some(Lost {
            after_seconds: 15.0,
            bytes_per_second: rate,
        }),
        ..single(constant())
    };
    let mut simulation = Simulation::new(&scenario).unwrap();
    let mut before = 0.0;
    // The drive is lost in the second run.
    for n in 0..6 {
        let report = simulation
            .run(&open(5.0, 1.0, 10.0), &mut |_| true)
            .unwrap();
        let bytes = report.rebuild.map_or(0.0, |rebuild| rebuild.bytes as f64);
        let share = (bytes - before) / (rate as f64 * 10.5);
        before = bytes;
        match n {
            0 => assert_eq!(bytes, 0.0),
            1 => assert!(share > 0.4 && share < 0.7, "{share}"),
            _ => assert!((0.95..1.05).contains(&share), "{share} in run {n}"),
        }
    }
}
