//! A disk with zones: host-managed directly on shingled tracks, or host-aware over the translation layer of a
//! drive-managed disk.
//!
//! The rule book decides on each request at its arrival; an allowed one is served like that of any other disk.
//! Changes of a zone's condition cost only the command.

use crate::drive::DiskDrive;
use crate::model::Model;
use crate::pending::{PendingWrites, ZonePart};
use crate::profile_error::{ProfileError, must};
use crate::request::{BLOCK_BYTES, Completion, Failure, Request, RequestKind, Tag};
use crate::saved;
use crate::statistics::ModelStatistics;
use crate::time::Time;
use crate::zones::{MOST_ZONES, Zones};
use device::rules::ZoneTable;
use serde::{Deserialize, Serialize};
use zone::{Geometry, GeometryError, ZoneKind};

/// Location of the conventional zones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConventionalPlace {
    /// At the outer diameter, where their addresses are.
    Outer,
    /// At the middle diameter.
    Middle,
}

/// The zones of a disk, as in a profile.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskZones {
    /// Bytes of a zone.
    pub zone_size_bytes: u64,
    /// Number of conventional zones at the start of the drive.
    pub conventional_zones: u32,
    /// Location of the conventional zones.
    pub conventional_place: ConventionalPlace,
    /// Kind of the other zones: required on a host-managed drive, preferred on a host-aware one.
    pub sequential_kind: ZoneKind,
    /// Most zones open at once; 0 for no limit.
    pub max_open_zones: u32,
}

impl DiskZones {
    /// Checks that a disk of this many bytes can have the zones.
    pub(crate) fn check(&self, capacity_bytes: u64) -> Result<(), ProfileError> {
        let size = self.zone_size_bytes;
        let least = capacity_bytes.div_ceil(MOST_ZONES).max(BLOCK_BYTES);
        must(
            (least..=capacity_bytes).contains(&size) && size.is_multiple_of(BLOCK_BYTES),
            "zones.zone_size_bytes",
            size,
            format_args!(
                "a multiple of {BLOCK_BYTES} from {least} (for at most {MOST_ZONES} zones) to the capacity"
            ),
        )?;
        let zones = capacity_bytes / size;
        must(
            u64::from(self.conventional_zones) <= zones,
            "zones.conventional_zones",
            self.conventional_zones,
            format_args!("at most the {zones} zones that there are"),
        )
    }

    /// The geometry of a disk of this many bytes, rounded down to whole zones.
    pub fn geometry(&self, capacity_bytes: u64) -> Geometry {
        let zones = capacity_bytes
            .checked_div(self.zone_size_bytes)
            .unwrap_or(0);
        Geometry {
            block_size: BLOCK_BYTES as u32,
            zone_size: self.zone_size_bytes,
            zone_capacity: self.zone_size_bytes,
            zone_count: u32::try_from(zones).unwrap_or(0),
            conventional_zones: self.conventional_zones,
            conventional_parts: 1,
            sequential_kind: self.sequential_kind,
            max_open_zones: self.max_open_zones,
            max_active_zones: 0,
            max_append_bytes: 0,
        }
    }
}

/// A disk with zones; see the head of this file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ZonedDisk {
    drive: DiskDrive,
    zones: Zones,
    /// Writes to zones that prefer sequential writes, until they are whole on the medium.
    pending: PendingWrites,
}

impl ZonedDisk {
    /// Zones on a drive that is large enough for them.
    ///
    /// # Errors
    /// [`GeometryError`]: the geometry is impossible, or larger than the drive.
    pub fn new(drive: DiskDrive, geometry: Geometry) -> Result<Self, GeometryError> {
        let (zone_count, conventional_zones) = (geometry.zone_count, geometry.conventional_zones);
        let zones = Zones::new(geometry)?;
        if zones.blocks() > drive.blocks() {
            return Err(GeometryError::ZoneCount {
                zone_count,
                conventional_zones,
            });
        }
        Ok(Self {
            drive,
            zones,
            pending: PendingWrites::default(),
        })
    }

    /// The drive below the zones.
    pub const fn drive(&self) -> &DiskDrive {
        &self.drive
    }

    /// Switches the volatile write cache.
    pub fn set_volatile_cache(&mut self, on: bool) {
        self.drive.set_volatile_cache(on);
    }

    /// The parts of a write in zones that prefer sequential writes, each with the write pointer before it.
    fn preferred_parts(&self, request: &Request) -> Vec<(ZonePart, u64)> {
        let all = self.zones.blocks();
        let exists = request.lba.0 < all && request.end().0 <= all;
        if !request.operation.is_write() || !exists {
            return Vec::new();
        }
        let parts = self.zones.preferred_parts(request.lba, request.blocks);
        let with_pointer = |part: ZonePart| (part, self.zones.pointer(part.zone));
        parts.into_iter().map(with_pointer).collect()
    }

