//! The parameters of a simulation: the cluster, its drives, their data and the load. [`Scenario::check`] and
//! [`Load::check`] tell which values are possible.

use super::model_disk::BackEnd;
use super::ring::Places;
use super::served_disk::Calibrated;
use crate::policy::Policy;
use drive_model::{BLOCK_BYTES, Profile, ProfileError, Span};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use zone_alloc::{Pace, Watermarks};

/// The most drives, and the most proxies.
const MOST_DRIVES: u64 = 100_000;
/// The most drives times partitions of each. A part of a partition takes some 8 bytes of memory.
const MOST_PARTITIONS: u64 = 16_000_000;
/// The most replicas or fragments of an object.
const MOST_PARTS: u32 = 32;
/// The slowest network, in bytes a second: with a slower one, the simulation would be of nothing but waiting.
const LEAST_NETWORK: u64 = 1_000_000;
/// The largest live data ÷ capacity, with a lost drive's data on the other drives.
const MOST_LIVE: f64 = 0.95;

/// How an object survives the loss of a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Redundancy {
    /// This many whole copies. A write is done when more than half are durable; a read takes one.
    Replicas(u32),
    /// Fragments, any `data` of which give the object. A write is done when `data` + 1 are durable, as in OpenStack
    /// Swift.
    Erasure {
        /// Fragments that a read needs.
        data: u32,
        /// Fragments beyond `data`.
        parity: u32,
    },
}

impl Redundancy {
    /// Drives that have a part of an object.
    pub const fn width(self) -> u32 {
        match self {
            Self::Replicas(count) => count,
            Self::Erasure { data, parity } => data + parity,
        }
    }

    /// Parts that a read needs.
    pub const fn to_read(self) -> u32 {
        match self {
            Self::Replicas(_) => 1,
            Self::Erasure { data, .. } => data,
        }
    }

    /// Parts that have to be durable before a write is answered.
    pub const fn to_write(self) -> u32 {
        match self {
            Self::Replicas(count) => count / 2 + 1,
            Self::Erasure { data, .. } => data + 1,
        }
    }

    /// How many drives with parts of one object may clean at once, as in OpenStack Swift: one replica; of an erasure
    /// code, `parity` − 1 fragments (at least 1), so that one is left for a drive that fails.
    pub const fn clean_at_once(self) -> u32 {
        match self {
            Self::Replicas(_) => 1,
            Self::Erasure { parity, .. } if parity > 1 => parity - 1,
            Self::Erasure { .. } => 1,
        }
    }

    /// Bytes of each part of an object, in whole blocks.
    pub fn part_bytes(self, object_bytes: u64) -> u64 {
        let part = object_bytes.div_ceil(u64::from(self.to_read().max(1)));
        part.checked_next_multiple_of(BLOCK_BYTES)
            .unwrap_or(u64::MAX)
    }
}

impl FromStr for Redundancy {
    type Err = &'static str;

    /// `3` for replicas, `8+4` for an erasure code.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |text: &str| {
            text.trim()
                .parse()
                .ok()
                .filter(|n| (1..=MOST_PARTS).contains(n))
        };
        let read = match text.split_once('+') {
            None => number(text).map(Self::Replicas),
            Some((data, parity)) => number(data)
                .zip(number(parity))
                .map(|(data, parity)| Self::Erasure { data, parity }),
        };
        let fits = read.filter(|read| read.width() <= MOST_PARTS);
        fits.ok_or("write a number of replicas such as 3, or data and parity of an erasure code such as 8+4; 32 in all at most")
    }
}

/// The form that [`FromStr`] reads.
impl fmt::Display for Redundancy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replicas(count) => write!(f, "{count}"),
            Self::Erasure { data, parity } => write!(f, "{data}+{parity}"),
        }
    }
}

