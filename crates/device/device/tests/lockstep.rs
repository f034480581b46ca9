//! One random sequence of commands on the drive in memory, on the drive in a file (closed and
//! opened in between), on the power-cut drive, and on a plain model of the bytes: the same
//! answers, the same report, the same content, and never more open or active zones than allowed.

use device::power_cut::CrashState;
use device::{FileDrive, MemoryDrive, PowerCut, ZonedDevice};
use proptest::prelude::*;
use std::path::Path;
use zone::{ByteOffset, Geometry, ZoneAddress, ZoneCondition, ZoneId, ZoneKind, ZoneResult};

const ZONES: u32 = 7;
const ZONE_BLOCKS: u64 = 8;
const CAPACITY_BLOCKS: u64 = 6;

#[derive(Clone, Debug)]
enum Step {
    Write {
        zone: u32,
        place: Place,
        blocks: u64,
        fill: u8,
    },
    Append {
        zone: u32,
        blocks: u64,
        fill: u8,
    },
    Open(u32),
    Close(u32),
    Finish(u32),
    Reset(u32),
    Break(u32, ZoneCondition),
    Flush,
    Reopen,
}

/// Where a write goes: mostly where it is allowed.
#[derive(Clone, Debug)]
enum Place {
    AtPointer,
    Block(u64),
    Unaligned,
}

fn geometries() -> impl Strategy<Value = Geometry> {
    let kinds = prop_oneof![
        3 => Just(ZoneKind::SequentialWriteRequired),
        1 => Just(ZoneKind::SequentialWritePreferred),
    ];
    let blocks = prop_oneof![Just(512_u32), Just(4096)];
    (blocks, kinds, 0..3_u32, 0..4_u32, 0..3_u32).prop_map(|(block_size, kind, cv, open, more)| {
        let block = u64::from(block_size);
        Geometry {
            block_size,
            zone_size: ZONE_BLOCKS * block,
            zone_capacity: CAPACITY_BLOCKS * block,
            zone_count: ZONES,
            conventional_zones: cv,
            conventional_parts: 1,
            sequential_kind: kind,
            max_open_zones: open,
            max_active_zones: if open == 0 || more == 0 {
                0
            } else {
                open + more - 1
            },
            max_append_bytes: 3 * block_size,
        }
    })
}

fn steps() -> impl Strategy<Value = Step> {
    let zone = 0..ZONES + 1;
    let place = prop_oneof![
        6 => Just(Place::AtPointer),
        3 => (0..ZONE_BLOCKS).prop_map(Place::Block),
        1 => Just(Place::Unaligned),
    ];
    let broken = prop_oneof![Just(ZoneCondition::ReadOnly), Just(ZoneCondition::Offline)];
    prop_oneof![
        12 => (zone.clone(), place, 0..5_u64, 1..=255_u8)
            .prop_map(|(zone, place, blocks, fill)| Step::Write { zone, place, blocks, fill }),
        6 => (zone.clone(), 0..5_u64, 1..=255_u8)
            .prop_map(|(zone, blocks, fill)| Step::Append { zone, blocks, fill }),
        4 => zone.clone().prop_map(Step::Open),
        4 => zone.clone().prop_map(Step::Close),
        3 => zone.clone().prop_map(Step::Finish),
        5 => zone.clone().prop_map(Step::Reset),
        1 => (0..ZONES, broken).prop_map(|(zone, to)| Step::Break(zone, to)),
        1 => Just(Step::Flush),
        1 => Just(Step::Reopen),
    ]
}

/// What the bytes of each zone must be, told only by which commands succeeded.
struct Model {
    zones: Vec<Vec<u8>>,
}

impl Model {
    fn put(&mut self, geometry: &Geometry, at: ByteOffset, data: &[u8]) {
        let place = geometry.address(at).unwrap();
        let offset = place.offset as usize;
        self.zones[place.zone.index()][offset..offset + data.len()].copy_from_slice(data);
    }
}

