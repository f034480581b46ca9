//! Status of the cleaner, for people and for the control socket.

use crate::cleaning_job::{CleaningJob, CleaningWork};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use zone::{Bytes, ZoneId, count};
use zone_alloc::{Hours, Pace, Watermarks};

/// Why a zone is being cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A user asked for everything or for this zone to be cleaned.
    Asked,
    /// Fewer zones are free than the low watermark.
    Ahead,
    /// Fewer zones are free than the min watermark.
    Urgent,
    /// The host's disk under the drive is nearly full.
    Host,
    /// A writer waits for a zone.
    Needed,
    /// The zone is read-only: its data is moved while it can be read.
    ReadOnly,
}

impl Reason {
    const fn words(self) -> &'static str {
        match self {
            Self::Asked => "as asked",
            Self::Ahead => "for a stock of free zones",
            Self::Urgent => "because hardly any zone is free",
            Self::Host => "because the host's disk is nearly full",
            Self::Needed => "because a writer waits for a zone",
            Self::ReadOnly => "because it can only be read",
        }
    }
}

/// A zone that is being cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZoneInHand {
    /// Its number.
    pub zone: ZoneId,
    /// Why it is cleaned.
    pub why: Reason,
    /// Live bytes when cleaning it began.
    pub live_bytes: u64,
    /// Of these, bytes that have been copied.
    pub moved_bytes: u64,
    /// Whether the pace makes the cleaner wait at present.
    pub waits: bool,
}

/// The cleaner's settings, present work, counters since the mount, and an estimate of the time left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CleanerStatus {
    /// A round of cleaning is running.
    pub running: bool,
    /// Whether it starts by itself when free zones run low.
    pub automatic: bool,
    /// A user asked it to clean everything.
    pub requested: bool,
    /// The zone in hand.
    #[serde(default)]
    pub in_hand: Option<ZoneInHand>,
    /// Speed while no thread waits for a zone.
    #[serde(default)]
    pub pace: Pace,
    /// Bytes a second that the pace allows at present; `None` if the pace is not a rate.
    #[serde(default)]
    pub pace_bytes_per_second: Option<u64>,
    /// Hours in which it may start before zones are urgently needed.
    #[serde(default)]
    pub hours: Hours,
    /// Minutes by which the clock of these hours is ahead of UTC.
    pub utc_offset_minutes: i16,
    /// Whether the clock is within these hours now.
    #[serde(default)]
    pub is_in_hours: bool,
    /// Numbers of free zones at which it starts, and at which cleaning is urgent.
    #[serde(default)]
    pub free_zones: Watermarks,
    /// Seconds left of this drive's turn in a cluster; zero outside of a cluster.
    #[serde(default)]
    pub turn_seconds: u32,
    /// Seconds until the cluster's last statement expires, after which the cleaner starts by itself; zero if none holds
    /// it back.
    #[serde(default)]
    pub hold_seconds: u32,
    /// A zone is worth cleaning, and the cluster holds the cleaner back.
    #[serde(default)]
    pub waits_for_turn: bool,
    /// Fewer zones are free than the min watermark: pace, hours and turns do not hold it back.
    #[serde(default)]
    pub is_urgent: bool,
    /// Zones that can be filled before cleaning is urgent.
    #[serde(default)]
    pub spare_zones: u32,
    /// Zones that are free for data, as in [`Statfs`](crate::Statfs).
    #[serde(default)]
    pub free_now: u32,
    /// Zones that data may fill, used or free.
    pub data_zones: u32,
    /// Of these, how many could be free with the live data of now.
    pub most_free: u32,
    /// Work since the last [`Store::clean_start`](crate::Store::clean_start).
    pub started: CleaningWork,
    /// The job of a request that begins now, for [`Store::clean_step`](crate::Store::clean_step).
    pub job: CleaningJob,
    /// Zones reset.
    pub zones_cleaned: u64,
    /// Bytes moved to other zones.
    pub bytes_moved: u64,
    /// Bytes that can be written again.
    pub bytes_freed: u64,
    /// Bytes that users wrote to zones.
    #[serde(default)]
    pub bytes_written: u64,
    /// Bytes written for each that users wrote; `None` if they wrote none.
    #[serde(default)]
    pub write_amplification: Option<f64>,
    /// Zones with dead bytes.
    pub dirty_zones: u32,
    /// Zones with live data that are read-only or have unreadable data: cleaning them would give nothing back.
    #[serde(default)]
    pub set_aside_zones: u32,
    /// Live bytes in [`Self::dirty_zones`]: what cleaning all of them moves.
    #[serde(default)]
    pub dirty_live_bytes: u64,
    /// Bytes moved a second over the last minute; `None` if none were.
    #[serde(default)]
    pub bytes_per_second: Option<u64>,
    /// Seconds that cleaning all dirty zones takes at that rate, or at the pace's if that is lower; `None` without a
    /// rate.
    #[serde(default)]
    pub seconds_left: Option<u64>,
    /// Zones without live bytes that the mount reset.
    pub mount_zones_reset: u32,
    /// Bytes that the mount gave back with them.
    pub mount_bytes_freed: u64,
}