/// How the cleaning of a drive is coordinated with other drives and with reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coordination {
    /// Nothing: drives clean when they like, reads go to any replica.
    None,
    /// Proxies hear which drives clean, and read from other drives first.
    News,
    /// In addition, drives take turns (`super::turns`), so that at most one replica of an object cleans at once.
    Turns,
}

impl Coordination {
    /// Each variant with its name and a description.
    pub const ALL: [(&str, Self, &str); 3] = [
        (
            "none",
            Self::None,
            "Drives clean when they like, reads go to any replica",
        ),
        (
            "news",
            Self::News,
            "Reads go first to replicas on drives that do not clean",
        ),
        (
            "turns",
            Self::Turns,
            "That, and at most one replica of an object cleans at once",
        ),
    ];

    /// The name in [`Self::ALL`].
    pub fn name(self) -> &'static str {
        let found = Self::ALL.into_iter().find(|(_, other, _)| *other == self);
        found.map_or("", |(name, ..)| name)
    }
}

/// How the drives are timed.
#[derive(Clone, Debug)]
pub enum Disks {
    /// A queue with one job at a time, whose times were measured on one kind of drive or are those of a closed form.
    Served(Arc<Calibrated>),
    /// Each drive is a model of this profile.
    Models {
        /// The profile of the drives.
        profile: Box<Profile>,
        /// The requests that make an object durable.
        back_end: BackEnd,
    },
}

/// Where a drive's data lies, and whether the space of overwritten data has to be cleaned.
#[derive(Clone, Debug)]
pub enum Layout {
    /// Anywhere: the drive takes any write, and nothing has to be cleaned by the host.
    Blocks {
        /// Bytes for data.
        bytes: u64,
        /// The share of them that is live at the beginning.
        utilization: f64,
    },
    /// In zones, with ZoneStore's cleaner.
    Zones {
        /// Zones for data of each drive; those reserved for the cleaner are on top.
        zones: u32,
        /// Bytes of a zone.
        zone_bytes: u64,
        /// Live data ÷ zones for data at the beginning; 0 for an empty drive.
        utilization: f64,
        /// Numbers of free zones at which cleaning begins and becomes urgent.
        free_zones: Watermarks,
        /// Limit on cleaning that is not urgent.
        pace: Pace,
        /// Which zone is cleaned next.
        policy: Policy,
    },
}

impl Layout {
    /// Bytes of data that are live on a drive at the beginning.
    pub fn live_bytes(&self) -> f64 {
        match self {
            Self::Blocks { bytes, utilization } => *bytes as f64 * utilization,
            Self::Zones {
                zones,
                zone_bytes,
                utilization,
                ..
            } => f64::from(*zones) * *zone_bytes as f64 * utilization,
        }
    }

    const fn utilization(&self) -> f64 {
        match self {
            Self::Blocks { utilization, .. } | Self::Zones { utilization, .. } => *utilization,
        }
    }
}

/// The loss of a drive, whose data is rebuilt on the others.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Lost {
    /// Seconds from the beginning of the load to the loss.
    pub after_seconds: f64,
    /// The most bytes a second that the rebuild writes to the other drives.
    pub bytes_per_second: u64,
}

