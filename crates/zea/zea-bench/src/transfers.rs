//! Throughput of puts and gets for each extent size, against plain writes and reads of the same bytes (figures
//! 2b and 2c).

use crate::bed::{Bed, Error};
use crate::filling::{Extents, Plain};
use runtime::Runtime;
use serde::Serialize;

/// The amount of work for one extent size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work {
    /// Number of extents of each size.
    pub extents: u64,
    /// Most bytes of each size that are got; no more than were put.
    pub get_bytes: u64,
    /// Back pointers in the metadata of an extent.
    pub back_pointers: u32,
    /// The byte that fills the extents.
    pub fill: u8,
    /// Number of rounds; results are medians. ZEA and plain transfers alternate.
    pub rounds: u32,
}

/// The throughputs for one extent size, in bytes a second.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Transfer {
    /// Bytes of an extent.
    pub size: u64,
    /// Throughput of puts, including the flush at the end.
    pub put: f64,
    /// Throughput of plain writes of the same size, including the flush.
    pub write: f64,
    /// Puts ÷ plain writes.
    pub put_ratio: f64,
    /// Throughput of gets in the order of the puts.
    pub get: f64,
    /// Throughput of plain reads in the same order.
    pub read: f64,
    /// Gets ÷ plain reads.
    pub get_ratio: f64,
}

/// Measures each size. Every rate and every ratio is the median over the rounds.
///
/// # Errors
/// The drive is too small or fails, or the caller stops the benchmark.
pub fn transfers(bed: &mut dyn Bed, sizes: &[u64], work: Work) -> Result<Vec<Transfer>, Error> {
    let mut all = Vec::new();
    for size in sizes {
        let mut rounds = Vec::new();
        for _ in 0..work.rounds.max(1) {
            bed.next(&format!("extents of {} KiB", size >> 10))?;
            rounds.push(round(bed, *size, work)?);
        }
        let [put, write, get, read] = [0, 1, 2, 3].map(|n| median(rounds.iter().map(|r| r[n])));
        let ratio = |above: usize, below: usize| median(rounds.iter().map(|r| r[above] / r[below]));
        all.push(Transfer {
            size: *size,
            put,
            write,
            put_ratio: ratio(0, 1),
            get,
            read,
            get_ratio: ratio(2, 3),
        });
    }
    Ok(all)
}

/// One round: throughput of puts, plain writes, gets and plain reads in bytes a second.
fn round(bed: &mut dyn Bed, size: u64, work: Work) -> Result<[f64; 4], Error> {
    let data = vec![work.fill; usize::try_from(size).unwrap_or(usize::MAX)];
    let count = work.extents as usize;
    let got = (work.get_bytes / size).clamp(1, work.extents) as usize;
    let rate = |count: usize, seconds: f64| (count as u64 * size) as f64 / seconds;

    let device = bed.fresh()?;
    let runtime = bed.runtime().clone();
    let mut extents = Extents::new(&device, work.back_pointers, &runtime)?;
    let put = timed(&runtime, || {
        (0..count).try_for_each(|_| extents.put(&data))?;
        Ok(device.flush()?)
    })?;
    let get = timed(&runtime, || extents.get(got))?;
    drop((extents, device));

    let device = bed.fresh()?;
    let mut plain = Plain::new(&device);
    let write = timed(&runtime, || {
        (0..count).try_for_each(|_| plain.write(&data))?;
        Ok(device.flush()?)
    })?;
    let read = timed(&runtime, || plain.read(data.len(), got))?;
    Ok([
        rate(count, put),
        rate(count, write),
        rate(got, get),
        rate(got, read),
    ])
}

/// Seconds that `work` took.
pub(crate) fn timed(
    runtime: &Runtime,
    work: impl FnOnce() -> Result<(), Error>,
) -> Result<f64, Error> {
    let start = runtime.now();
    work()?;
    // Never zero, so that a rate is a number.
    Ok((runtime.now() - start).as_secs_f64().max(1e-9))
}

/// The median of the values; of an even number, the lower of the two middle ones.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
        .get(values.len().saturating_sub(1) / 2)
        .copied()
        .unwrap_or(f64::NAN)
}
