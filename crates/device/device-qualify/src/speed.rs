//! Measures the speed of the drive commands that a store uses.

use crate::Latencies;
use device::{ZonedDevice, erase};
use fastrand::Rng;
use runtime::Runtime;
use serde::Serialize;
use std::time::Duration;
use zone::{Geometry, ZoneAddress, ZoneId, ZoneResult};

/// Bytes of a long read or write.
const PIECE: u64 = 1 << 20;
/// Number of reads in flight at once.
const AT_ONCE: u64 = 32;
/// Most commands of one probe whose latencies are kept.
const MOST_COMMANDS: usize = 100_000;

/// The extent of the measurements.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Number of zones at each of three places, if the drive has as many.
    pub zones: u32,
    /// Longest duration of a probe; its last command is waited for beyond that.
    pub most_time: Duration,
}

/// The result of one probe.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Measured {
    /// The kind of probe.
    pub probe: &'static str,
    /// The place on the drive by its first zone, or the size of a command, in words.
    pub of: String,
    /// Bytes read or written.
    pub bytes: u64,
    /// Commands, a write and its flush counted as one.
    pub commands: u64,
    /// Reads or writes; several at once are one command.
    pub requests: u64,
    /// Seconds from the first command to the end of the last.
    pub seconds: f64,
    /// Latencies of the commands.
    pub latency_us: Option<Latencies>,
}

impl Measured {
    /// Throughput in bytes a second.
    pub fn bytes_per_second(&self) -> f64 {
        self.bytes as f64 / self.seconds.max(1e-9)
    }
}

struct Probe<'a> {
    device: &'a dyn ZonedDevice,
    runtime: &'a Runtime,
    options: Options,
    /// The bytes that are written; random, so that no drive can compress them.
    bytes: Vec<u8>,
    random: Rng,
    done: &'a mut dyn FnMut(&Measured),
    all: Vec<Measured>,
}

/// Runs all probes and returns their results; `done` is called with each. The drive's contents are lost.
///
/// # Errors
/// The drive's error.
pub fn measure(
    device: &dyn ZonedDevice,
    runtime: &Runtime,
    options: Options,
    done: &mut dyn FnMut(&Measured),
) -> ZoneResult<Vec<Measured>> {
    let mut random = Rng::with_seed(1);
    let mut bytes = vec![0; PIECE as usize];
    random.fill(&mut bytes);
    let mut probe = Probe {
        device,
        runtime,
        options,
        bytes,
        random,
        done,
        all: Vec::new(),
    };
    let written = erase::written_zones(device, 0..device.geometry().zone_count)?;
    erase::reset(device, &written, false, &mut || ())?;
    let places = places(device.geometry(), options.zones);
    for zones in &places {
        let filled = probe.fill(zones)?;
        probe.read(zones, filled)?;
        if zones == &places[0] {
            probe.read_at_random(zones, filled, 1)?;
            probe.read_at_random(zones, filled, AT_ONCE)?;
        }
        // A zone that the time did not suffice for is active.
        probe.reset(zones)?;
    }
    if let Some(zones) = places.first() {
        for bytes in [4 << 10, 64 << 10, 1 << 20] {
            probe.append_synced(zones, bytes)?;
        }
        probe.fill_together(zones)?;
        probe.finish(zones)?;
    }
    probe.report()?;
    Ok(probe.all)
}

/// Runs of sequential zones at the beginning, in the middle and at the end: on a disk, the outer tracks are the
/// fastest. None on a drive without sequential zones.
fn places(geometry: &Geometry, zones: u32) -> Vec<Vec<ZoneId>> {
    let first = geometry.conventional_zones;
    let all = geometry.drive_zones() - first;
    if all == 0 {
        return Vec::new();
    }
    let zones = zones.clamp(1, (all / 3).max(1)).min(all);
    let mut starts = vec![first, first + (all - zones) / 2, first + all - zones];
    starts.dedup();
    let zones_from = |start: &u32| (*start..start + zones).map(ZoneId).collect();
    starts.iter().map(zones_from).collect()
}