/// A cluster and its data.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Machines with drives.
    pub nodes: u32,
    /// Drives of each node.
    pub drives_per_node: u32,
    /// Failure zones, such as racks, to which the nodes belong in turn: the ring keeps parts of an object in
    /// different ones.
    pub failure_zones: u32,
    /// Machines that take the users' requests and pass them on to nodes.
    pub proxies: u32,
    /// The least number of partitions of the ring that a drive has a part of.
    pub partitions_a_drive: u32,
    /// How an object survives the loss of a drive.
    pub redundancy: Redundancy,
    /// Bytes of an object.
    pub object_bytes: u64,
    /// How the drives are timed.
    pub disks: Disks,
    /// Where the drives' data lies.
    pub layout: Layout,
    /// Bytes a second that a machine's network interface takes in, and gives out; 0 for no limit.
    pub link_bytes_per_second: u64,
    /// Delay from one machine to another, on top of the time that the bytes take on the links.
    pub hop: Span,
    /// How long a proxy waits for the last parts of a write once enough are durable: half a second in OpenStack Swift.
    pub after_quorum: Span,
    /// How drives and proxies are coordinated.
    pub coordination: Coordination,
    /// Delay until proxies hear that a drive has begun or ended cleaning; also the time between two rounds of turns,
    /// of which 100 ms is the least.
    pub news_delay: Span,
    /// Length of a turn, and of a shift while drives of other shifts wait: 2 to 240 seconds.
    pub turn: Span,
    /// Drives that may clean at once, in per cent of all; drives that must clean do so beyond this.
    pub budget_percent: u32,
    /// The loss of a drive, if one is lost.
    pub lost: Option<Lost>,
}

/// The requests of users: arrivals at random moments, clients, or both.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Load {
    /// Requests a second that arrive at random moments, whether or not earlier ones have been answered.
    pub per_second: f64,
    /// The share of these requests that are reads.
    pub reads: f64,
    /// Clients that read one object after the other.
    pub readers: u32,
    /// Clients that write one object after the other.
    pub writers: u32,
    /// Whether each write replaces an object, so that the utilization of the drives stays the same.
    pub overwrites: bool,
    /// Seconds before counting begins.
    pub warm_up_seconds: f64,
    /// When the load ends.
    pub until: Until,
}

/// The condition on which a load ends.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Until {
    /// This many seconds of counted time are over.
    Seconds(f64),
    /// This many writes have begun; or reads, if the load has no writes.
    Requests(u64),
}

/// Why a cluster or a load cannot be simulated, or a run ended early.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Impossible {
    /// No drive or no proxy, or more than `MOST_DRIVES`.
    #[error("nodes times drives are 1 to {MOST_DRIVES}, and there are 1 to as many proxies")]
    Size,
    /// Fewer drives than an object has parts.
    #[error(
        "a redundancy of {redundancy} takes {width} drives, and there are {drives}: add nodes or drives, or take fewer replicas or fragments"
    )]
    TooFewDrives {
        /// The redundancy asked for.
        redundancy: Redundancy,
        /// Drives that it needs: one more if a drive is lost.
        width: u32,
        /// Drives of the cluster.
        drives: u32,
    },
    /// An object of 0 bytes, or with parts that are larger than a zone.
    #[error("an object has 1 byte to {most} bytes here: a part of it lies in one zone")]
    ObjectSize {
        /// The largest size in bytes.
        most: u64,
    },
    /// Too few zones, or more zones or objects than fit into memory.
    #[error("a drive has 4 zones to 100,000 and 16 million objects at most")]
    DriveSize,
    /// So much live data that cleaning could free no zone.
    #[error(
        "{live:.2} of the zones for data would be live{why}: at most {MOST_LIVE} can be, and a zone has to stay free"
    )]
    TooFull {
        /// Live data ÷ capacity.
        live: f64,
        /// Words for the message if a drive is lost; else empty.
        why: &'static str,
    },
    /// A parameter out of its range.
    #[error("{what} is {must}")]
    Number {
        /// Name of the parameter.
        what: &'static str,
        /// Its range, in words.
        must: &'static str,
    },
    /// The profile does not fit the layout, as zones on a drive without zones, or cannot be simulated in a cluster.
    #[error("{0}")]
    Drive(&'static str),
    /// A profile cannot be built.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A write waits for a zone, and nothing is left to clean.
    #[error("the drives are full: a write waits for room, and nothing is left to clean")]
    Full,
    /// Models of drives refused this many requests: a fault of the simulation.
    #[error("a model of a drive refused {0} requests: a fault of the simulation")]
    Refused(u64),
    /// The caller's `watch` returned false.
    #[error("interrupted")]
    Interrupted,
}

