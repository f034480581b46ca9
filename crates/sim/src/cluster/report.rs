//! The results of a load, as a structure and as the rows of a table.

use super::latencies::Percentiles;
use serde::Serialize;

/// The cleaning of all drives in the counted time.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize)]
pub struct Cleaned {
    /// Bytes moved.
    pub moved_bytes: u64,
    /// Bytes written to zones ÷ bytes that users wrote there.
    pub write_amplification: f64,
    /// Zones reset.
    pub zones: u64,
    /// The share of the time in which a drive was cleaning, averaged over all drives.
    pub time_part: f64,
    /// Number of shifts; `None` if drives clean without shifts.
    pub shifts: Option<u32>,
    /// Times that a drive began to clean.
    pub begun: u64,
    /// Of these, times without a turn, because hardly any zone was free.
    pub forced: u64,
    /// Of the others, times that more drives with parts of one object were then cleaning than may at once.
    pub beside: u64,
    /// Turns that were taken back for a drive that had to clean.
    pub yielded: u64,
    /// The share of the parts read that came from a drive that was cleaning.
    pub reads_from_cleaning: f64,
    /// Writes that waited for a zone.
    pub writes_waited: u64,
    /// Free zones of a drive when counting began, and when it ended. Fewer at the end mean that less was cleaned than
    /// has to be in the long run.
    pub free_zones: [f64; 2],
}

/// The rebuild of a lost drive's data.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Rebuilt {
    /// Bytes written to other drives.
    pub bytes: u64,
    /// Bytes to rebuild in all.
    pub of_bytes: u64,
    /// Seconds from the loss to the last object, or to the end of the load.
    pub seconds: f64,
    /// Whether the rebuild was complete then.
    pub complete: bool,
    /// Bytes rebuilt a second.
    pub bytes_per_second: f64,
    /// Seconds that all bytes take at that rate.
    pub seconds_for_all: f64,
    /// Bytes read on other drives for it.
    pub read_bytes: u64,
}

/// The results of a load.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// Name of the [`super::Coordination`].
    pub coordination: &'static str,
    /// Seconds that were counted.
    pub seconds: f64,
    /// Objects read a second.
    pub reads_per_second: f64,
    /// Objects written a second.
    pub writes_per_second: f64,
    /// Bytes of objects read a second.
    pub read_bytes_per_second: f64,
    /// Bytes of objects written a second.
    pub written_bytes_per_second: f64,
    /// Latencies of reads.
    pub reads: Percentiles,
    /// Latencies of writes, until enough of their parts were durable.
    pub writes: Percentiles,
    /// The share of the time in which a drive was busy, averaged over all drives.
    pub drives_busy: f64,
    /// Bytes in and out of all nodes a second.
    pub node_bytes_per_second: f64,
    /// The cleaning; `None` on drives without zones.
    pub cleaning: Option<Cleaned>,
    /// The rebuild; `None` if no drive was lost.
    pub rebuild: Option<Rebuilt>,
    /// Requests that began, counted or not.
    pub begun: u64,
    /// Requests that ended: all of them.
    pub ended: u64,
    /// Events of the simulation.
    pub events: u64,
}

const MIB: f64 = (1 << 20) as f64;

impl Report {
    /// A table for people, its head first: a row for each figure, a column for each report.
    pub fn rows(reports: &[Self]) -> Vec<Vec<String>> {
        type Cell = (&'static str, fn(&Report) -> Option<String>);
        fn mib(bytes: f64) -> String {
            format!("{:.1}", bytes / MIB)
        }
        fn ms(of: fn(&Percentiles) -> f64, all: &Percentiles) -> Option<String> {
            (all.count > 0).then(|| format!("{:.1}", of(all)))
        }
        fn percent(part: f64) -> String {
            format!("{:.1}", part * 100.0)
        }
        const CELLS: [Cell; 28] = [
            ("reads a second", |r| {
                Some(format!("{:.1}", r.reads_per_second))
            }),
            ("  MiB a second", |r| Some(mib(r.read_bytes_per_second))),
            ("  mean, ms", |r| ms(|p| p.mean_ms, &r.reads)),
            ("  p50, ms", |r| ms(|p| p.p50_ms, &r.reads)),
            ("  p90, ms", |r| ms(|p| p.p90_ms, &r.reads)),
            ("  p99, ms", |r| ms(|p| p.p99_ms, &r.reads)),
            ("  p99.9, ms", |r| ms(|p| p.p999_ms, &r.reads)),
            ("  from a drive that cleaned, %", |r| {
                Some(percent(r.cleaning?.reads_from_cleaning))
            }),
            ("writes a second", |r| {
                Some(format!("{:.1}", r.writes_per_second))
            }),
            ("  MiB a second", |r| Some(mib(r.written_bytes_per_second))),
            ("  p50, ms", |r| ms(|p| p.p50_ms, &r.writes)),
            ("  p90, ms", |r| ms(|p| p.p90_ms, &r.writes)),
            ("  p99, ms", |r| ms(|p| p.p99_ms, &r.writes)),
            ("  p99.9, ms", |r| ms(|p| p.p999_ms, &r.writes)),
            ("drives busy, % of the time", |r| {
                Some(percent(r.drives_busy))
            }),
            ("  cleaning, %", |r| Some(percent(r.cleaning?.time_part))),
            ("written to zones ÷ by users", |r| {
                Some(format!("{:.2}", r.cleaning?.write_amplification))
            }),
            ("zones cleaned", |r| Some(r.cleaning?.zones.to_string())),
            ("shifts of drives that clean together", |r| {
                Some(r.cleaning?.shifts?.to_string())
            }),
            ("cleaning begun, times", |r| {
                Some(r.cleaning?.begun.to_string())
            }),
            ("  beside a replica, freely", |r| {
                Some(r.cleaning?.beside.to_string())
            }),
            ("  forced", |r| Some(r.cleaning?.forced.to_string())),
            ("free zones, at first", |r| {
                Some(format!("{:.1}", r.cleaning?.free_zones[0]))
            }),
            ("  at the end", |r| {
                Some(format!("{:.1}", r.cleaning?.free_zones[1]))
            }),
            ("writes that waited for a zone", |r| {
                Some(r.cleaning?.writes_waited.to_string())
            }),
            ("rebuilt, MiB a second", |r| {
                Some(mib(r.rebuild?.bytes_per_second))
            }),
            ("  MiB read for it", |r| {
                Some(mib(r.rebuild?.read_bytes as f64))
            }),
            ("  seconds for all", |r| {
                Some(format!("{:.0}", r.rebuild?.seconds_for_all))
            }),
        ];
        let head = reports.iter().map(|report| report.coordination.to_owned());
        let mut rows = vec![
            std::iter::once("coordination".to_owned())
                .chain(head)
                .collect::<Vec<_>>(),
        ];
        for (name, cell) in CELLS {
            let cells: Vec<Option<String>> = reports.iter().map(cell).collect();
            if cells.iter().any(Option::is_some) {
                let cells = cells
                    .into_iter()
                    .map(|cell| cell.unwrap_or_else(|| "–".into()));
                rows.push(std::iter::once(name.to_owned()).chain(cells).collect());
            }
        }
        rows
    }
}
