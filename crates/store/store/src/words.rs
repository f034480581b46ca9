//! Space, health and scrub status in words, for people.

use crate::health::{Health, MetadataZone, Waiting};
use crate::info::{Caches, Statfs};
use crate::losses::Loss;
use crate::scrubber::ScrubStatus;
use crate::zone_failures::SetAside;
use bluefs::ZonePurpose;
use std::fmt;
use std::time::{Duration, UNIX_EPOCH};
use zone::{Bytes, ZoneCondition, count};

/// Most names listed, so that everything fits on a screen.
const MAX_NAMES: usize = 10;

impl Statfs {
    /// A table with a row for each use of space: name, bytes, share in percent, and its meaning.
    pub fn rows(&self) -> Vec<Vec<String>> {
        let (drive, capacity) = (self.drive_bytes, self.capacity_bytes);
        let small = "of the live: small objects (up to 2 KiB), kept in the metadata";
        let more = "free conventional zones, for metadata only";
        let lost = "of zones with objects that cannot be read: see store health";
        let kept = "for the cleaner and for metadata to grow";
        let broken = "read-only and offline zones with nothing in them";
        let (live, can) = (
            "of the capacity: objects",
            "of the capacity: can still be stored",
        );
        // Name, bytes, the whole of which they are a share, and the meaning.
        let rows = [
            ("drive", drive, 0, "what its zones can hold"),
            ("metadata", self.metadata_bytes, drive, "zones of BlueFS"),
            ("  more for it", self.conventional_free_bytes, drive, more),
            ("reserve", self.reserve_bytes, drive, kept),
            ("unusable", self.unusable_bytes, drive, broken),
            ("set aside", self.set_aside_bytes, drive, lost),
            ("capacity", capacity, drive, "what objects can fill"),
            ("  live", self.live_bytes, capacity, live),
            ("    small", self.inline_bytes, capacity, small),
            ("  pinned", self.pinned_bytes, capacity, "uploads under way"),
            (
                "  dead",
                self.dead_bytes,
                capacity,
                "cleaning gives it back",
            ),
            ("  free", self.free_bytes, capacity, "can be written"),
            ("available", self.available_bytes, capacity, can),
        ];
        let row = |(name, bytes, of, what): (&str, u64, u64, &str)| {
            let bytes_of = [Bytes(bytes).to_string(), percent(bytes, of)];
            [name.to_owned()]
                .into_iter()
                .chain(bytes_of)
                .chain([what.to_owned()])
                .collect()
        };
        rows.into_iter().map(row).collect()
    }

    /// Facts that the table does not show, a line each.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "{} zones{}: {} with objects, {} of metadata, {} free, {} of them for objects",
            self.zones,
            match self.conventional_parts {
                ..=1 => String::new(),
                parts => format!(" (conventional ones in {parts} parts)"),
            },
            self.store_zones,
            self.metadata_zones,
            self.free_zones,
            self.free_zones_for_data
        )];
        if let Some(free) = self.host_free_bytes {
            let kept = Bytes(self.host_kept_bytes);
            let rest = match free < self.host_kept_bytes {
                true => format!("; below {kept} nothing new is stored, and deleting goes on"),
                false => String::new(),
            };
            lines.push(format!("host's disk: {} free{rest}", Bytes(free)));
        }
        let hint =
            "a larger drive, or smaller zones (drive create --zone-size), leaves more for objects.";
        lines.extend(self.why_small().map(|why| format!("{why}: {hint}")));
        lines
    }

    /// Explains a capacity that is far below what the drive can hold.
    fn why_small(&self) -> Option<String> {
        if self.zones == 0 || self.capacity_bytes >= self.drive_bytes / 4 * 3 {
            return None;
        }
        let zone = self.drive_bytes / u64::from(self.zones);
        Some(format!(
            "Metadata and reserves are counted in whole zones, and {} of about {} are few",
            count(self.zones.into(), "zone"),
            Bytes(zone)
        ))
    }
}

