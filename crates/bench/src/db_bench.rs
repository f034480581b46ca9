//! Runs Debian's db_bench and reads its output.

use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The figures of one benchmark of db_bench.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Measured {
    /// Operations a second.
    pub rate: f64,
    /// Microseconds that 99.9 % of the operations took at most; only with `--histogram`.
    pub p999_micros: Option<f64>,
}

/// The figures by name of the benchmark.
pub type Measurements = BTreeMap<String, Measured>;

/// Bytes and operations of one run, as counted by the plug-in.
#[derive(Clone, Debug, Default)]
pub struct BenchStatistics(pub serde_json::Value);

impl BenchStatistics {
    /// The number of this name; 0 if it is not there.
    pub fn number(&self, name: &str) -> u64 {
        self.0
            .get(name)
            .and_then(serde_json::Value::as_u64)
            .unwrap_or(0)
    }
}

/// Runs db_bench and reads the figures of the benchmarks `names`.
pub fn measure(command: &mut Command, names: &[&str]) -> Result<Measurements> {
    let output = command.output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::NoDbBench,
        _ => Error::file(Path::new("db_bench"), error),
    })?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        // Progress is written over with carriage returns; RocksDB's own log may be among the errors.
        let lines = || {
            let all = text.split(['\n', '\r']).chain(errors.split(['\n', '\r']));
            all.filter(|line| !line.trim().is_empty())
        };
        let last = lines()
            .rfind(|line| line.contains("error: "))
            .or_else(|| lines().next_back());
        return Err(Error::DbBench {
            status: output.status,
            last: last.unwrap_or("").to_owned(),
        });
    }
    let mut all = Measurements::new();
    for name in names {
        let measured = parse(&text, name).ok_or_else(|| Error::NotReported {
            name: (*name).to_owned(),
        })?;
        all.insert((*name).to_owned(), measured);
    }
    Ok(all)
}

/// Finds the figures of a benchmark: a line such as `fillrandom   :       3.123 micros/op 320102 ops/sec 3.124
/// seconds …`, and a histogram with `Percentiles: P50: 1.2 … P99.9: 34.5 …`, if one follows.
fn parse(text: &str, name: &str) -> Option<Measured> {
    let is_result = |line: &str| {
        line.split_once(':')
            .map(|(found, _)| found.trim())
            .filter(|_| line.contains("ops/sec"))
            .map(str::to_owned)
    };
    let mut lines = text.lines();
    let line = lines.find(|line| is_result(line).as_deref() == Some(name))?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let unit = words.iter().position(|word| word.starts_with("ops/sec"))?;
    let rate = words.get(unit.checked_sub(1)?)?.parse().ok()?;
    let percentiles = lines
        .take_while(|line| is_result(line).is_none())
        .find(|line| line.starts_with("Percentiles:"));
    let p999_micros = percentiles.and_then(|line| {
        let mut words = line.split_whitespace();
        words.find(|word| *word == "P99.9:")?;
        words.next()?.parse().ok()
    });
    Some(Measured { rate, p999_micros })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read_from_the_output() {
        let text = "Initializing RocksDB\nfillrandom   :       3.123 micros/op 320102 ops/sec 3.1 seconds 1000 \
            operations;  134.3 MB/s\nMicroseconds per write:\nCount: 9 Average: 3.1  StdDev: 1\nPercentiles: P50: 2.02 \
            P75: 2.99 P99: 7.5 P99.9: 41.25 P99.99: 98.36\nDB path: [/db]\n\
            readrandom   :       2.000 micros/op 500000 ops/sec 2 seconds (632 of 1000 found)\n";
        let fill = Measured {
            rate: 320_102.0,
            p999_micros: Some(41.25),
        };
        let read = Measured {
            rate: 500_000.0,
            p999_micros: None,
        };
        assert_eq!(parse(text, "fillrandom"), Some(fill));
        assert_eq!(parse(text, "readrandom"), Some(read));
        assert_eq!(parse(text, "fillsync"), None);
        assert_eq!(parse("fillsync : ops/sec", "fillsync"), None);
    }
}
