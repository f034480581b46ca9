//! Bytes written to the drive for each byte asked, space taken for each live byte, and flushes for each synced put.
//! BlueFS counts them while db_bench runs on it; the space is observed on the drive meanwhile.

use super::{Bench, Figure};
use crate::error::{Error, Result};
use device::{Drive, ZonedDevice};
use inspect::{Nobody, Snapshot, Source};
use runtime::{Runtime, thread};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Bytes of a key and its value in an SST.
const PER_KEY: f64 = 428.0;
/// The time between two observations of the drive.
const LOOK: Duration = Duration::from_millis(250);

/// An observation of the drive.
#[derive(Clone, Copy)]
struct Seen {
    live_bytes: u64,
    /// Live and dead bytes ÷ live bytes.
    amplification: f64,
}

/// Runs a fill and two overwrites.
pub fn amplification(bench: &Bench<'_>) -> Result<Vec<Figure>> {
    let (size, zone) = (bench.options.size, bench.options.zone_size);
    let table = bench.options.table_size.unwrap_or(2 * zone);
    let level = 4 * table.max(zone);
    let place = bench.place(size, Some(zone))?;
    place.make_drive()?;
    let capacity = Drive::open_read_only(&place.drive)?
        .geometry()
        .capacity_bytes();
    let fill = f64::from(bench.options.fill_percent) / 100.0;
    let keys = (fill * capacity as f64 / PER_KEY) as u64;
    bench.watch.measures("a fill and two overwrites".to_owned());
    let arguments = [
        "--benchmarks=fillrandom,overwrite,overwrite,waitforcompaction".to_owned(),
        format!("--num={keys}"),
        "--key_size=20".to_owned(),
        "--value_size=400".to_owned(),
        "--compression_type=none".to_owned(),
        "--seed=1".to_owned(),
        "--use_direct_io_for_flush_and_compaction=true".to_owned(),
        "--level_compaction_dynamic_level_bytes=true".to_owned(),
        format!("--write_buffer_size={zone}"),
        format!("--target_file_size_base={table}"),
        format!("--max_bytes_for_level_base={level}"),
        format!("--max_compaction_bytes={level}"),
        // On a small drive RocksDB's LOG would be a good part of what is stored.
        "--use_stderr_info_logger=true".to_owned(),
        // Writers wait for compactions, or the space taken would grow with the backlog of these.
        "--level0_file_num_compaction_trigger=2".to_owned(),
        "--level0_slowdown_writes_trigger=4".to_owned(),
        "--level0_stop_writes_trigger=6".to_owned(),
        format!("--soft_pending_compaction_bytes_limit={level}"),
        format!("--hard_pending_compaction_bytes_limit={}", 2 * level),
    ];
    let done = AtomicBool::new(false);
    let (ran, seen) = thread::scope(|threads| {
        let looking = thread::spawn_scoped(threads, || {
            let mut seen = Vec::new();
            let mut source = Source::<Nobody>::alone(&place.drive, Runtime::system());
            while !done.load(Ordering::Relaxed) {
                // A failed observation is left out.
                seen.extend(source.look().ok().and_then(|look| of(&look)));
                thread::sleep(LOOK);
            }
            seen
        })
        .map_err(Error::NoThread)?;
        let ran = place.on_drive(&["fillrandom", "overwrite"], &arguments);
        done.store(true, Ordering::Relaxed);
        Ok::<_, Error>((ran, looking.join().unwrap_or_default()))
    })?;
    bench.watch.check()?;
    let (_, statistics) = ran?;
    let at_rest = of(&Source::<Nobody>::alone(&place.drive, Runtime::system()).look()?);
    let fullest = seen.iter().chain(&at_rest).map(|s| s.live_bytes).max();
    let (asked, written) = (
        statistics.number("bytes_asked"),
        statistics.number("bytes_written"),
    );
    let moved = statistics.number("moved_bytes_written");
    let of_asked = |bytes: u64| bytes as f64 / asked.max(1) as f64;
    let mut figures = vec![
        Figure::one(
            "how full the drive was at the most",
            fullest.unwrap_or(0) as f64 / capacity as f64,
            None,
        ),
        Figure::one(
            "bytes written for each that RocksDB asked for",
            of_asked(written),
            Some("≤ 1.02"),
        ),
        Figure::one("  of these, moved to make space", of_asked(moved), None),
    ];
    let late = late(&seen);
    // A fill between two observations has none.
    if !late.is_empty() {
        let name = "bytes taken for each live byte, second overwrite";
        figures.push(Figure::median(name, "", late, Some("≤ 1.05")));
    }
    if let Some(seen) = at_rest {
        figures.push(Figure::one("  after it", seen.amplification, None));
    }
    Ok(figures)
}

/// Space taken for each live byte in the second overwrite: in the last third of the observations, of which there is one
/// at least if any was made.
fn late(seen: &[Seen]) -> Vec<f64> {
    let late = &seen[seen.len() - seen.len().div_ceil(3)..];
    late.iter().map(|seen| seen.amplification).collect()
}

/// The sizes in a snapshot; `None` while nothing is live.
fn of(look: &Snapshot) -> Option<Seen> {
    let (live, dead) = (look.totals.live_bytes, look.totals.dead_bytes);
    (live > 0).then(|| Seen {
        live_bytes: live,
        amplification: (live + dead) as f64 / live as f64,
    })
}

/// Runs puts that are synced one by one.
pub fn flushes(bench: &Bench<'_>) -> Result<Vec<Figure>> {
    let puts = bench.options.sync_keys;
    let place = bench.place(16 << 30, None)?;
    bench.watch.measures(format!("{puts} synced puts"));
    let arguments = [
        "--benchmarks=fillsync".to_owned(),
        format!("--num={}", puts.saturating_mul(1000)),
        format!("--writes={puts}"),
        "--key_size=20".to_owned(),
        "--value_size=400".to_owned(),
        "--compression_type=none".to_owned(),
    ];
    let ran = place.on_bluefs(&["fillsync"], &arguments);
    bench.watch.check()?;
    let (_, statistics) = ran?;
    Ok(vec![Figure::one(
        "flushes for each synced put, mount and unmount included",
        statistics.number("flushes") as f64 / puts as f64,
        Some("1"),
    )])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_third_of_few_observations_is_one() {
        let seen = |amplification| Seen {
            live_bytes: 1,
            amplification,
        };
        let all: Vec<Seen> = (1..8).map(|n| seen(f64::from(n))).collect();
        assert_eq!(late(&all), [5.0, 6.0, 7.0]);
        assert_eq!(late(&all[..2]), [2.0]);
        assert_eq!(late(&[]), [0.0; 0]);
    }
}