impl CleanerStatus {
    /// Fills in the estimates that follow from the other fields.
    #[must_use]
    pub fn estimated(self) -> Self {
        // A pace that was set just now bounds the rate that was measured before.
        let seen = [self.bytes_per_second, self.pace_bytes_per_second];
        let rate = seen.into_iter().flatten().min();
        let seconds = |rate: u64| self.dirty_live_bytes.div_ceil(rate);
        let all = (self.bytes_written + self.bytes_moved) as f64;
        Self {
            seconds_left: match self.dirty_live_bytes {
                0 => Some(0),
                _ => rate.filter(|rate| *rate > 0).map(seconds),
            },
            write_amplification: (self.bytes_written > 0).then(|| all / self.bytes_written as f64),
            ..self
        }
    }

    /// Whether the cluster lets other drives clean, and no zone is urgently needed.
    pub const fn is_held(&self) -> bool {
        self.turn_seconds == 0 && self.hold_seconds > 0 && !self.is_urgent
    }

    /// What there is to clean, and how long that takes.
    pub fn to_clean(&self) -> String {
        let zones = count(self.dirty_zones.into(), "zone");
        let live = Bytes(self.dirty_live_bytes);
        let time = match self.seconds_left {
            Some(seconds) if self.dirty_live_bytes > 0 => {
                format!(", {}", about(Duration::from_secs(seconds.max(1))))
            }
            _ => String::new(),
        };
        format!("{zones} with dead bytes, {live} of live data to move{time}")
    }

    /// The settings in words: pace, hours and free zones.
    pub fn held_to(&self) -> String {
        let rate = match (self.pace, self.pace_bytes_per_second) {
            (Pace::Latency(_), Some(rate)) => format!(", {}/s at present", Bytes(rate)),
            _ => String::new(),
        };
        let hours = if self.hours.is_always() {
            String::new()
        } else {
            let (ahead, not) = (self.utc_offset_minutes, !self.is_in_hours);
            let sign = if ahead < 0 { '-' } else { '+' };
            let (hours, minutes) = (ahead.abs() / 60, ahead.abs() % 60);
            let not = if not { "not " } else { "" };
            format!(" (UTC{sign}{hours:02}:{minutes:02}), {not}now")
        };
        let asked = self.free_zones.to_string();
        let (min, low) = self.free_zones.of(self.data_zones);
        let of = match format!("{min}..{low}") {
            zones if zones == asked => String::new(),
            zones => format!("{zones} of {}, ", self.data_zones),
        };
        let always = if min > self.most_free {
            let most = self.most_free;
            format!("; no more than {most} can be free, so cleaning is always urgent")
        } else {
            String::new()
        };
        format!(
            "pace {}{rate}; hours {}{hours}; free zones for data {asked} ({of}{} now){always}",
            self.pace, self.hours, self.free_now
        )
    }