fn number(is_so: bool, what: &'static str, must: &'static str) -> Result<(), Impossible> {
    if is_so {
        Ok(())
    } else {
        Err(Impossible::Number { what, must })
    }
}

impl Scenario {
    /// Number of drives in the cluster.
    pub const fn drives(&self) -> u32 {
        self.places().drives()
    }

    /// Nodes, drives and failure zones.
    pub const fn places(&self) -> Places {
        Places {
            nodes: self.nodes,
            drives_per_node: self.drives_per_node,
            failure_zones: self.failure_zones,
        }
    }

    /// Bytes of a replica or fragment.
    pub fn part_bytes(&self) -> u64 {
        self.redundancy.part_bytes(self.object_bytes)
    }

    /// Checks that the scenario can be simulated.
    ///
    /// # Errors
    /// A parameter is out of its range, or the layout does not fit the drives.
    pub fn check(&self) -> Result<(), Impossible> {
        let drives = u64::from(self.nodes) * u64::from(self.drives_per_node);
        let possible = 1..=MOST_DRIVES;
        if !possible.contains(&drives) || !possible.contains(&u64::from(self.proxies)) {
            return Err(Impossible::Size);
        }
        number(
            (1..=self.nodes).contains(&self.failure_zones),
            "zones",
            "1 to as many as there are nodes",
        )?;
        number(
            (2.0..=240.0).contains(&self.turn.seconds()),
            "a turn",
            "2 to 240 seconds",
        )?;
        number(
            (1..=10_000).contains(&self.partitions_a_drive),
            "partitions a drive",
            "1 to 10,000",
        )?;
        number(
            self.link_bytes_per_second == 0 || self.link_bytes_per_second >= LEAST_NETWORK,
            "the network",
            "0 for no limit, or 1 MB a second or more",
        )?;
        number(
            drives * u64::from(self.partitions_a_drive) <= MOST_PARTITIONS,
            "the product of drives and partitions a drive",
            "16 million at most",
        )?;
        let (redundancy, width) = (self.redundancy, self.redundancy.width());
        number(
            self.lost.is_none() || redundancy.to_read() < width,
            "the redundancy",
            "2 replicas or more, or an erasure code, where a drive is lost",
        )?;
        let spare = u32::from(self.lost.is_some());
        if u64::from(width + spare) > drives {
            return Err(Impossible::TooFewDrives {
                redundancy,
                width: width + spare,
                drives: drives as u32,
            });
        }
        let part = self.part_bytes();
        let (most, units) = match self.layout {
            Layout::Blocks { bytes, .. } => (bytes, 4),
            Layout::Zones {
                zone_bytes, zones, ..
            } => (zone_bytes, zones),
        };
        if self.object_bytes == 0 || part > most {
            let most = most * u64::from(self.redundancy.to_read());
            return Err(Impossible::ObjectSize { most });
        }
        let slots = u64::from(units) * (most / part);
        if !(4..=100_000).contains(&units) || slots > 1 << 24 {
            return Err(Impossible::DriveSize);
        }
        let live = self.layout.utilization();
        number(
            (0.0..1.0).contains(&live),
            "utilization",
            "0 or more, and below 1",
        )?;
        let rest = drives as f64 / (drives as f64 - f64::from(spare)).max(1.0);
        let why = if self.lost.is_some() {
            " once a lost drive's data is on the others"
        } else {
            ""
        };
        let one_free = 1.0 - 1.0 / f64::from(units);
        if live * rest > MOST_LIVE.min(one_free) {
            return Err(Impossible::TooFull {
                live: live * rest,
                why,
            });
        }
        number(
            (1..=100).contains(&self.budget_percent),
            "the budget",
            "1 to 100 per cent of the drives",
        )?;
        if let Some(lost) = self.lost {
            number(
                lost.bytes_per_second > 0,
                "the rate of the rebuild",
                "a byte a second or more",
            )?;
            let seconds = lost.after_seconds;
            number(
                (0.0..1e6).contains(&seconds),
                "the moment of the loss",
                "0 or more seconds",
            )?;
        }
        self.check_drive()
    }

