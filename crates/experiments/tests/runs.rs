//! Runs: the same for the same seed, stopped when somebody wants it.

use experiments::{Run, Scale, Stopped, find};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn run<'a>(seed: u64, progress: &'a mut dyn FnMut(&str)) -> Run<'a> {
    Run {
        seed,
        scale: Scale::SMALL,
        figures: true,
        interrupted: Arc::default(),
        progress,
    }
}

#[test]
fn the_same_seed_gives_the_same_table_and_figures_and_another_one_others() {
    let measure = |seed| {
        find("figure-2.4")
            .unwrap()
            .run(&mut run(seed, &mut |_| ()))
            .unwrap()
    };
    assert_eq!(measure(1), measure(1));
    assert_ne!(measure(1), measure(2));
}

#[test]
fn a_run_that_is_interrupted_says_so() {
    let stop = Arc::new(AtomicBool::new(false));
    let mut steps = Vec::new();
    let mut progress = |what: &str| {
        steps.push(what.to_owned());
        stop.store(steps.len() > 1, Ordering::Relaxed);
    };
    let mut run = run(1, &mut progress);
    run.interrupted = stop.clone();
    let result = find("figure-2.4").unwrap().run(&mut run);
    assert_eq!(result.unwrap_err(), Stopped::Interrupted);
    assert_eq!(steps, ["emulated-smr-1", "emulated-smr-3"]);
}

#[test]
fn rates_take_no_more_room_at_a_large_scale() {
    let mut progress = |_: &str| ();
    let mut run = run(1, &mut progress);
    run.scale = Scale(6.0);
    let result = find("zn540-rates").unwrap().run(&mut run);
    assert_eq!(result.unwrap().0.contradictions().count(), 0);
}
