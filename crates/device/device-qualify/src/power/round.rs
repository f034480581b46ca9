//! The sequence of commands of one run of the test. It is a pure function of a few numbers, so that the writer
//! and the check, which may be days and a restart apart, derive the same sequence.

use fastrand::Rng;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use zone::{Geometry, ZoneAddress, ZoneId};

/// Most blocks of one write.
const MOST_BLOCKS: u64 = 64;
/// Most writes between two flushes.
const MOST_WRITES: u64 = 16;

/// Fewest zones of a stream: while one is written again, another one keeps what was flushed.
const ZONES_PER_STREAM: u32 = 2;
/// Most flushes by which a log may lag: more are not looked at.
const MOST_LAG: u64 = 1024;

/// The numbers that the sequence is derived from. They are the head of a round in the log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Round {
    /// Version of the log format.
    pub version: u32,
    /// Seed of the lengths of writes, the choice of streams and the bytes.
    pub seed: u64,
    /// The first zone that is written to; the others follow it.
    pub first_zone: u32,
    /// Number of zones that are written to, again and again.
    pub zones: u32,
    /// Number of zones that are written at the same time.
    pub streams: u32,
    /// The drive's block size, in bytes.
    pub block_bytes: u32,
    /// Blocks of a zone that can be written.
    pub zone_blocks: u64,
    /// Zones of the drive.
    pub zone_count: u32,
    /// The drive's UUID or serial number; `None` if it has none.
    pub drive: Option<String>,
    /// The log may lack so many of the last flushes; 0 if each was in it before the next command was sent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lag: u64,
}

// The type is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The version of logs that this program writes.
pub const LOG_VERSION: u32 = 2;

/// Why a round is not possible on a drive.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum RoundError {
    /// The drive has too few sequential zones.
    #[error(
        "the test writes to {needed} sequential zones, and the drive has {found}{}", fewest(*.least)
    )]
    TooFewZones {
        /// Zones that the test writes to.
        needed: u32,
        /// The fewest that it can do with, if the drive has so many.
        least: Option<u32>,
        /// Zones that the drive has.
        found: u32,
    },
    /// The log is of another drive.
    #[error("the log is of another drive: that is {there}, and this is {here}")]
    OtherDrive {
        /// This drive.
        here: String,
        /// The drive of the log.
        there: String,
    },
    /// The log is of another drive, which is seen by its geometry.
    #[error(
        "the log is of a drive of another shape: {what} is {here} here, and {there} in the log"
    )]
    OtherShape {
        /// The property that differs.
        what: &'static str,
        /// Its value on this drive.
        here: u64,
        /// Its value in the log.
        there: u64,
    },
}

fn fewest(least: Option<u32>) -> String {
    least.map_or_else(String::new, |least| {
        format!(": --zones {least} is the fewest")
    })
}

/// One command of a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Resets the zone; the next write to it is its first.
    Reset(ZoneId),
    /// Writes blocks at the write pointer.
    Write {
        /// The write pointer, where the write begins.
        at: ZoneAddress,
        /// Number of blocks, at least one.
        blocks: u64,
        /// Number of the write, unique in its round, so that no two writes have the same bytes.
        number: u64,
    },
    /// Flushes: everything before it is durable once it has completed.
    Flush {
        /// Number of the flush, from 1.
        number: u64,
    },
}

impl Round {
    /// A round on a drive of this geometry, over about `zones` zones from its first sequential one on.
    ///
    /// # Errors
    /// The drive has too few zones.
    pub fn new(geometry: &Geometry, zones: u32, seed: u64) -> Result<Self, RoundError> {
        const MOST_STREAMS: u32 = 4;
        let limit = [geometry.max_open_zones, geometry.max_active_zones];
        let limit = limit.into_iter().filter(|limit| *limit > 0).min();
        let streams = limit.unwrap_or(MOST_STREAMS).min(MOST_STREAMS);
        let round = Self {
            version: LOG_VERSION,
            seed,
            first_zone: geometry.conventional_zones,
            zones: zones.max(ZONES_PER_STREAM * streams) / streams * streams,
            streams,
            block_bytes: geometry.block_size,
            zone_blocks: geometry.zone_capacity / u64::from(geometry.block_size),
            zone_count: geometry.zone_count,
            drive: None,
            lag: 0,
        };
        let found = geometry.drive_zones() - geometry.conventional_zones;
        if found < round.zones {
            let least = Some(ZONES_PER_STREAM * streams).filter(|least| *least <= found);
            return Err(round.too_few(found, least));
        }
        Ok(round)
    }

