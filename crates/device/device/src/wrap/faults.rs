//! A drive that injects faults as planned: I/O errors, torn writes, zones that break, slow and stuck commands.
//!
//! A plan counts the commands that match it and applies its fault to the k-th, once or from then on. A broken
//! zone is broken for this wrapper only; in the drive below it is merely closed if it was open, so that it
//! takes no open resource.
//!
//! Several reads at once are executed one after the other (the trait's default): a fault takes effect before
//! its own read and after the earlier ones, and reads after a failed one are not counted.

use crate::file::HostMemory;
use crate::{Keeps, ZonedDevice};
use runtime::sync::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use zone::{
    ByteOffset, Geometry, ZoneCommand, ZoneCondition, ZoneDescriptor, ZoneError, ZoneId, ZoneResult,
};

/// The effect of a fault on a command.
#[derive(Clone)]
pub enum Fault {
    /// The command fails with this error and does nothing.
    Io(io::ErrorKind),
    /// A write or append writes its first bytes, rounded down to blocks, and fails with `ErrorKind::Other`.
    /// Other commands fail without effect.
    Torn {
        /// Number of bytes that are written.
        bytes: u64,
    },
    /// The command's zone becomes read-only or offline, and the command fails for that reason.
    Break(ZoneCondition),
    /// The hook is called before the command runs.
    Slow(Arc<dyn Fn(ZoneCommand) + Send + Sync>),
    /// The command waits at the gate before it runs.
    Stuck(Arc<Gate>),
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(kind) => f.debug_tuple("Io").field(kind).finish(),
            Self::Torn { bytes } => f.debug_struct("Torn").field("bytes", bytes).finish(),
            Self::Break(condition) => f.debug_tuple("Break").field(condition).finish(),
            Self::Slow(_) => f.write_str("Slow"),
            Self::Stuck(_) => f.write_str("Stuck"),
        }
    }
}

/// A fault, and the commands that it applies to.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Only commands of this kind count; all kinds if `None`.
    pub command: Option<ZoneCommand>,
    /// Only commands that begin in this zone count; all zones if `None`.
    pub zone: Option<ZoneId>,
    /// The fault applies to the k-th command that counts, from 1.
    pub kth: u64,
    /// Whether it also applies to all later ones.
    pub for_ever: bool,
    /// The fault.
    pub fault: Fault,
}

impl Plan {
    /// Applies `fault` once, to the `kth` command of a kind, in any zone.
    pub const fn at(command: ZoneCommand, kth: u64, fault: Fault) -> Self {
        Self {
            command: Some(command),
            zone: None,
            kth,
            for_ever: false,
            fault,
        }
    }

    /// Applies `fault` to the `kth` command of a kind and all later ones, in any zone.
    pub const fn from(command: ZoneCommand, kth: u64, fault: Fault) -> Self {
        Self {
            command: Some(command),
            zone: None,
            kth,
            for_ever: true,
            fault,
        }
    }

    /// Restricts the plan to commands in `zone`.
    pub const fn in_zone(mut self, zone: ZoneId) -> Self {
        self.zone = Some(zone);
        self
    }
}

/// A gate at which commands wait until it is opened.
#[derive(Default, Debug)]
pub struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default, Debug)]
struct GateState {
    waiting: usize,
    open: bool,
}

impl Gate {
    /// A closed gate.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Opens the gate for good.
    pub fn release(&self) {
        self.state.lock().open = true;
        self.changed.notify_all();
    }

    /// Returns when at least `count` commands wait at the gate.
    pub fn wait_until_stuck(&self, count: usize) {
        let mut state = self.state.lock();
        while state.waiting < count {
            self.changed.wait(&mut state);
        }
    }

    fn pass(&self) {
        let mut state = self.state.lock();
        state.waiting += 1;
        self.changed.notify_all();
        while !state.open {
            self.changed.wait(&mut state);
        }
        state.waiting -= 1;
    }
}

/// A drive that injects faults as planned.
#[derive(Debug)]
pub struct Faults<D> {
    inner: D,
    state: Mutex<State>,
}

#[derive(Default, Debug)]
struct State {
    plans: Vec<Counted>,
    broken: BTreeMap<ZoneId, ZoneCondition>,
    struck: u64,
}

#[derive(Debug)]
struct Counted {
    plan: Plan,
    seen: u64,
}

