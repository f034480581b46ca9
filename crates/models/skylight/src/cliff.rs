//! Random writes without a pause (figure 3.1): the throughput before and after a drive's cache is full.

use crate::target::{Target, TargetError, serve};
use drive_model::{Lba, Random, Request};
use plot::{Figure, Panel};
use std::ops::ControlFlow;

/// Throughput of random writes over time.
#[derive(Clone, PartialEq, Debug)]
pub struct Cliff {
    /// Length of a stretch in seconds of the drive's time.
    pub every_seconds: f64,
    /// Number of completed writes in each stretch.
    pub writes: Vec<u64>,
}

/// Writes 4 KiB at random positions, 31 at a time like table 2.2, for a number of seconds of the drive's time, with
/// its caches as they are.
///
/// # Errors
/// The target does not answer.
pub fn random_writes(
    target: &mut dyn Target,
    random: &mut Random,
    seconds: f64,
    every_seconds: f64,
) -> Result<Cliff, TargetError> {
    let blocks = target.blocks();
    let mut writes = vec![0; (seconds / every_seconds).ceil() as usize];
    let start = target.now();
    let mut requests = (0..u64::MAX).map(|_| Request::write(Lba(random.below(blocks)), 1));
    serve(target, 31, &mut requests, &mut |answer| {
        let stretch = (answer.at.since(start).seconds() / every_seconds) as usize;
        match writes.get_mut(stretch) {
            Some(count) => {
                *count += 1;
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(()),
        }
    })?;
    Ok(Cliff {
        every_seconds,
        writes,
    })
}

impl Cliff {
    /// Writes a second in a part of the time, from 0 to 1.
    pub fn rate(&self, from: f64, to: f64) -> f64 {
        let at = |part: f64| (self.writes.len() as f64 * part) as usize;
        let all = &self.writes[at(from)..at(to).max(at(from) + 1)];
        all.iter().sum::<u64>() as f64 / (all.len() as f64 * self.every_seconds)
    }
}

/// Drives by name.
pub type Drives<'a> = Vec<(&'a str, Cliff)>;

/// A figure that compares drives: with the volatile cache off, and with it on.
pub fn figure(off: &Drives, on: &Drives) -> Figure {
    Figure {
        number: "3.1",
        title: "Random writes of 4 KiB without a pause",
        caption:
            "Models of full size: 4 KiB in random places of the whole drive, 31 at a time; mean of \
                  every 20 s."
                .into(),
        panels: vec![
            panel("volatile cache off", off),
            panel("volatile cache on", on),
        ],
    }
}

fn panel(title: &'static str, drives: &Drives) -> Panel {
    let mut panel = Panel::new(title, "time (s)", "writes a second");
    for (name, cliff) in drives {
        let point = |(n, count): (usize, &u64)| {
            let rate = *count as f64 / cliff.every_seconds;
            // A logarithmic axis cannot show zero.
            (n as f64 * cliff.every_seconds, rate.max(0.1))
        };
        panel = panel.line(*name, cliff.writes.iter().enumerate().map(point).collect());
    }
    panel.logarithmic()
}
