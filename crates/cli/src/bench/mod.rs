//! `zonestore bench …`: measure against the plain device and the host's file system.

mod bluefs;
mod db_bench;
mod ingest;
mod memory;
mod raw;
mod rocksdb;

use crate::args::BenchCommand;
use crate::errors::CommandResult;
use crate::interrupt::Interrupt;
use crate::output::Output;

/// Carries out a benchmark.
pub fn run(command: BenchCommand, out: &mut Output) -> CommandResult {
    let interrupt = Interrupt::listen()?;
    match command {
        BenchCommand::Ingest(arguments) => ingest::run(&arguments, &interrupt, out),
        BenchCommand::Rocksdb(arguments) => rocksdb::run(&arguments, &interrupt, out),
        BenchCommand::Bluefs(arguments) => bluefs::run(&arguments, &interrupt, out),
    }
}

/// The middle one; of an even number the mean of the two in the middle; 0 of none.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[]), 0.0);
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