    /// For a server's status: what the cleaner is doing, its settings, and its counters, a line each.
    pub fn lines(&self) -> Vec<String> {
        let doing = match (self.in_hand, self.requested, self.running, self.automatic) {
            (Some(zone), ..) => {
                let waits = if zone.waits {
                    ", waiting as its pace says"
                } else {
                    ""
                };
                format!(
                    "zone {} {}, {} of {} moved{waits}",
                    zone.zone,
                    zone.why.words(),
                    Bytes(zone.moved_bytes),
                    Bytes(zone.live_bytes)
                )
            }
            (_, true, ..) => "cleaning everything, as asked".to_owned(),
            (_, _, true, _) => "cleaning".to_owned(),
            _ if self.is_held() => format!(
                "held back while other drives of the cluster clean, for {} s at most",
                self.hold_seconds
            ),
            (_, _, _, true) => "waits until free zones run low".to_owned(),
            _ => "stopped; writers still clean what they need".to_owned(),
        };
        let amplification = self.write_amplification.map_or_else(String::new, |factor| {
            format!("; {factor:.2} bytes written for each of users'")
        });
        let all = CleaningWork {
            zones_cleaned: self.zones_cleaned,
            bytes_moved: self.bytes_moved,
            bytes_freed: self.bytes_freed,
        };
        let at_start = match self.mount_zones_reset {
            0 => String::new(),
            zones => format!(
                "; the start has reset {} with {}",
                count(zones.into(), "zone"),
                Bytes(self.mount_bytes_freed)
            ),
        };
        let mut lines = vec![format!("cleaner: {doing}"), self.held_to()];
        if self.requested || self.started != CleaningWork::default() {
            let so_far = if self.requested { " so far" } else { "" };
            lines.push(format!("for --start{so_far}: {}", self.started));
        }
        lines.push(format!(
            "since the server's start: {all}{amplification}{at_start}"
        ));
        lines
    }
}

/// A length of time in its two largest units, for the rest is only a guess.
fn about(time: Duration) -> String {
    const YEAR: u64 = 365 * 24 * 3600;
    if time.as_secs() >= 3 * YEAR {
        return "over 3 years".to_owned();
    }
    let text = humantime::format_duration(time).to_string();
    let units: Vec<&str> = text.split(' ').take(2).collect();
    format!("about {}", units.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_that_is_left_follows_from_the_last_minute_or_from_the_pace() {
        let status = CleanerStatus {
            dirty_zones: 2,
            dirty_live_bytes: 90 << 20,
            ..CleanerStatus::default()
        };
        assert_eq!(status.estimated().seconds_left, None);
        assert_eq!(
            status.to_clean(),
            "2 zones with dead bytes, 90 MiB of live data to move"
        );
        let paced = CleanerStatus {
            pace_bytes_per_second: Some(10 << 20),
            ..status
        };
        assert_eq!(paced.estimated().seconds_left, Some(9));
        let measured = CleanerStatus {
            bytes_per_second: Some(1 << 20),
            ..paced
        };
        assert_eq!(
            measured.estimated().to_clean(),
            "2 zones with dead bytes, 90 MiB of live data to move, about 1m 30s"
        );
        assert_eq!(CleanerStatus::default().estimated().seconds_left, Some(0));
        let far = |seconds| about(Duration::from_secs(seconds));
        assert_eq!(far(3_700), "about 1h 1m");
        assert_eq!(far(40_000_000), "about 1year 3months");
        assert_eq!(far(100_000_000), "over 3 years");
    }

    #[test]
    fn it_says_what_it_does_and_why() {
        let status = CleanerStatus {
            automatic: true,
            bytes_written: 4 << 20,
            bytes_moved: 2 << 20,
            ..CleanerStatus::default()
        };
        let lines = status.estimated().lines();
        assert_eq!(lines[0], "cleaner: waits until free zones run low");
        assert_eq!(
            lines[1],
            "pace full; hours always; free zones for data 1..2 (0 now); no more than 0 can be free, so cleaning is \
             always urgent"
        );
        assert!(lines[2].ends_with("; 1.50 bytes written for each of users'"));
        let at_work = CleanerStatus {
            in_hand: Some(ZoneInHand {
                zone: ZoneId(7),
                why: Reason::Ahead,
                live_bytes: 3 << 20,
                moved_bytes: 1 << 20,
                waits: true,
            }),
            pace: Pace::Latency(std::time::Duration::from_millis(20)),
            pace_bytes_per_second: Some(8 << 20),
            hours: "22:00-06:00".parse().unwrap(),
            utc_offset_minutes: -210,
            free_zones: "2..20%".parse().unwrap(),
            data_zones: 50,
            most_free: 12,
            ..status
        };
        let lines = at_work.lines();
        assert_eq!(
            lines[0],
            "cleaner: zone 7 for a stock of free zones, 1 MiB of 3 MiB moved, waiting as its pace says"
        );
        assert_eq!(
            lines[1],
            "pace latency:20ms, 8 MiB/s at present; hours 22:00-06:00 (UTC-03:30), not now; free zones for data 2..20% \
             (2..10 of 50, 0 now)"
        );
    }
}