    /// Applies a request to the zones; returns the part of it that the drive has to serve, if any.
    fn allow(&mut self, request: &Request) -> Result<Option<Request>, Failure> {
        let Request {
            operation,
            lba,
            blocks,
        } = *request;
        let all = self.zones.blocks();
        if lba.0 >= all || request.end().0 > all {
            return Err(Failure::OutOfRange);
        }
        match operation {
            RequestKind::Read => {
                let mut written = lba;
                for (lba, blocks) in self.zones.pieces(lba, blocks) {
                    match self.zones.check_read(lba, blocks)?.written / BLOCK_BYTES {
                        0 => {}
                        count => written = lba.plus(count),
                    }
                }
                // What lies after the last written block is zeros, whatever a power cut left there.
                let blocks = (written.0 - lba.0) as u32;
                return Ok((blocks > 0).then_some(Request::read(lba, blocks)));
            }
            RequestKind::Write | RequestKind::WriteThrough => {
                for (lba, blocks) in self.zones.pieces(lba, blocks) {
                    self.zones.write(lba, blocks, false)?;
                }
                return Ok(Some(*request));
            }
            RequestKind::Append => {
                let place = self.zones.write(lba, blocks, true)?;
                return Ok(Some(Request::write(place, blocks)));
            }
            RequestKind::Flush | RequestKind::Trim => return Ok(Some(*request)),
            _ => {}
        }
        let zone = self.zones.beginning_at(lba)?;
        match operation {
            RequestKind::ResetZone => {
                self.zones.reset(zone)?;
                self.pending.reset(zone);
            }
            RequestKind::FinishZone => {
                if self.zones.finish(zone)? {
                    self.pending.finish(zone, self.zones.pointer(zone));
                }
            }
            _ => self
                .zones
                .set_open(zone, operation == RequestKind::OpenZone)?,
        }
        Ok(None)
    }
}

impl Model for ZonedDisk {
    fn set_volatile_cache(&mut self, on: bool) -> bool {
        self.set_volatile_cache(on);
        true
    }

    fn set_look_ahead(&mut self, on: bool) -> bool {
        self.drive.set_look_ahead(on);
        true
    }

    fn blocks(&self) -> u64 {
        self.zones.blocks()
    }

    fn submit(&mut self, request: Request, now: Time) -> Completion {
        let tag = self.enqueue(request, now);
        self.drive.wait_for(tag, request, now)
    }

    fn enqueue(&mut self, request: Request, now: Time) -> Tag {
        let parts = self.preferred_parts(&request);
        match self.allow(&request) {
            Ok(Some(allowed)) => {
                let tag = self.drive.enqueue(allowed, now);
                for (part, pointer) in parts {
                    self.pending.write(tag, part, pointer);
                }
                self.pending.settle(|tag| self.drive.reached(tag, now));
                tag
            }
            Ok(None) => self.drive.answer(request, now, Ok(())),
            Err(failure) => self.drive.answer(request, now, Err(failure)),
        }
    }

    fn next_completion(&mut self) -> Option<Completion> {
        self.drive.next_completion()
    }

    fn completion_by(&mut self, now: Time) -> Option<Completion> {
        self.drive.completion_by(now)
    }

    fn next_moment(&self) -> Option<Time> {
        self.drive.next_moment()
    }

    fn saved(&self) -> Option<Vec<u8>> {
        saved::encode(self)
    }

    fn is_rotational(&self) -> bool {
        true
    }

    fn idle_until(&mut self, now: Time) {
        self.drive.idle_until(now);
    }

    /// In a zone that requires sequential writes, the write pointer goes back to the first write that was in the volatile
    /// cache or waiting, or to the block that the head had reached in the write that was being served. In a zone that
    /// prefers them, it goes back to the end of the highest block that is on the medium.
    fn power_cut(&mut self, now: Time) -> Vec<Completion> {
        self.drive.idle_until(now);
        self.zones.power_cycle();
        let drive = &self.drive;
        for (zone, pointer) in self.pending.power_cut(|tag| drive.reached(tag, now)) {
            self.zones.set_back(zone, pointer);
        }
        for lba in self.drive.unwritten(now) {
            self.zones.cut_back(lba);
        }
        self.drive.power_cut(now)
    }

    fn statistics(&self) -> ModelStatistics {
        self.drive.statistics()
    }

    fn zones(&self) -> Option<&ZoneTable> {
        Some(self.zones.table())
    }
}
