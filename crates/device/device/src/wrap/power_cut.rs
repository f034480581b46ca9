//! A drive in memory with a volatile write cache, whose power can be cut.
//!
//! Flushed data is kept. Of unflushed commands, a power cut may keep: in a sequential zone any prefix of them
//! (writes, resets, finishes), the last write torn at a block; in a conventional zone any set of the written
//! blocks. Zones are independent of each other. These are the states that [`PowerCut::crash_states`] enumerates
//! and [`PowerCut::image`] builds. Several reads at once are executed one after the other.
//!
//! Zone conditions and limits are those of the rule book. A drive never comes up with more active zones than it
//! can have: where a state would have more, further commands are kept (see [`PowerCut::image`]).

mod crash_state;
mod image;

pub use crash_state::{CrashLimits, CrashState, ZoneChoice};

use crate::file::HostMemory;
use crate::rules::{PlannedWrite, RestedZone, ZoneTable};
use crate::sparse::SparseBytes;
use crate::{Keeps, MemoryDrive, ZonedDevice};
use runtime::sync::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use zone::{
    ByteOffset, Geometry, GeometryError, ZoneCommand, ZoneCondition, ZoneDescriptor, ZoneError,
    ZoneId, ZoneResult,
};

/// A drive in memory with a volatile write cache, whose power can be cut.
#[derive(Debug)]
pub struct PowerCut {
    geometry: Geometry,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Zone conditions and write pointers, including unflushed changes.
    table: ZoneTable,
    live: Vec<Arc<SparseBytes>>,
    /// The state of each zone as of the last flush.
    durable: Vec<DurableZone>,
    /// Unflushed commands by zone, in order.
    unflushed: BTreeMap<ZoneId, Vec<Unflushed>>,
    operations: u64,
    /// The power is cut by the command that would raise `operations` to this.
    cut_at: Option<u64>,
    lost: bool,
}

#[derive(Clone, Debug)]
struct DurableZone {
    bytes: Arc<SparseBytes>,
    rested: RestedZone,
}

/// A command that no flush has followed.
#[derive(Clone, Debug)]
enum Unflushed {
    Write { offset: u64, data: Arc<[u8]> },
    Reset,
    Finish,
}

impl PowerCut {
    /// A new drive with all sequential zones empty.
    pub fn new(geometry: Geometry) -> Result<Self, GeometryError> {
        let table = ZoneTable::new(geometry)?;
        let nothing = Arc::new(SparseBytes::default());
        let zones = table.geometry().zone_count as usize;
        Ok(Self::from_parts(table, vec![nothing; zones]))
    }

    /// A drive with this content, which is durable.
    fn from_parts(table: ZoneTable, bytes: Vec<Arc<SparseBytes>>) -> Self {
        let geometry = table.geometry().clone();
        let durable = geometry
            .zones()
            .zip(&bytes)
            .map(|(zone, bytes)| DurableZone {
                bytes: Arc::clone(bytes),
                rested: table.rested(zone),
            })
            .collect();
        let state = State {
            table,
            live: bytes,
            durable,
            unflushed: BTreeMap::new(),
            operations: 0,
            cut_at: None,
            lost: false,
        };
        Self {
            geometry,
            state: Mutex::new(state),
        }
    }

    /// Number of commands that have changed the drive: writes, appends, resets and finishes that had an effect,
    /// and flushes. Refused commands do not count.
    pub fn operation_count(&self) -> u64 {
        self.state.lock().operations
    }

    /// Cuts the power at the `n`-th command from now that would count; 0 cuts it now. That command and all
    /// later ones fail with [`ZoneError::PowerLost`]. It may have taken effect completely, in part, or not at
    /// all: the crash states cover all of these.
    pub fn cut_after(&self, n: u64) {
        let mut state = self.state.lock();
        state.cut_at = Some(state.operations.saturating_add(n));
        state.lost |= n == 0;
    }