    /// The same round with a log that is kept elsewhere, and that nobody waits for.
    #[must_use]
    pub fn with_a_lagging_log(self) -> Self {
        Self {
            lag: MOST_LAG,
            ..self
        }
    }

    /// Whether this round can have been written to a drive of this geometry and UUID or serial number.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub fn fits(&self, geometry: &Geometry, drive: Option<&str>) -> Result<(), RoundError> {
        let block = u64::from(geometry.block_size);
        let pairs = [
            (
                "the number of zones",
                u64::from(geometry.zone_count),
                u64::from(self.zone_count),
            ),
            ("the block size", block, u64::from(self.block_bytes)),
            (
                "the capacity of zones in blocks",
                geometry.zone_capacity / block,
                self.zone_blocks,
            ),
            (
                "the first zone",
                u64::from(geometry.conventional_zones),
                u64::from(self.first_zone),
            ),
        ];
        for (what, here, there) in pairs {
            if here != there {
                return Err(RoundError::OtherShape { what, here, there });
            }
        }
        if self.drive.as_deref() != drive {
            let name = |drive: Option<&str>| drive.unwrap_or("one without a serial number").into();
            let (here, there) = (name(drive), name(self.drive.as_deref()));
            return Err(RoundError::OtherDrive { here, there });
        }
        let found = geometry.drive_zones() - geometry.conventional_zones;
        let is_sound = (1..=self.zones).contains(&self.streams) && self.zones <= found;
        is_sound.then_some(()).ok_or(self.too_few(found, None))
    }

    const fn too_few(&self, found: u32, least: Option<u32>) -> RoundError {
        RoundError::TooFewZones {
            needed: self.zones,
            least,
            found,
        }
    }

    /// Number of the last flushes that the log may lack. The log is not trusted.
    pub(super) fn lag(&self) -> u64 {
        self.lag.min(MOST_LAG)
    }

    /// All commands of the round; the sequence never ends.
    pub fn steps(&self) -> Steps {
        let streams = (0..self.streams)
            .map(|stream| Stream {
                next_zone: stream,
                at: None,
            })
            .collect();
        Steps {
            round: self.clone(),
            random: Rng::with_seed(self.seed),
            streams,
            writes: 0,
            flushes: 0,
            until_flush: 1,
        }
    }
}

/// Fills every `streams`-th zone, one after the other.
#[derive(Clone, Debug)]
struct Stream {
    /// Index of its next zone, counted from the round's first zone.
    next_zone: u32,
    at: Option<ZoneAddress>,
}

/// The commands of a round.
#[derive(Clone, Debug)]
pub struct Steps {
    round: Round,
    random: Rng,
    streams: Vec<Stream>,
    writes: u64,
    flushes: u64,
    until_flush: u64,
}

impl Iterator for Steps {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        if self.until_flush == 0 {
            self.until_flush = self.random.u64(1..=MOST_WRITES);
            self.flushes += 1;
            return Some(Step::Flush {
                number: self.flushes,
            });
        }
        let chosen = self.random.usize(..self.streams.len());
        let round = &self.round;
        let block = u64::from(round.block_bytes);
        let stream = &mut self.streams[chosen];
        let Some(at) = stream.at else {
            let zone = ZoneId(round.first_zone + stream.next_zone);
            stream.next_zone = (stream.next_zone + round.streams) % round.zones;
            stream.at = Some(ZoneAddress::new(zone, 0));
            return Some(Step::Reset(zone));
        };
        let room = round.zone_blocks - at.offset / block;
        let blocks = self.random.u64(1..=MOST_BLOCKS).min(room);
        let end = ZoneAddress::new(at.zone, at.offset + blocks * block);
        stream.at = (blocks < room).then_some(end);
        self.until_flush -= 1;
        self.writes += 1;
        Some(Step::Write {
            at,
            blocks,
            number: self.writes,
        })
    }
}