impl<D: ZonedDevice> Faults<D> {
    /// A drive without plans, which does not fail.
    pub fn new(inner: D) -> Self {
        Self {
            inner,
            state: Mutex::default(),
        }
    }

    /// The drive below.
    pub const fn inner(&self) -> &D {
        &self.inner
    }

    /// Adds a plan, which counts commands from now on.
    pub fn add(&self, plan: Plan) {
        self.state.lock().plans.push(Counted { plan, seen: 0 });
    }

    /// Removes all plans. Broken zones stay broken.
    pub fn clear(&self) {
        self.state.lock().plans.clear();
    }

    /// Number of faults that have been applied.
    pub fn struck(&self) -> u64 {
        self.state.lock().struck
    }

    /// Makes `zone` [`ZoneCondition::ReadOnly`] or [`ZoneCondition::Offline`] now.
    pub fn break_zone(&self, zone: ZoneId, condition: ZoneCondition) {
        self.state.lock().broken.insert(zone, condition);
        // Frees the open resource. The close fails if the zone is not open, which is just as well.
        let _ = self.inner.close(zone);
    }

    /// Applies the planned faults to a command at `at`, and checks its `length` bytes for broken zones.
    /// `Ok(Some(bytes))`: the write is torn after that many bytes.
    fn strike(
        &self,
        command: ZoneCommand,
        at: ByteOffset,
        length: usize,
    ) -> ZoneResult<Option<u64>> {
        let zone = self.inner.geometry().address(at).map(|place| place.zone);
        let zone = if command == ZoneCommand::Flush {
            None
        } else {
            zone
        };
        let mut torn = None;
        for fault in self.due(command, zone) {
            match fault {
                Fault::Io(kind) => return Err(io_error(command, at, kind)),
                Fault::Torn { bytes } => torn = Some(bytes),
                Fault::Break(condition) => {
                    if let Some(zone) = zone {
                        self.break_zone(zone, condition);
                    }
                }
                Fault::Slow(hook) => hook(command),
                Fault::Stuck(gate) => gate.pass(),
            }
        }
        if let Some(first) = zone {
            // A read may continue in further zones.
            let end = ByteOffset(at.0.saturating_add((length as u64).saturating_sub(1)));
            let last = self
                .inner
                .geometry()
                .address(end)
                .map_or(first, |end| end.zone);
            for (zone, condition) in self.state.lock().broken.range(first..=last.max(first)) {
                let zone = *zone;
                if *condition == ZoneCondition::Offline {
                    return Err(ZoneError::Offline { command, zone });
                }
                if command != ZoneCommand::Read {
                    return Err(ZoneError::ReadOnly { command, zone });
                }
            }
        }
        match command {
            ZoneCommand::Write | ZoneCommand::Append => Ok(torn),
            _ if torn.is_some() => Err(io_error(command, at, io::ErrorKind::Other)),
            _ => Ok(None),
        }
    }

    /// The faults that apply now. They are returned so that the lock is not held while hooks and gates take
    /// their time.
    fn due(&self, command: ZoneCommand, zone: Option<ZoneId>) -> Vec<Fault> {
        let mut state = self.state.lock();
        let mut due = Vec::new();
        for Counted { plan, seen } in &mut state.plans {
            let counts = plan.command.is_none_or(|only| only == command)
                && (plan.zone.is_none() || plan.zone == zone);
            if counts {
                *seen += 1;
                if *seen == plan.kth || (plan.for_ever && *seen > plan.kth) {
                    due.push(plan.fault.clone());
                }
            }
        }
        state.struck += due.len() as u64;
        due
    }

    fn zone_command(
        &self,
        command: ZoneCommand,
        zone: ZoneId,
        run: impl FnOnce(&D) -> ZoneResult<()>,
    ) -> ZoneResult<()> {
        self.strike(command, self.zone_start(zone), 0)?;
        run(&self.inner)
    }

    fn zone_start(&self, zone: ZoneId) -> ByteOffset {
        ByteOffset(
            self.inner
                .geometry()
                .zone_size
                .saturating_mul(zone.0.into()),
        )
    }

    /// The part of `data` that a torn write writes.
    fn head<'a>(&self, data: &'a [u8], bytes: u64) -> &'a [u8] {
        let bytes = bytes.min(data.len() as u64);
        &data[..(bytes - bytes % u64::from(self.inner.geometry().block_size)) as usize]
    }
}