impl Probe<'_> {
    /// Times commands until `next` returns `None` or the time is up; returns the bytes moved.
    fn time(
        &mut self,
        probe: &'static str,
        of: String,
        next: &mut dyn FnMut(&mut Self) -> ZoneResult<Option<u64>>,
    ) -> ZoneResult<u64> {
        self.time_several(probe, of, 1, next)
    }

    /// As [`Self::time`], with `at_once` requests in each command.
    fn time_several(
        &mut self,
        probe: &'static str,
        of: String,
        at_once: u64,
        next: &mut dyn FnMut(&mut Self) -> ZoneResult<Option<u64>>,
    ) -> ZoneResult<u64> {
        let begin = self.runtime.now();
        let (mut bytes, mut times, mut last) = (0, Vec::new(), begin);
        while last - begin < self.options.most_time && times.len() < MOST_COMMANDS {
            let Some(more) = next(self)? else {
                break;
            };
            let now = self.runtime.now();
            times.push(now - last);
            (bytes, last) = (bytes + more, now);
        }
        if times.is_empty() {
            return Ok(0);
        }
        let measured = Measured {
            probe,
            of,
            bytes,
            commands: times.len() as u64,
            requests: times.len() as u64 * at_once,
            seconds: (last - begin).as_secs_f64(),
            latency_us: Latencies::of(times),
        };
        (self.done)(&measured);
        self.all.push(measured);
        Ok(bytes)
    }

    fn write(&mut self, at: ZoneAddress, length: u64) -> ZoneResult<()> {
        let at = self.device.geometry().absolute(at);
        self.device.write(at, &self.bytes[..length as usize])
    }

    /// Fills zones one after the other; returns the bytes that were written in time.
    fn fill(&mut self, zones: &[ZoneId]) -> ZoneResult<u64> {
        let mut end = Cursor::new(self.device.geometry(), zones);
        let mut is_flushed = false;
        self.time("write in order", place(zones), &mut |probe| {
            if let Some((at, length)) = end.next(PIECE) {
                probe.write(at, length)?;
                return Ok(Some(length));
            }
            // The last command flushes, which waits for the data in the drive's write cache.
            if !std::mem::replace(&mut is_flushed, true) {
                probe.device.flush()?;
                return Ok(Some(0));
            }
            Ok(None)
        })
    }

    fn read(&mut self, zones: &[ZoneId], filled: u64) -> ZoneResult<()> {
        let mut end = Cursor::new(self.device.geometry(), zones);
        let (mut left, mut buffer) = (filled, vec![0; PIECE as usize]);
        self.time("read in order", place(zones), &mut |probe| {
            let Some((at, length)) = end.next(PIECE.min(left)) else {
                return Ok(None);
            };
            let at = probe.device.geometry().absolute(at);
            probe.device.read(at, &mut buffer[..length as usize])?;
            left -= length;
            Ok(Some(length))
        })?;
        Ok(())
    }

    fn read_at_random(&mut self, zones: &[ZoneId], filled: u64, at_once: u64) -> ZoneResult<()> {
        let geometry = self.device.geometry().clone();
        let block = u64::from(geometry.block_size).max(4096);
        let capacity = geometry.capacity(zones[0]);
        let per_zone = capacity / block;
        let blocks = (filled / capacity * per_zone) + (filled % capacity) / block;
        let of = match at_once {
            1 => format!("{block} bytes, one at a time"),
            _ => format!("{block} bytes, {at_once} at once"),
        };
        let mut buffers = vec![vec![0; block as usize]; at_once as usize];
        self.time_several("read at random", of, at_once, &mut |probe| {
            if blocks == 0 {
                return Ok(None);
            }
            let random = &mut probe.random;
            let mut reads: Vec<_> = buffers
                .iter_mut()
                .map(|buffer| {
                    let at = random.u64(..blocks);
                    let zone = zones[(at / per_zone) as usize];
                    let at = ZoneAddress::new(zone, at % per_zone * block);
                    (geometry.absolute(at), buffer.as_mut_slice())
                })
                .collect();
            probe.device.read_many(&mut reads)?;
            Ok(Some(block * at_once))
        })?;
        Ok(())
    }

    /// Appends with a flush each: the cost of an object of that size that shares its flush with no other.
    fn append_synced(&mut self, zones: &[ZoneId], bytes: u64) -> ZoneResult<()> {
        self.reset(zones)?;
        let bytes = self.device.geometry().round_up(bytes);
        let mut end = Cursor::new(self.device.geometry(), zones);
        let of = format!("{} KiB", bytes >> 10);
        self.time("write and flush", of, &mut |probe| {
            let Some((at, length)) = end.next(bytes) else {
                return Ok(None);
            };
            probe.write(at, length)?;
            probe.device.flush()?;
            Ok(Some(length))
        })?;
        Ok(())
    }

    /// Fills several zones at the same time, in turns.
    fn fill_together(&mut self, zones: &[ZoneId]) -> ZoneResult<()> {
        self.reset(zones)?;
        let geometry = self.device.geometry();
        let limits = [geometry.max_open_zones, geometry.max_active_zones];
        let limit = limits.into_iter().filter(|limit| *limit > 0).min();
        let streams = limit.unwrap_or(4).min(4).min(zones.len() as u32) as usize;
        let one_each = zones[..streams].chunks(1);
        let mut ends: Vec<_> = one_each.map(|zone| Cursor::new(geometry, zone)).collect();
        let mut turn = 0;
        let of = format!("{streams} zones in turns");
        self.time("write in order", of, &mut |probe| {
            turn += 1;
            let Some((at, length)) = ends[turn % streams].next(PIECE) else {
                return Ok(None);
            };
            probe.write(at, length)?;
            Ok(Some(length))
        })?;
        self.reset(zones)
    }

    /// Writes a block to each zone and finishes it, then resets the zones.
    fn finish(&mut self, zones: &[ZoneId]) -> ZoneResult<()> {
        let block = u64::from(self.device.geometry().block_size);
        let mut next = zones.iter();
        self.time(
            "write a block and finish",
            "a zone".to_owned(),
            &mut |probe| {
                let Some(zone) = next.next() else {
                    return Ok(None);
                };
                probe.write(ZoneAddress::new(*zone, 0), block)?;
                probe.device.finish(*zone)?;
                Ok(Some(block))
            },
        )?;
        let mut next = zones.iter();
        self.time("reset", "a full zone".to_owned(), &mut |probe| {
            let Some(zone) = next.next() else {
                return Ok(None);
            };
            probe.device.reset(*zone)?;
            Ok(Some(0))
        })?;
        self.device.flush()
    }

    fn report(&mut self) -> ZoneResult<()> {
        let count = self.device.geometry().zone_count;
        let mut first = 0;
        self.time("report", format!("{count} zones"), &mut |probe| {
            if first >= count {
                return Ok(None);
            }
            probe
                .device
                .report(ZoneId(first), erase::REPORT_BATCH.min(count - first))?;
            first += erase::REPORT_BATCH;
            Ok(Some(0))
        })?;
        Ok(())
    }

    fn reset(&mut self, zones: &[ZoneId]) -> ZoneResult<()> {
        for zone in zones {
            self.device.reset(*zone)?;
        }
        self.device.flush()
    }
}