impl Caches {
    /// A line for each cache that is on: its size, and its hit ratio.
    pub fn lines(&self) -> Vec<String> {
        let both = [("metadata", &self.metadata), ("data", &self.data)];
        let both = both.into_iter().filter(|(_, cache)| cache.budget_bytes > 0);
        both.map(|(name, cache)| {
            let [held, budget, hits] = [cache.held_bytes, cache.budget_bytes, cache.hit_bytes];
            let (held, budget, hits) = (Bytes(held), Bytes(budget), Bytes(hits));
            let all = cache.hits + cache.misses;
            let ratio = match percent(cache.hits, all) {
                ratio if ratio.is_empty() => "none".to_owned(),
                ratio => ratio,
            };
            format!(
                "{name} cache: {held} of {budget}; {ratio} of {} hit, {hits}",
                count(all, "look-up")
            )
        })
        .collect()
    }
}

fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return String::new();
    }
    format!("{:.1} %", part as f64 * 100.0 / whole as f64)
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "waiting for the drive: {}", self.command)?;
        if let Some(zone) = self.zone {
            write!(f, " in zone {zone}")?;
        }
        write!(f, ", for {} s", self.seconds)
    }
}

impl Health {
    /// The whole report, a line each.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.is_healthy() {
            lines.push("healthy: nothing is known to be lost or at risk".to_owned());
        }
        let wear = self.wear.lines();
        lines.push(match wear.is_empty() {
            true => format!("drive: {}", self.grade),
            false => format!("drive: {}: {}", self.grade, wear.join(", ")),
        });
        if let Some(reason) = &self.failure {
            lines.push(format!(
                "nothing can be written until the drive is mounted again: {reason}"
            ));
        }
        lines.extend(self.waiting.iter().map(ToString::to_string));
        for zone in &self.zones {
            let what = match zone.why {
                SetAside::Unreadable => "cannot be read",
                SetAside::ReadOnly => "can only be read",
            };
            let (number, live, error) = (zone.zone, Bytes(zone.live_bytes), &zone.error);
            lines.push(format!(
                "zone {number} {what}, {live} of objects in it: {error}"
            ));
        }
        if self.set_aside_bytes > 0 {
            lines.push(format!(
                "{} of these zones cannot be used before the objects in them are removed",
                Bytes(self.set_aside_bytes)
            ));
        }
        if let Some(objects) = self.objects.filter(|objects| *objects > 0) {
            let objects_count = count(objects, "object");
            lines.push(format!("{objects_count} with data in these zones:"));
            names(&self.object_names, objects, &mut lines);
        }
        if self.lost_objects > 0 {
            lines.push(format!(
                "{} with {} that cannot be read:",
                count(self.lost_objects, "object"),
                Bytes(self.lost_bytes)
            ));
            let losses: Vec<String> = self.losses.iter().map(Loss::to_string).collect();
            names(&losses, self.lost_objects, &mut lines);
        }
        if !self.metadata.is_empty() {
            lines.push("metadata:".to_owned());
            names(&self.metadata, self.metadata.len() as u64, &mut lines);
        }
        for zone in &self.metadata_zones {
            lines.push(zone.line(self.metadata_copies));
        }
        if self.unusable_zones > 0 {
            let zones = count(self.unusable_zones.into(), "zone");
            lines.push(format!("{zones} out of use and empty"));
        }
        lines.extend(self.scrub.iter().flat_map(ScrubStatus::lines));
        lines
    }

    /// Everything that is wrong, in a few words; empty if healthy.
    pub fn summary(&self) -> String {
        let mut parts = Vec::new();
        if self.failure.is_some() {
            parts.push("nothing can be written".to_owned());
        }
        if !self.waiting.is_empty() {
            let commands = count(self.waiting.len() as u64, "command");
            parts.push(format!("{commands} not answered"));
        }
        if !self.zones.is_empty() {
            let zones = count(self.zones.len() as u64, "zone");
            let objects = self
                .objects
                .map(|n| format!(" with data of {}", count(n, "object")));
            parts.push(format!("{zones} at risk{}", objects.unwrap_or_default()));
        }
        if self.lost_objects > 0 {
            let objects = count(self.lost_objects, "object");
            parts.push(format!("{} of {objects} lost", Bytes(self.lost_bytes)));
        }
        if !self.metadata.is_empty() {
            parts.push("damaged metadata".to_owned());
        }
        parts.join(", ")
    }
}

