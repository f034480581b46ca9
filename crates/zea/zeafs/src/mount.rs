//! Making a file system, and finding it again.

use crate::area::{Found, MetadataLog, areas};
use crate::error::{Error, Result};
use crate::file_map::FileMap;
use crate::format::frame::Frame;
use crate::fs::ZeaFs;
use crate::inner::Inner;
use crate::shared::Shared;
use crate::space::Space;
use crate::writer::WRITE_BUFFER;
use device::{ZonedDevice, erase};
use runtime::Runtime;
use runtime::sync::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use zone::{ZoneCondition, ZoneDescriptor, ZoneId};

impl ZeaFs {
    /// Makes an empty file system. Without `force`, only a drive without written zones is taken.
    pub fn format(device: &dyn ZonedDevice, uuid: [u8; 16], force: bool) -> Result<()> {
        let g = device.geometry();
        let (areas, _) = areas(g)?;
        let written = erase::written_zones(device, 0..g.zone_count)?;
        if !force && !written.is_empty() {
            return Err(Error::NotEmpty);
        }
        // Also a checkpoint of a former file system, in a conventional zone.
        erase::reset(device, &written, true, &mut || {})?;
        for area in areas.iter().filter(|area| !area.is_sequential) {
            let block = vec![0; g.block_size as usize];
            device.write(g.absolute(area.address(0)), &block)?;
        }
        let nothing = Frame {
            uuid,
            epoch: 0,
            number: 0,
            length: 0,
            block_size: g.block_size,
            zone_count: g.zone_count,
            zone_capacity: g.zone_capacity,
        };
        let mut log = MetadataLog::behind(areas, 1, nothing);
        log.checkpoint(device, &FileMap::default().checkpoint())?;
        device.flush()?;
        Ok(())
    }

    /// Finds the file system as of its last commit, and goes on with a new checkpoint of it.
    pub fn mount(device: Arc<dyn ZonedDevice>, runtime: Runtime) -> Result<Self> {
        Self::mount_with(device, runtime, WRITE_BUFFER)
    }

    /// The same with so many bytes of each file in memory at most, one at least.
    pub fn mount_with(
        device: Arc<dyn ZonedDevice>,
        runtime: Runtime,
        write_buffer: usize,
    ) -> Result<Self> {
        let g = device.geometry().clone();
        let (areas, zones) = areas(&g)?;
        // A program that was killed may have left a frame in the drive's cache: what is reset for it has to come behind.
        device.flush()?;
        let mut found: Vec<(usize, Found)> = Vec::new();
        for (place, area) in areas.iter().enumerate() {
            found.extend(area.read(&*device)?.map(|found| (place, found)));
        }
        found.sort_by_key(|(_, found)| found.last.epoch);
        let (current, newest) = found.pop().ok_or(Error::NotFormatted)?;
        same_shape(&newest.last, &*device)?;
        for (place, area) in areas.iter().enumerate() {
            let behind = if place == current { newest.end } else { 0 };
            area.refuse_later(&*device, behind, &newest.last)?;
        }
        let mut map = FileMap::default();
        for operation in newest.operations {
            map.apply(operation).map_err(|_| Error::Corrupt {
                at: areas[current].address(0),
                what: "operations that do not follow from each other, epoch",
                expected: newest.last.epoch,
                found: newest.last.number,
            })?;
        }
        let report = device.report(ZoneId(0), g.zone_count)?;
        let report: Vec<ZoneDescriptor> = report
            .into_iter()
            .filter(|zone| zones.binary_search(&zone.id).is_ok())
            .collect();
        let live: BTreeSet<ZoneId> = map
            .files
            .values()
            .flat_map(|file| &file.pieces)
            .map(|piece| piece.at.zone)
            .collect();
        let space = settle(&device, &g, &report, &live, &map, runtime)?;
        let mut inner = Inner {
            map,
            pending: Vec::new(),
            doomed: Vec::new(),
            log: MetadataLog::behind(areas, current, newest.last),
            space,
            buffers: BTreeMap::new(),
            readers: BTreeMap::new(),
            orphans: BTreeMap::new(),
            locks: BTreeSet::new(),
            moved_bytes: 0,
            stopped: None,
        };
        inner.checkpoint()?;
        Ok(Self {
            shared: Arc::new(Shared {
                inner: Mutex::new(inner),
                write_buffer: write_buffer.max(1),
            }),
        })
    }
}

/// The zones as they are: those without a live byte are reset, and what is partly written is finished, for a power cut
/// may have left more of these than may be active.
fn settle(
    device: &Arc<dyn ZonedDevice>,
    g: &zone::Geometry,
    report: &[ZoneDescriptor],
    live: &BTreeSet<ZoneId>,
    map: &FileMap,
    runtime: Runtime,
) -> Result<Space> {
    let block = u64::from(g.block_size);
    let mut written = BTreeMap::new();
    let mut dead = Vec::new();
    for zone in report {
        if live.contains(&zone.id) {
            // A finish makes the rest of it come back with a reset only.
            let bytes = match zone.condition {
                ZoneCondition::Full => zone.write_pointer,
                _ => g.zone_capacity,
            };
            written.insert(zone.id, bytes.saturating_sub(2 * block));
            if zone.condition.is_active() {
                appender::finish(&**device, zone.id);
            }
        } else if zone.write_pointer_valid()
            && (zone.write_pointer > 0 || zone.condition.is_active())
        {
            dead.push(zone.id);
        }
    }
    appender::reset_or_retire(&dead, |zone| device.reset(zone))?;
    let ids: BTreeSet<ZoneId> = report.iter().map(|zone| zone.id).collect();
    let fresh = device.report(ZoneId(0), g.zone_count)?;
    let fresh: Vec<ZoneDescriptor> = fresh
        .into_iter()
        .filter(|zone| ids.contains(&zone.id))
        .collect();
    let mut space = Space::new(device.clone(), &fresh, runtime);
    for piece in map.files.values().flat_map(|file| &file.pieces) {
        space.claim(piece, written.get(&piece.at.zone).copied().unwrap_or(0));
    }
    Ok(space)
}

/// Whether the drive still has the shape that it had.
fn same_shape(frame: &Frame, device: &dyn ZonedDevice) -> Result<()> {
    let g = device.geometry();
    let numbers = [
        (
            "block size",
            u64::from(frame.block_size),
            u64::from(g.block_size),
        ),
        (
            "number of zones",
            u64::from(frame.zone_count),
            u64::from(g.zone_count),
        ),
        ("zone capacity", frame.zone_capacity, g.zone_capacity),
    ];
    for (what, expected, found) in numbers {
        if expected != found {
            return Err(Error::GeometryChanged {
                what,
                expected,
                found,
            });
        }
    }
    Ok(())
}