    /// Whether the power has been cut.
    pub fn is_cut(&self) -> bool {
        self.state.lock().lost
    }

    /// Number of commands that no flush has followed.
    pub fn unflushed_count(&self) -> usize {
        self.state.lock().unflushed.values().map(Vec::len).sum()
    }

    /// Makes `zone` [`ZoneCondition::ReadOnly`] or, for good, [`ZoneCondition::Offline`]. Power cuts do not
    /// change that.
    pub fn set_condition(&self, zone: ZoneId, condition: ZoneCondition) -> ZoneResult<()> {
        let mut state = self.powered(ZoneCommand::Report)?;
        if state.table.check_failure(zone, condition)? {
            state.table.fail(zone, condition);
            state.durable[zone.index()].rested.condition = condition;
        }
        Ok(())
    }

    /// The states that a power cut now may leave, at most `limits.max_states`, without duplicates. They are
    /// valid for [`Self::image`] until the next command.
    ///
    /// All combinations of all zones' choices if they are few enough. If not: nothing kept, everything kept,
    /// each zone alone lost, each zone alone kept, each zone's other choices with all others kept and with all
    /// others lost, and then random states from `limits.seed`.
    pub fn crash_states(&self, limits: CrashLimits) -> Vec<CrashState> {
        let state = self.state.lock();
        crash_state::enumerate(&state.logs(&self.geometry), limits)
    }

    /// A random state that a power cut now may leave, which depends only on `seed`. Includes states that
    /// [`Self::crash_states`] leaves out: any set of blocks, tears at any block.
    pub fn random_crash_state(&self, seed: u64) -> CrashState {
        let state = self.state.lock();
        crash_state::random(&state.logs(&self.geometry), seed)
    }

    /// The drive after a power cut that left `choice`, with power again: all open zones are closed.
    ///
    /// If more zones would be active than the drive can have (because a reset was lost and a later write
    /// elsewhere was not), more commands are kept than `choice` says: zones are advanced to the next point at
    /// which they were empty or full, lowest zone first, until the limit holds.
    pub fn image(&self, choice: &CrashState) -> MemoryDrive {
        let (table, bytes) = image::make(&self.state.lock(), &self.geometry, choice);
        MemoryDrive::from_parts(table, bytes)
    }

    /// As [`Self::image`], as a drive whose power can be cut again.
    pub fn restart(&self, choice: &CrashState) -> Self {
        let (table, bytes) = image::make(&self.state.lock(), &self.geometry, choice);
        Self::from_parts(table, bytes)
    }

    fn powered(&self, command: ZoneCommand) -> ZoneResult<MutexGuard<'_, State>> {
        let state = self.state.lock();
        if state.lost {
            Err(ZoneError::PowerLost { command })
        } else {
            Ok(state)
        }
    }
}

impl State {
    /// Counts a command that is about to run, and fails if the power is cut by it.
    fn count(&mut self, command: ZoneCommand) -> ZoneResult<()> {
        self.operations += 1;
        if self.cut_at.is_some_and(|cut| self.operations >= cut) {
            self.lost = true;
            return Err(ZoneError::PowerLost { command });
        }
        Ok(())
    }

    fn log(&mut self, zone: ZoneId, what: Unflushed) {
        self.unflushed.entry(zone).or_default().push(what);
    }

    fn put(&mut self, command: ZoneCommand, write: PlannedWrite, data: &[u8]) -> ZoneResult<()> {
        let at = write.at();
        self.log(
            at.zone,
            Unflushed::Write {
                offset: at.offset,
                data: data.into(),
            },
        );
        if let Err(lost) = self.count(command) {
            self.table.abort_write(write);
            return Err(lost);
        }
        Arc::make_mut(&mut self.live[at.zone.index()]).write(at.offset, data);
        self.table.commit_write(write);
        Ok(())
    }