impl MetadataZone {
    fn line(&self, copies: u32) -> String {
        let what = match self.condition {
            ZoneCondition::Offline => "is offline",
            _ => "can only be read",
        };
        let next = match (self.purpose, copies) {
            (ZonePurpose::Superblock, _) => "the superblocks in other zones count; nothing to do",
            (ZonePurpose::Spare | ZonePurpose::Freed, _) => "nothing in it counts; nothing to do",
            (_, 1) => "no other zone has what is in it: copy what is on the drive to another one",
            _ => {
                "the other copy counts; `zonestore store scrub DRIVE` writes a second one elsewhere"
            }
        };
        let (zone, of) = (self.zone, words_of(self.purpose));
        format!("zone {zone} ({of} of the metadata) {what}: {next}")
    }
}

fn words_of(purpose: ZonePurpose) -> &'static str {
    match purpose {
        ZonePurpose::Superblock => "superblocks",
        ZonePurpose::Journal => "journal",
        ZonePurpose::Log => "logs",
        ZonePurpose::Data => "files",
        ZonePurpose::Spare => "ready",
        ZonePurpose::Freed => "freed",
    }
}

impl ScrubStatus {
    /// What the scrub is doing and has found, a line each.
    pub fn lines(&self) -> Vec<String> {
        let when = |micros: Option<u64>| {
            let time = micros.map(|micros| UNIX_EPOCH + Duration::from_micros(micros));
            time.map_or_else(
                || "never".to_owned(),
                |time| humantime::format_rfc3339_seconds(time).to_string(),
            )
        };
        let mut lines = vec![format!(
            "scrub: all metadata was looked at last: {}; all data: {}",
            when(self.metadata_micros),
            when(self.data_micros)
        )];
        if self.began_micros.is_some() {
            let zone = self
                .zone
                .map_or(String::new(), |z| format!(", in zone {z}"));
            let running = match self.stopped_micros {
                _ if self.running => String::new(),
                None => ", not at work now".to_owned(),
                at => format!(
                    ", and was stopped at {}: `store scrub --deep` goes on, or the next pass that is due",
                    when(at)
                ),
            };
            lines.push(format!(
                "scrub: a pass over the data since {} has read {} of {}{zone}{running}",
                when(self.began_micros),
                Bytes(self.bytes_read),
                Bytes(self.bytes_all)
            ));
        }
        let found = [
            (
                self.copies_repaired,
                "place",
                "of metadata written anew from the other copy",
            ),
            (
                self.mended_at_mount,
                "place",
                "of metadata made whole by the mount",
            ),
            (
                self.rows_copied,
                "row",
                "of metadata copied to segment summaries again",
            ),
            (
                self.metadata_lost,
                "part",
                "of metadata damaged in all copies",
            ),
            (self.damaged_places, "damaged run", "of bytes of objects"),
        ];
        let found = found.into_iter().filter(|(many, ..)| *many > 0);
        lines.extend(found.map(|(many, one, what)| format!("scrub: {} {what}", count(many, one))));
        lines
    }
}

fn names(names: &[String], all: u64, lines: &mut Vec<String>) {
    let first = names.iter().take(MAX_NAMES);
    lines.extend(first.map(|name| format!("  {}", name.escape_debug())));
    let more = all.saturating_sub(MAX_NAMES as u64);
    if more > 0 {
        lines.push(format!("  and {more} more"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_in_percent() {
        assert_eq!(percent(1, 8), "12.5 %");
        assert_eq!(percent(1, 0), "");
    }

    #[test]
    fn the_summary_names_everything_that_is_wrong() {
        assert_eq!(Health::default().summary(), "");
        let health = Health {
            failure: Some("flush".into()),
            waiting: vec![Waiting {
                command: zone::ZoneCommand::Reset,
                zone: Some(zone::ZoneId(4)),
                seconds: 12,
            }],
            metadata: vec!["/db/1.sst".into()],
            ..Health::default()
        };
        assert_eq!(
            health.summary(),
            "nothing can be written, 1 command not answered, damaged metadata"
        );
    }
}