    fn check_drive(&self) -> Result<(), Impossible> {
        let Disks::Models { profile, .. } = &self.disks else {
            return Ok(());
        };
        if let Some(why) = super::fleet::why_not(profile) {
            return Err(Impossible::Drive(why));
        }
        match (&self.layout, &profile.zones) {
            (
                Layout::Zones {
                    zones, zone_bytes, ..
                },
                Some(shape),
            ) => {
                let all = profile.capacity_bytes / shape.zone_size_bytes;
                let sequential = all - u64::from(shape.conventional_zones).min(all);
                let needs = u64::from(*zones) + u64::from(super::zone_slots::BESIDE);
                if *zone_bytes != shape.zone_size_bytes {
                    return Err(Impossible::Drive(
                        "the zones are not of the size that the drive's have",
                    ));
                }
                if needs > sequential || shape.conventional_zones == 0 {
                    return Err(Impossible::Drive(
                        "the drive has fewer zones than that, or no conventional one for the log",
                    ));
                }
                Ok(())
            }
            (Layout::Blocks { bytes, .. }, None) => {
                let room = profile.capacity_bytes.saturating_sub(2 << 30);
                if *bytes > room {
                    return Err(Impossible::Drive("the data is larger than the drive"));
                }
                Ok(())
            }
            (Layout::Zones { .. }, None) => Err(Impossible::Drive("the drive has no zones")),
            (Layout::Blocks { .. }, Some(_)) => Err(Impossible::Drive(
                "the drive has zones, which have to be written in order",
            )),
        }
    }
}

impl Load {
    /// Checks that the load can be simulated.
    ///
    /// # Errors
    /// A parameter is out of its range.
    pub fn check(&self) -> Result<(), Impossible> {
        number(
            (0.0..=1e9).contains(&self.per_second),
            "the rate of requests",
            "0 to 10⁹ a second",
        )?;
        number(
            (0.0..=1.0).contains(&self.reads),
            "the part that reads",
            "0 to 1",
        )?;
        let clients = u64::from(self.readers) + u64::from(self.writers);
        number(
            (self.per_second > 0.0 || clients > 0) && clients <= 1_000_000,
            "the load",
            "a rate of requests or a number of clients, up to a million",
        )?;
        let sensible = |seconds: f64| (0.0..1e6).contains(&seconds);
        number(
            sensible(self.warm_up_seconds),
            "the time before anything is counted",
            "0 to a million seconds",
        )?;
        match self.until {
            Until::Seconds(seconds) => number(
                sensible(seconds) && seconds > 0.0,
                "the time",
                "above 0 and below a million seconds",
            ),
            Until::Requests(count) => number(count > 0, "the number of requests", "1 or more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redundancy_as_people_write_it() {
        for (text, width, to_read, to_write) in [
            ("3", 3, 1, 2),
            ("1", 1, 1, 1),
            ("8+4", 12, 8, 9),
            ("2+1", 3, 2, 3),
        ] {
            let redundancy: Redundancy = text.parse().unwrap();
            assert_eq!(redundancy.to_string(), text);
            let counts = (
                redundancy.width(),
                redundancy.to_read(),
                redundancy.to_write(),
            );
            assert_eq!(counts, (width, to_read, to_write));
        }
        for wrong in ["", "0", "a", "8+", "+4", "30+3", "33", "-1", "1.5"] {
            assert!(wrong.parse::<Redundancy>().is_err(), "{wrong}");
        }
        let erasure: Redundancy = "3+1".parse().unwrap();
        assert_eq!(erasure.part_bytes(1 << 20), 352_256);
        assert_eq!(Redundancy::Replicas(3).part_bytes(1), 4_096);
    }
}
