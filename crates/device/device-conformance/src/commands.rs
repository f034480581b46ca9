//! Every command in every condition, from one table.

use super::{Bench, Make, geometry};
use zone::{ZoneCondition, ZoneError, ZoneId};

type Prepare = fn(&Bench, u32) -> Result<(), ZoneError>;
type Command = fn(&Bench, u32) -> Result<(), ZoneError>;

/// Commands, in the order of the table's columns.
const COMMANDS: [(&str, Command); 8] = [
    ("write", |bench, zone| {
        // In a full zone the write begins at its last block, because the next zone may begin after it.
        let pointer = bench.descriptor(zone).write_pointer / bench.block();
        bench.write(zone, pointer.min(bench.capacity() - 1), 1)
    }),
    ("write elsewhere", |bench, zone| bench.write(zone, 5, 1)),
    ("append", |bench, zone| bench.append(zone, 1).map(drop)),
    ("open", |bench, zone| bench.open(zone)),
    ("close", |bench, zone| bench.close(zone)),
    ("finish", |bench, zone| bench.finish(zone)),
    ("reset", |bench, zone| bench.reset(zone)),
    ("read", |bench, zone| bench.read(zone, 0, 2).map(drop)),
];

/// One row of the table: a condition, how a zone gets into it, and the outcome of each command.
///
/// An outcome is the next condition and the blocks below the write pointer, or `!` and the error, after which
/// nothing has changed.
struct Row {
    condition: &'static str,
    prepare: Prepare,
    expected: [&'static str; COMMANDS.len()],
}

const ROWS: [Row; 8] = [
    Row {
        condition: "em 0",
        prepare: |_, _| Ok(()),
        expected: [
            "oi 1",
            "!not at write pointer",
            "oi 1",
            "oe 0",
            "!invalid",
            "fu all",
            "em 0",
            "em 0",
        ],
    },
    Row {
        condition: "oi 1",
        prepare: |bench, zone| bench.write(zone, 0, 1),
        expected: [
            "oi 2",
            "!not at write pointer",
            "oi 2",
            "oe 1",
            "cl 1",
            "fu all",
            "em 0",
            "oi 1",
        ],
    },
    Row {
        condition: "oe 0",
        prepare: |bench, zone| bench.open(zone),
        expected: [
            "oe 1",
            "!not at write pointer",
            "oe 1",
            "oe 0",
            "em 0",
            "fu all",
            "em 0",
            "oe 0",
        ],
    },
    Row {
        condition: "oe 1",
        prepare: |bench, zone| bench.open(zone).and_then(|()| bench.write(zone, 0, 1)),
        expected: [
            "oe 2",
            "!not at write pointer",
            "oe 2",
            "oe 1",
            "cl 1",
            "fu all",
            "em 0",
            "oe 1",
        ],
    },
    Row {
        condition: "cl 1",
        prepare: |bench, zone| bench.write(zone, 0, 1).and_then(|()| bench.close(zone)),
        expected: [
            "oi 2",
            "!not at write pointer",
            "oi 2",
            "oe 1",
            "cl 1",
            "fu all",
            "em 0",
            "cl 1",
        ],
    },
    Row {
        condition: "fu all",
        prepare: |bench, zone| bench.write(zone, 0, bench.capacity()),
        expected: [
            "!full", "!full", "!full", "!invalid", "!invalid", "fu all", "em 0", "fu all",
        ],
    },
    Row {
        condition: "ro 0",
        prepare: |bench, zone| broken(bench, zone, ZoneCondition::ReadOnly),
        expected: [
            "!read-only",
            "!read-only",
            "!read-only",
            "!read-only",
            "!read-only",
            "!read-only",
            "!read-only",
            "ro 0",
        ],
    },
    Row {
        condition: "ol 0",
        prepare: |bench, zone| broken(bench, zone, ZoneCondition::Offline),
        expected: [
            "!offline", "!offline", "!offline", "!offline", "!offline", "!offline", "!offline",
            "!offline",
        ],
    },
];

/// Conventional zones have no other condition unless they break.
const CONVENTIONAL: Row = Row {
    condition: "nw 0",
    prepare: |_, _| Ok(()),
    expected: [
        "nw 0", "nw 0", "!invalid", "!invalid", "!invalid", "!invalid", "!invalid", "nw 0",
    ],
};

fn broken(bench: &Bench, zone: u32, condition: ZoneCondition) -> Result<(), ZoneError> {
    bench.write(zone, 0, 1)?;
    if let Some(break_zone) = &bench.break_zone {
        break_zone(ZoneId(zone), condition);
    }
    Ok(())
}

pub(super) fn run(make: Make) {
    for row in &ROWS {
        check(make, row, |bench| Some(bench.first() + 3));
    }
    check(make, &CONVENTIONAL, |bench| Some(bench.conventional()?[1]));
    for broken in &ROWS[6..] {
        check(make, broken, |bench| Some(bench.conventional()?[1]));
    }
}

fn check(make: Make, row: &Row, zone: fn(&Bench) -> Option<u32>) {
    for ((name, command), expected) in COMMANDS.iter().zip(row.expected) {
        let Some(bench) = Bench::new(make, geometry()) else {
            return;
        };
        let Some(zone) = zone(&bench) else { return };
        if bench.break_zone.is_none() && matches!(row.condition, "ro 0" | "ol 0") {
            bench.note(
                "left out: zones that are read-only or offline, the drive has no way to make some",
            );
            return;
        }
        if *name == "append" && row.condition == "nw 0" && !bench.has_append() {
            continue;
        }
        (row.prepare)(&bench, zone).unwrap();
        let before = shown(&bench, zone);
        assert_eq!(before, row.condition, "preparing zone {zone}");
        let found = match command(&bench, zone) {
            Ok(()) => shown(&bench, zone),
            Err(error) => {
                assert_eq!(
                    shown(&bench, zone),
                    before,
                    "a refused {name} changed zone {zone}"
                );
                format!("!{}", error.kind())
            }
        };
        if found != expected {
            bench.differs(name, row.condition, expected, &found);
        }
        let others = bench.device.report(ZoneId(0), u32::MAX).unwrap();
        for other in others.iter().filter(|other| other.id.0 != zone) {
            assert_eq!(
                other.write_pointer, 0,
                "{name} on zone {zone} changed zone {}",
                other.id
            );
        }
    }
}

fn shown(bench: &Bench, zone: u32) -> String {
    let descriptor = bench.descriptor(zone);
    assert_eq!(descriptor.id, ZoneId(zone));
    assert_eq!(descriptor.kind, bench.device.geometry().kind(ZoneId(zone)));
    assert_eq!(
        descriptor.capacity,
        bench.device.geometry().capacity(ZoneId(zone))
    );
    assert_eq!(descriptor.size, bench.device.geometry().zone_size);
    let condition = descriptor.condition.short();
    if descriptor.write_pointer == bench.capacity() * bench.block() {
        format!("{condition} all")
    } else {
        format!("{condition} {}", descriptor.write_pointer / bench.block())
    }
}