fn place(zones: &[ZoneId]) -> String {
    match zones {
        [first, .., last] => format!("zones {first} to {last}"),
        [only] => format!("zone {only}"),
        [] => String::new(),
    }
}

/// Iterates over the blocks of zones from start to end.
struct Cursor {
    zones: std::vec::IntoIter<(ZoneId, u64)>,
    at: Option<(ZoneAddress, u64)>,
}

impl Cursor {
    fn new(geometry: &Geometry, zones: &[ZoneId]) -> Self {
        let zones: Vec<_> = zones
            .iter()
            .map(|zone| (*zone, geometry.capacity(*zone)))
            .collect();
        Self {
            zones: zones.into_iter(),
            at: None,
        }
    }

    /// The next range of at most `most` bytes; `None` at the end, or if `most` is 0.
    fn next(&mut self, most: u64) -> Option<(ZoneAddress, u64)> {
        let (at, room) = match self.at.take() {
            Some(here) => here,
            None => {
                let (zone, capacity) = self.zones.next()?;
                (ZoneAddress::new(zone, 0), capacity)
            }
        };
        let length = most.min(room);
        if length < room {
            self.at = Some((ZoneAddress::new(at.zone, at.offset + length), room - length));
        }
        (length > 0).then_some((at, length))
    }
}
