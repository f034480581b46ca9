//! Formats and mounts a file system.

use crate::area::{MetadataLog, areas};
use crate::error::{Error, Result};
use crate::file_map::FileMap;
use crate::fs::ZeaFs;
use crate::head;
use crate::inner::Inner;
use crate::newest::Newest;
use crate::replayed::Replayed;
use crate::shared::Shared;
use crate::space::Space;
use crate::writer::WRITE_BUFFER;
use appender::Flusher;
use device::{ZonedDevice, erase};
use runtime::Runtime;
use runtime::sync::Mutex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use zone::{ZoneCondition, ZoneDescriptor, ZoneId};

impl ZeaFs {
    /// Creates an empty file system. Without `force`, the drive must be empty.
    ///
    /// # Errors
    /// The drive is not empty ([`Error::NotEmpty`]) or does not suit, and nothing has been changed; or the drive's error.
    pub fn format(device: &dyn ZonedDevice, uuid: [u8; 16], force: bool) -> Result<()> {
        let g = device.geometry();
        let (areas, _) = areas(g)?;
        if !force && !erase::is_empty(device)? {
            return Err(Error::NotEmpty);
        }
        let written = erase::written_zones(device, 0..g.zone_count)?;
        erase::reset(device, &written, true, &mut || {})?;
        let is_conventional = !areas[0].is_sequential;
        if is_conventional {
            // The checkpoint of an earlier file system must not be valid under the new head.
            let block = vec![0; g.block_size as usize];
            device.write(g.absolute(areas[1].address(0)), &block)?;
        }
        let mut log = MetadataLog::behind(areas, 1, head::nothing(uuid, g));
        let nothing = FileMap::default().checkpoint();
        log.checkpoint(device, &Flusher::default(), &nothing)?;
        if is_conventional {
            head::write(device, uuid)?;
        }
        device.flush()?;
        Ok(())
    }

    /// Mounts the file system as of its last commit and writes a new checkpoint of it. If that fails because a
    /// metadata zone is broken, files can be read, and all changes return [`Error::Stopped`].
    pub fn mount(device: Arc<dyn ZonedDevice>, runtime: Runtime) -> Result<Self> {
        Self::mount_with(device, runtime, WRITE_BUFFER)
    }

    /// As [`Self::mount`], with a buffer of at most `write_buffer` bytes for each file, at least one byte.
    pub fn mount_with(
        device: Arc<dyn ZonedDevice>,
        runtime: Runtime,
        write_buffer: usize,
    ) -> Result<Self> {
        let g = device.geometry().clone();
        // A killed process may have left a frame in the drive's cache; it has to be durable before zones are
        // reset because of it.
        device.flush()?;
        let Newest {
            areas,
            zones,
            current,
            replayed:
                Replayed {
                    last,
                    map,
                    left_out,
                    ..
                },
            ..
        } = Newest::find(&*device)?;
        if left_out > 0 {
            tracing::info!(frames = left_out, "a sync was cut short");
        }
        let report = device.report(ZoneId(0), g.zone_count)?;
        let report: Vec<ZoneDescriptor> = report
            .into_iter()
            .filter(|zone| zones.binary_search(&zone.id).is_ok())
            .collect();
        let live: BTreeSet<ZoneId> = map.pieces().map(|(_, piece)| piece.at.zone).collect();
        let space = settle(&device, &g, &report, &live, &map, runtime)?;
        let mut inner = Inner {
            map,
            pending: Vec::new(),
            doomed: Vec::new(),
            leaving: VecDeque::new(),
            metadata: 0,
            log: MetadataLog::behind(areas, current, last),
            space,
            buffers: BTreeMap::new(),
            readers: BTreeMap::new(),
            orphans: BTreeMap::new(),
            locks: BTreeSet::new(),
            moved_bytes: 0,
            stopped: None,
        };
        match inner.checkpoint() {
            // A metadata zone is broken: the data can be read, and no changes are possible.
            Err(Error::Drive(error)) if appender::is_of_zone(&error) => {
                inner.stopped = Some(error.to_string());
            }
            done => done?,
        }
        let has_head = areas[0].is_sequential || head::uuid(&*device)?.is_some();
        if inner.stopped.is_none() && !has_head {
            match head::write(&*device, inner.log.uuid()) {
                Ok(()) => tracing::warn!("the head was damaged, and has been written again"),
                Err(error) => tracing::warn!(%error, "the head is damaged, and cannot be written"),
            }
            device.flush()?;
        }
        Ok(Self {
            shared: Arc::new(Shared {
                inner: Mutex::new(inner),
                write_buffer: write_buffer.max(1),
            }),
        })
    }
}

/// Resets the zones without live data, and finishes those that are partly written, because after a power cut
/// there may be more of these than may be active.
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
            // The unwritten rest of a finished zone is usable only after a reset.
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
    for (_, piece) in map.pieces() {
        space.claim(piece, written.get(&piece.at.zone).copied().unwrap_or(0));
    }
    Ok(space)
}