fn apply(drive: &dyn ZonedDevice, step: &Step) -> ZoneResult<Option<(ByteOffset, Vec<u8>)>> {
    let geometry = drive.geometry();
    let bytes = |blocks: u64, fill: u8| {
        let mut data = vec![fill; (blocks * u64::from(geometry.block_size)) as usize];
        data.iter_mut()
            .step_by(7)
            .for_each(|byte| *byte = byte.wrapping_mul(31));
        data
    };
    match *step {
        Step::Write {
            zone,
            ref place,
            blocks,
            fill,
        } => {
            let pointer = drive
                .report(ZoneId(zone), 1)?
                .first()
                .map_or(0, |z| z.write_pointer);
            let offset = match place {
                Place::AtPointer => pointer,
                Place::Block(block) => block * u64::from(geometry.block_size),
                Place::Unaligned => 100,
            };
            let at = geometry.absolute(ZoneAddress::new(ZoneId(zone), offset));
            let data = bytes(blocks, fill);
            drive.write(at, &data).map(|()| Some((at, data)))
        }
        Step::Append { zone, blocks, fill } => {
            let data = bytes(blocks, fill);
            drive.append(ZoneId(zone), &data).map(|at| Some((at, data)))
        }
        Step::Open(zone) => drive.open(ZoneId(zone)).map(|()| None),
        Step::Close(zone) => drive.close(ZoneId(zone)).map(|()| None),
        Step::Finish(zone) => drive.finish(ZoneId(zone)).map(|()| None),
        Step::Reset(zone) => drive.reset(ZoneId(zone)).map(|()| None),
        Step::Flush => drive.flush().map(|()| None),
        Step::Break(..) | Step::Reopen => unreachable!("not a command"),
    }
}

fn shown<T: std::fmt::Debug>(answer: &ZoneResult<T>) -> String {
    match answer {
        Ok(value) => format!("{value:?}"),
        Err(error) => error.to_string(),
    }
}

fn run(path: &Path, geometry: &Geometry, steps: &[Step]) {
    let memory = MemoryDrive::new(geometry.clone()).unwrap();
    let mut cut = PowerCut::new(geometry.clone()).unwrap();
    let mut file = Some(FileDrive::create(path, geometry, "lockstep").unwrap());
    let zone_bytes = geometry.zone_size as usize;
    let mut model = Model {
        zones: vec![vec![0; zone_bytes]; ZONES as usize],
    };
    for step in steps {
        match step {
            Step::Reopen => {
                drop(file.take());
                file = Some(FileDrive::open(path).unwrap());
                memory.power_cycle();
                cut.flush().unwrap();
                cut = cut.restart(&CrashState::default());
            }
            Step::Break(zone, to) => {
                let zone = ZoneId(*zone);
                let answer = shown(&memory.set_condition(zone, *to));
                assert_eq!(
                    shown(&file.as_ref().unwrap().set_condition(zone, *to)),
                    answer
                );
                assert_eq!(shown(&cut.set_condition(zone, *to)), answer);
            }
            _ => {
                let answer = apply(&memory, step);
                assert_eq!(
                    shown(&apply(file.as_ref().unwrap(), step)),
                    shown(&answer),
                    "{step:?}"
                );
                assert_eq!(shown(&apply(&cut, step)), shown(&answer), "{step:?}");
                match (&answer, step) {
                    (Ok(Some((at, data))), _) => model.put(geometry, *at, data),
                    (Ok(None), Step::Reset(zone)) => model.zones[*zone as usize].fill(0),
                    _ => {}
                }
            }
        }
        compare(&memory, file.as_ref().unwrap(), &cut, &model);
    }
    drop(file);
    std::fs::remove_file(path).unwrap();
}

fn compare(memory: &MemoryDrive, file: &FileDrive, cut: &PowerCut, model: &Model) {
    let report = memory.report(ZoneId(0), u32::MAX).unwrap();
    assert_eq!(file.report(ZoneId(0), u32::MAX).unwrap(), report);
    assert_eq!(cut.report(ZoneId(0), u32::MAX).unwrap(), report);
    let geometry = memory.geometry();
    let count = |counts: fn(ZoneCondition) -> bool| {
        report.iter().filter(|zone| counts(zone.condition)).count() as u32
    };
    if geometry.sequential_kind == ZoneKind::SequentialWriteRequired {
        let within = |limit: u32, count: u32| assert!(limit == 0 || count <= limit, "{report:?}");
        within(geometry.max_open_zones, count(ZoneCondition::is_open));
        within(geometry.max_active_zones, count(ZoneCondition::is_active));
    }
    for (zone, expected) in report.iter().zip(&model.zones) {
        let mut found = vec![0xee; expected.len()];
        let start = geometry.start(zone.id);
        let answer = shown(&memory.read(start, &mut found));
        assert_eq!(answer == "()", zone.condition != ZoneCondition::Offline);
        if answer == "()" {
            assert!(found == *expected, "memory, zone {}", zone.id);
        }
        for (name, drive) in [("file", file as &dyn ZonedDevice), ("cut", cut)] {
            found.fill(0xee);
            assert_eq!(shown(&drive.read(start, &mut found)), answer);
            assert!(
                answer != "()" || found == *expected,
                "{name}, zone {}",
                zone.id
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]

    #[test]
    fn all_drives_answer_alike(
        geometry in geometries(),
        steps in prop::collection::vec(steps(), 1..80),
    ) {
        let directory = tempfile::tempdir().unwrap();
        run(&directory.path().join("drive"), &geometry, &steps);
    }
}
