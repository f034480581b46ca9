//! Measures the time of a disk for objects as files of XFS with a database beside them, and for objects in the store.
//!
//! The requests of XFS were recorded once from Linux by `scripts/record-leveldb`: for each object a file of 512 KiB
//! that is written and synced, then a synced put of 500 bytes into LevelDB, in RocksDB's place.
//!
//! The raw disk gets what is printed: data and a flush, then a block of a preallocated log and a flush. The store's
//! requests come from the store on a drive in memory, with its small database: its log names the data that it refers
//! to, so that one flush is enough for both. All are sent to the same disk, without zones. The host's own time is not
//! counted.

use crate::expected::Expected;
use crate::experiment::{Experiment, Outcome, Run, Stopped};
use crate::filled_store::FilledStore;
use crate::guest_replay::Player;
use crate::guest_trace::Traced;
use crate::leveldb_trace::{LevelDbTrace, Load};
use device::trace::{Event, Trace};
use device::{MemoryDrive, ZonedDevice};
use drive_model::{Lba, Profile, Request, RequestKind};
use runtime::Runtime;
use runtime::sync::Mutex;
use std::sync::Arc;
use zone::{Geometry, ZoneCommand, ZoneKind};

const DISK: &str = "seagate-cmr";
const OBJECT: u64 = 512 << 10;
const METADATA: usize = 500;
const BLOCK: u64 = 4096;
const ZONE: u64 = 256 << 20;

pub const FIGURE_4_3: Experiment = Experiment {
    id: "figure-4.3",
    title: "A journaling file system below an object store",
    source: "CMU-CS-20-130, section 4.3.1: objects of 0.5 MiB with 500 bytes of metadata on a disk",
    expected: || {
        vec![
            Expected::value("XFS: flushes for an object", "", 4.0).by(0.1),
            Expected::value("objects a second: raw disk ÷ XFS", "", 1.8).part(0.15),
            Expected::at_most("the store: flushes for an object", "", 2.0).ours(),
            Expected::at_least("objects a second: the store ÷ XFS", "", 1.8).ours(),
        ]
    },
    measure: |run| {
        let trace = LevelDbTrace::decode(include_bytes!("../traces/objects-xfs.zst"))?;
        let words = format!(
            "XFS, recorded {} with Linux {}",
            trace.head.date, trace.head.kernel
        );
        run.next(&words)?;
        let load = Load {
            value: OBJECT,
            synced: true,
        };
        let stage = trace.stage(load, false)?;
        let objects = stage.moved / OBJECT;
        let xfs = played(run, &stage.requests, objects)?;
        run.next("a raw disk, and the store")?;
        let raw = played(run, &in_print(objects)?, objects)?;
        let store = played(run, &of_the_store(run, objects)?, objects)?;
        Ok(Outcome::from(vec![
            xfs.flushes,
            xfs.seconds / raw.seconds,
            store.flushes,
            xfs.seconds / store.seconds,
        ]))
    },
};

/// The cost of one object.
struct Taken {
    flushes: f64,
    seconds: f64,
}

fn played(run: &Run<'_>, requests: &[Traced], objects: u64) -> Result<Taken, Stopped> {
    let is_flush = |traced: &&Traced| traced.request.operation == RequestKind::Flush;
    let flushes = requests.iter().filter(is_flush).count();
    let seconds = Player::new(Profile::named(DISK)?.drive(run.seed)?).play(run, requests)?;
    Ok(Taken {
        flushes: flushes as f64 / objects as f64,
        seconds: seconds / objects as f64,
    })
}

/// The requests of the printed benchmark to a raw disk. Its log is as far from the data as that of XFS: in the middle
/// of the disk.
fn in_print(objects: u64) -> Result<Vec<Traced>, Stopped> {
    let blocks = OBJECT / BLOCK;
    let log = Profile::named(DISK)?.capacity_bytes / 2 / BLOCK;
    let requests = (0..objects).flat_map(|object| {
        [
            Request::write(Lba(object * blocks), blocks as u32),
            Request::flush(),
            Request::write(Lba(log + object), 1),
            Request::flush(),
        ]
    });
    Ok(requests.map(traced).collect())
}

/// The requests of the store to a new drive for this many objects, one after the other.
fn of_the_store(run: &Run<'_>, objects: u64) -> Result<Vec<Traced>, Stopped> {
    let geometry = Geometry {
        block_size: BLOCK as u32,
        zone_size: ZONE,
        zone_capacity: ZONE,
        zone_count: 64,
        conventional_zones: 0,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 128,
        max_active_zones: 0,
        max_append_bytes: 0,
    };
    let requests = Arc::new(Mutex::new(Vec::new()));
    let sink = requests.clone();
    let tell = move |event: &Event| {
        sink.lock().extend(request(event));
    };
    let memory = MemoryDrive::new(geometry).map_err(Stopped::store)?;
    let drive: Arc<dyn ZonedDevice> = Arc::new(Trace::new(memory, Arc::new(tell)));
    let mut filled = FilledStore::on(drive, OBJECT, Runtime::seeded(run.seed))?;
    requests.lock().clear();
    for _ in 0..objects {
        filled.add_with([("metadata".to_owned(), vec![1; METADATA])].into())?;
    }
    let asked = std::mem::take(&mut *requests.lock());
    Ok(asked)
}

/// The request to a disk without zones for a completed command; `None` for commands on zones.
fn request(event: &Event) -> Option<Traced> {
    let mut request = Request::flush();
    request.operation = match event.command {
        ZoneCommand::Flush => RequestKind::Flush,
        ZoneCommand::Read => RequestKind::Read,
        ZoneCommand::Write | ZoneCommand::Append => RequestKind::Write,
        _ => return None,
    };
    if request.operation != RequestKind::Flush {
        request.lba = Lba(event.at.0 / BLOCK);
        request.blocks = ((event.at.0 + event.length).div_ceil(BLOCK) - request.lba.0) as u32;
    }
    Some(traced(request))
}

const fn traced(request: Request) -> Traced {
    Traced {
        request,
        content: None,
        ahead: false,
    }
}