fn io_error(command: ZoneCommand, at: ByteOffset, kind: io::ErrorKind) -> ZoneError {
    ZoneError::Io {
        command,
        at,
        source: Arc::new(kind.into()),
    }
}

impl<D: ZonedDevice> ZonedDevice for Faults<D> {
    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }

    fn report(&self, first: ZoneId, count: u32) -> ZoneResult<Vec<ZoneDescriptor>> {
        for fault in self.due(ZoneCommand::Report, Some(first)) {
            match fault {
                Fault::Slow(hook) => hook(ZoneCommand::Report),
                Fault::Stuck(gate) => gate.pass(),
                Fault::Break(condition) => self.break_zone(first, condition),
                Fault::Torn { .. } => {
                    let at = self.zone_start(first);
                    return Err(io_error(ZoneCommand::Report, at, io::ErrorKind::Other));
                }
                Fault::Io(kind) => {
                    return Err(io_error(ZoneCommand::Report, self.zone_start(first), kind));
                }
            }
        }
        let mut zones = self.inner.report(first, count)?;
        let state = self.state.lock();
        for zone in &mut zones {
            if let Some(condition) = state.broken.get(&zone.id) {
                zone.condition = *condition;
                zone.write_pointer = 0;
            }
        }
        Ok(zones)
    }

    fn read(&self, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        self.strike(ZoneCommand::Read, at, buffer.len())?;
        self.inner.read(at, buffer)
    }

    fn write(&self, at: ByteOffset, data: &[u8]) -> ZoneResult<()> {
        let Some(bytes) = self.strike(ZoneCommand::Write, at, 0)? else {
            return self.inner.write(at, data);
        };
        let head = self.head(data, bytes);
        if !head.is_empty() {
            self.inner.write(at, head)?;
        }
        Err(io_error(ZoneCommand::Write, at, io::ErrorKind::Other))
    }

    fn append(&self, zone: ZoneId, data: &[u8]) -> ZoneResult<ByteOffset> {
        let start = self.zone_start(zone);
        let Some(bytes) = self.strike(ZoneCommand::Append, start, 0)? else {
            return self.inner.append(zone, data);
        };
        let head = self.head(data, bytes);
        if !head.is_empty() {
            self.inner.append(zone, head)?;
        }
        Err(io_error(ZoneCommand::Append, start, io::ErrorKind::Other))
    }

    fn open(&self, zone: ZoneId) -> ZoneResult<()> {
        self.zone_command(ZoneCommand::Open, zone, |inner| inner.open(zone))
    }
    fn close(&self, zone: ZoneId) -> ZoneResult<()> {
        self.zone_command(ZoneCommand::Close, zone, |inner| inner.close(zone))
    }
    fn finish(&self, zone: ZoneId) -> ZoneResult<()> {
        self.zone_command(ZoneCommand::Finish, zone, |inner| inner.finish(zone))
    }
    fn reset(&self, zone: ZoneId) -> ZoneResult<()> {
        self.zone_command(ZoneCommand::Reset, zone, |inner| inner.reset(zone))
    }
    fn host_free_bytes(&self) -> Option<u64> {
        self.inner.host_free_bytes()
    }
    fn keeps(&self) -> Keeps {
        self.inner.keeps()
    }
    fn host_memory(&self) -> Option<&HostMemory> {
        self.inner.host_memory()
    }
    fn flush(&self) -> ZoneResult<()> {
        self.strike(ZoneCommand::Flush, ByteOffset(0), 0)?;
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryDrive, profile};

    const ZONE: ZoneId = ZoneId(5);

    fn drive() -> (Faults<MemoryDrive>, ByteOffset) {
        let g = profile::by_name("test-small")
            .unwrap()
            .geometry(16 << 20, None)
            .unwrap();
        let start = g.start(ZONE);
        (Faults::new(MemoryDrive::new(g).unwrap()), start)
    }

    fn written(drive: &Faults<MemoryDrive>) -> u64 {
        drive.inner().report_zone(ZONE).unwrap().write_pointer
    }

    #[test]
    fn the_kth_command_fails_once_and_changes_nothing() {
        let (drive, start) = drive();
        drive.add(Plan::at(
            ZoneCommand::Append,
            2,
            Fault::Io(io::ErrorKind::StorageFull),
        ));
        drive.append(ZONE, &[1; 4096]).unwrap();
        let error = drive.append(ZONE, &[2; 4096]).unwrap_err();
        assert!(error.is_host_full());
        assert_eq!(written(&drive), 4096);
        assert_eq!(drive.append(ZONE, &[2; 4096]).unwrap().0, start.0 + 4096);
        assert_eq!(drive.struck(), 1);
    }

    #[test]
    fn for_ever_means_until_cleared_and_other_zones_do_not_count() {
        let (drive, start) = drive();
        let fault = Fault::Io(io::ErrorKind::Other);
        drive.add(Plan::from(ZoneCommand::Read, 2, fault).in_zone(ZONE));
        let read = |at| drive.read(at, &mut [0; 4096]);
        read(start).unwrap();
        for _ in 0..3 {
            read(ByteOffset(0)).unwrap();
            assert!(matches!(read(start).unwrap_err(), ZoneError::Io { .. }));
        }
        drive.clear();
        read(start).unwrap();
    }

    #[test]
    fn of_many_reads_each_counts_until_one_fails() {
        let (drive, start) = drive();
        let fault = Fault::Io(io::ErrorKind::Other);
        drive.add(Plan::at(ZoneCommand::Read, 2, fault.clone()));
        drive.add(Plan::at(ZoneCommand::Read, 5, fault));
        let read = || {
            let mut buffers = [[0; 4096]; 3];
            let mut reads = buffers.each_mut().map(|buffer| (start, &mut buffer[..]));
            drive.read_many(&mut reads).is_ok()
        };
        // The first plan ends with the second read, so the second plan applies to the third to fifth.
        assert_eq!([read(), read(), read()], [false, false, true]);
        assert_eq!(drive.struck(), 2);
    }

    #[test]
    fn a_torn_write_leaves_its_first_blocks() {
        let (drive, start) = drive();
        drive.add(Plan::at(ZoneCommand::Write, 1, Fault::Torn { bytes: 9000 }));
        assert!(matches!(
            drive.write(start, &[1; 16384]).unwrap_err(),
            ZoneError::Io { .. }
        ));
        assert_eq!(written(&drive), 8192);
    }

    #[test]
    fn a_zone_that_breaks_reads_if_read_only_and_not_if_offline() {
        let (drive, start) = drive();
        drive.write(start, &[7; 4096]).unwrap();
        drive.add(Plan::at(
            ZoneCommand::Write,
            1,
            Fault::Break(ZoneCondition::ReadOnly),
        ));
        let next = ByteOffset(start.0 + 4096);
        let error = drive.write(next, &[7; 4096]).unwrap_err();
        assert!(matches!(error, ZoneError::ReadOnly { zone: ZONE, .. }));
        assert!(matches!(
            drive.reset(ZONE).unwrap_err(),
            ZoneError::ReadOnly { .. }
        ));
        let mut out = [0; 4096];
        drive.read(start, &mut out).unwrap();
        assert_eq!(out, [7; 4096]);
        assert_eq!(
            drive.report_zone(ZONE).unwrap().condition,
            ZoneCondition::ReadOnly
        );
        drive.break_zone(ZONE, ZoneCondition::Offline);
        assert!(matches!(
            drive.read(start, &mut out).unwrap_err(),
            ZoneError::Offline { .. }
        ));
    }

    #[test]
    fn a_stuck_flush_waits_for_the_gate_and_others_pass_it() {
        let (drive, start) = drive();
        let gate = Gate::new();
        drive.add(Plan::at(
            ZoneCommand::Flush,
            1,
            Fault::Stuck(Arc::clone(&gate)),
        ));
        std::thread::scope(|scope| {
            let stuck = scope.spawn(|| drive.flush());
            gate.wait_until_stuck(1);
            drive.write(start, &[1; 4096]).unwrap();
            assert!(!stuck.is_finished());
            gate.release();
            stuck.join().unwrap().unwrap();
        });
    }

    #[test]
    fn a_slow_command_calls_its_hook_and_runs() {
        let (drive, start) = drive();
        let calls = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&calls);
        let hook = Arc::new(move |command| into.lock().push(command));
        drive.add(Plan {
            command: None,
            ..Plan::from(ZoneCommand::Read, 1, Fault::Slow(hook))
        });
        drive.write(start, &[1; 4096]).unwrap();
        drive.flush().unwrap();
        assert_eq!(*calls.lock(), [ZoneCommand::Write, ZoneCommand::Flush]);
        assert_eq!(written(&drive), 4096);
    }
}