    fn logs(&self, geometry: &Geometry) -> Vec<crash_state::ZoneLog> {
        let log = |(zone, log): (&ZoneId, &Vec<Unflushed>)| {
            let blocks = log.iter().map(|what| match what {
                Unflushed::Write { data, .. } => {
                    Some((data.len() / geometry.block_size as usize) as u64)
                }
                Unflushed::Reset | Unflushed::Finish => None,
            });
            crash_state::ZoneLog {
                zone: *zone,
                ordered: geometry.kind(*zone) != zone::ZoneKind::Conventional,
                block_size: geometry.block_size.into(),
                write_blocks: blocks.collect(),
            }
        };
        self.unflushed.iter().map(log).collect()
    }
}

impl ZonedDevice for PowerCut {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn report(&self, first: ZoneId, count: u32) -> ZoneResult<Vec<ZoneDescriptor>> {
        Ok(self
            .powered(ZoneCommand::Report)?
            .table
            .report(first, count))
    }

    fn read(&self, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        let state = self.powered(ZoneCommand::Read)?;
        let span = state.table.check_read(at, buffer.len() as u64)?;
        let (mut written, rest) = buffer.split_at_mut(span.written as usize);
        rest.fill(0);
        let mut place = span.at;
        while !written.is_empty() {
            let take = written
                .len()
                .min((self.geometry.zone_size - place.offset) as usize);
            let (part, further) = written.split_at_mut(take);
            state.live[place.zone.index()].read(place.offset, part);
            written = further;
            place = zone::ZoneAddress::new(ZoneId(place.zone.0 + 1), 0);
        }
        Ok(())
    }

    fn write(&self, at: ByteOffset, data: &[u8]) -> ZoneResult<()> {
        let mut state = self.powered(ZoneCommand::Write)?;
        let write = state.table.begin_write(at, data.len() as u64)?;
        state.put(ZoneCommand::Write, write, data)
    }

    fn append(&self, zone: ZoneId, data: &[u8]) -> ZoneResult<ByteOffset> {
        let mut state = self.powered(ZoneCommand::Append)?;
        let write = state.table.begin_append(zone, data.len() as u64)?;
        let at = self.geometry.absolute(write.at());
        state.put(ZoneCommand::Append, write, data)?;
        Ok(at)
    }

    fn open(&self, zone: ZoneId) -> ZoneResult<()> {
        self.powered(ZoneCommand::Open)?.table.open(zone)
    }

    fn close(&self, zone: ZoneId) -> ZoneResult<()> {
        self.powered(ZoneCommand::Close)?.table.close(zone)
    }

    fn finish(&self, zone: ZoneId) -> ZoneResult<()> {
        let mut state = self.powered(ZoneCommand::Finish)?;
        if state.table.check_finish(zone)? {
            state.log(zone, Unflushed::Finish);
            state.count(ZoneCommand::Finish)?;
            state.table.finish(zone);
        }
        Ok(())
    }

    fn reset(&self, zone: ZoneId) -> ZoneResult<()> {
        let mut state = self.powered(ZoneCommand::Reset)?;
        if state.table.check_reset(zone)? {
            state.log(zone, Unflushed::Reset);
            state.count(ZoneCommand::Reset)?;
            state.table.reset(zone);
            state.live[zone.index()] = Arc::default();
        }
        Ok(())
    }

    fn host_free_bytes(&self) -> Option<u64> {
        None
    }
    fn keeps(&self) -> Keeps {
        Keeps::Prefixes
    }
    fn host_memory(&self) -> Option<&HostMemory> {
        None
    }
    fn flush(&self) -> ZoneResult<()> {
        let mut state = self.powered(ZoneCommand::Flush)?;
        state.count(ZoneCommand::Flush)?;
        let State {
            table,
            live,
            durable,
            unflushed,
            ..
        } = &mut *state;
        for zone in std::mem::take(unflushed).into_keys() {
            let bytes = Arc::clone(&live[zone.index()]);
            durable[zone.index()] = DurableZone {
                bytes,
                rested: table.rested(zone),
            };
        }
        Ok(())
    }
}
