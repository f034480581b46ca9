//! The model of the WD ZN540 beside public measurements of the drive, 1,806 a point.

use crate::expected::Expected;
use crate::experiment::{Experiment, Outcome, Run, Stopped};
use drive_model::{FlashDrive, FlashProfile, Lba, Model, Request, RequestKind, Span, Time};
use plot::{Figure, Panel};

/// Blocks of a zone's address space, and of its capacity.
const ZONE: u64 = 2048 << 8;
const CAPACITY: u32 = 1077 << 8;
const TOLERANCE: f64 = 0.05;
const SOURCE: &str = "public measurements of a WD ZN540, and its data sheet";

const fn start(zone: u64) -> Lba {
    Lba(zone * ZONE)
}

fn drive() -> Result<FlashDrive, Stopped> {
    Ok(FlashProfile::named("zns-zn540")?.drive()?)
}

fn ask(drive: &mut FlashDrive, request: Request, now: Time) -> Result<(f64, Time), Stopped> {
    let done = drive.submit(request, now);
    let refused = |reason| Stopped::refused(&request, &reason);
    done.result.map_err(refused)?;
    Ok((done.latency().millis(), done.at))
}

fn on_zone(
    drive: &mut FlashDrive,
    operation: RequestKind,
    zone: u64,
    now: Time,
) -> Result<(f64, Time), Stopped> {
    ask(drive, Request::on_zone(operation, start(zone)), now)
}

/// Writes `blocks` blocks from the start of a zone, and then lets the drive rest for a second.
fn write(drive: &mut FlashDrive, zone: u64, blocks: u32, now: Time) -> Result<Time, Stopped> {
    let (mut now, mut next) = (now, 0);
    while next < blocks {
        let here = 32.min(blocks - next);
        let request = Request::write(start(zone).plus(next.into()), here);
        now = ask(drive, request, now)?.1;
        next += here;
    }
    Ok(now + Span::from_seconds(1.0))
}

/// Blocks written before, and milliseconds that a finish and a reset then took on the real drive.
const FRACTIONS: [(&str, u32, f64, f64); 7] = [
    ("nothing", 0, 0.013, 1.62),
    ("one page", 1, 907.4, 1.70),
    ("1/16", CAPACITY / 16, 848.0, 5.16),
    ("1/8", CAPACITY / 8, 792.0, 6.05),
    ("1/4", CAPACITY / 4, 681.0, 7.88),
    ("1/2", CAPACITY / 2, 457.0, 11.3),
    ("all but one page", CAPACITY - 1, 2.57, f64::NAN),
];

pub const FINISH: Experiment = Experiment {
    id: "zn540-finish",
    title: "Finishing a zone takes as long as filling it up",
    source: SOURCE,
    expected: || {
        let row = |(what, _, finish, _)| {
            Expected::value(format!("finish, {what} written"), "ms", finish).part(TOLERANCE)
        };
        FRACTIONS.map(row).to_vec()
    },
    measure: |run| {
        let (mut drive, mut now) = (drive()?, Time::START);
        let mut measured = Vec::new();
        for (zone, (what, blocks, ..)) in (0..).zip(FRACTIONS) {
            run.next(&format!("{what} written"))?;
            now = write(&mut drive, zone, blocks, now)?;
            let (took, at) = on_zone(&mut drive, RequestKind::FinishZone, zone, now)?;
            measured.push(took);
            now = at;
        }
        let part = |blocks: u32| f64::from(blocks) / f64::from(CAPACITY);
        let points = |of: &dyn Fn(usize) -> f64| -> Vec<(f64, f64)> {
            let all = FRACTIONS.iter().enumerate();
            all.map(|(n, (_, blocks, ..))| (part(*blocks), of(n)))
                .collect()
        };
        let panel = Panel::new("", "part of the zone that is written", "finish (ms)")
            .line("model", points(&|n| measured[n]))
            .points("measured", points(&|n| FRACTIONS[n].2));
        Ok(Outcome::from(measured).with(Figure {
            number: "zn540-finish",
            title: "Finishing a zone of a ZN540",
            caption: String::new(),
            panels: vec![panel],
        }))
    },
};

/// Sixteenths of a zone that are written before it is finished and then reset.
const SIXTEENTHS: [u32; 6] = [0, 1, 2, 4, 8, 16];

pub const RESET: Experiment = Experiment {
    id: "zn540-reset",
    title: "Resetting a zone takes as long as what is forgotten",
    source: SOURCE,
    expected: || {
        let open = FRACTIONS.into_iter().take(6);
        let open = open.map(|(what, _, _, reset)| (format!("reset, {what} written"), reset));
        let full = [("reset, all written".to_owned(), 15.8)];
        let finished = SIXTEENTHS.map(|part| {
            let what = format!("reset, finished behind {part}/16");
            (what, 1.58 + 13.8 * f64::from(part) / 16.0)
        });
        let all = open.chain(full).chain(finished);
        let row = |(what, reset)| Expected::value(what, "ms", reset).part(TOLERANCE);
        all.map(row).collect()
    },
    measure: reset,
};

fn reset(run: &mut Run<'_>) -> Result<Outcome, Stopped> {
    let (mut drive, mut now) = (drive()?, Time::START);
    let mut measured = Vec::new();
    let mut reset = |drive: &mut FlashDrive, zone, now| -> Result<Time, Stopped> {
        let (took, at) = on_zone(drive, RequestKind::ResetZone, zone, now)?;
        measured.push(took);
        Ok(at)
    };
    run.next("open zones")?;
    for (zone, (_, blocks, ..)) in (0..).zip(FRACTIONS).take(6) {
        now = write(&mut drive, zone, blocks, now)?;
        if blocks == 0 {
            now = on_zone(&mut drive, RequestKind::OpenZone, zone, now)?.1;
        }
        now = reset(&mut drive, zone, now)?;
    }
    now = write(&mut drive, 20, CAPACITY, now)?;
    now = reset(&mut drive, 20, now)?;
    run.next("finished zones")?;
    for (zone, sixteenths) in (30..).zip(SIXTEENTHS) {
        let blocks = CAPACITY / 16 * sixteenths;
        now = write(&mut drive, zone, blocks, now)?;
        if blocks < CAPACITY {
            now = on_zone(&mut drive, RequestKind::FinishZone, zone, now)?.1;
        }
        now = reset(&mut drive, zone, now)?;
    }
    Ok(measured.into())
}

/// Writes or appends for a rate, which all go to one zone.
const COUNT: u64 = 50_000;

/// Requests a second at queue depth `depth`.
fn rate(
    run: &Run<'_>,
    drive: &mut FlashDrive,
    depth: usize,
    count: u64,
    request: impl FnMut(u64) -> Request,
) -> Result<f64, Stopped> {
    let begin = Time::from_nanos(100_000_000_000);
    let done = run.ask(drive, begin, depth, (0..count).map(request))?;
    if let Some((place, reason)) = done.iter().find_map(|d| Some((d.lba, d.result.err()?))) {
        return Err(Stopped::refused(&Request::write(place, 1), &reason));
    }
    Ok(count as f64 / crate::host::end(&done).since(begin).seconds())
}

pub const RATES: Experiment = Experiment {
    id: "zn540-rates",
    title: "Writes, appends and random reads come as fast as measured",
    source: SOURCE,
    expected: || {
        vec![
            Expected::value("4 KiB writes, QD1", "kIOPS", 85.1).part(TOLERANCE),
            Expected::value("128 KiB writes, QD4, one zone", "MiB/s", 1146.0).part(TOLERANCE),
            Expected::value("4 KiB appends, QD1", "kIOPS", 65.7).part(TOLERANCE),
            Expected::value("4 KiB appends, QD4", "kIOPS", 132.0).part(TOLERANCE),
            Expected::value("4 KiB appends, QD16", "kIOPS", 132.0).part(TOLERANCE),
            Expected::value("4 KiB random reads, QD1", "µs", 74.0).part(0.10),
            Expected::at_least("random reads, each depth ÷ half of it, least", "", 1.0).ours(),
            Expected::at_most("random reads, each depth ÷ half of it, most", "", 2.02).ours(),
            Expected::at_most("4 KiB random reads, QD128", "kIOPS", 490.0),
        ]
    },
    measure: rates,
};

fn rates(run: &mut Run<'_>) -> Result<Outcome, Stopped> {
    run.next("writes")?;
    let small = rate(run, &mut drive()?, 1, COUNT, |n| Request::write(Lba(n), 1))?;
    let large = |n| Request::write(Lba(n * 32), 32);
    let large = rate(run, &mut drive()?, 4, 8_000, large)?;
    let mut measured = vec![small / 1e3, large / 8.0];
    run.next("appends")?;
    for depth in [1, 4, 16] {
        let append = |_| Request::append(start(3), 1);
        measured.push(rate(run, &mut drive()?, depth, COUNT, append)? / 1e3);
    }
    run.next("random reads")?;
    let mut drive = drive()?;
    for zone in 0..4 {
        write(&mut drive, zone, CAPACITY, Time::START)?;
    }
    let mut random = run.random(11);
    let mut read = |_| {
        let zone = random.below(4);
        Request::read(Lba(zone * ZONE + random.below(CAPACITY.into())), 1)
    };
    // The first depth was measured and the last is in the data sheet; those between are ours.
    let mut all = Vec::new();
    for depth in [1, 2, 4, 8, 16, 32, 64, 128] {
        all.push(rate(run, &mut drive.clone(), depth, 40_000, &mut read)?);
    }
    let growth = all.windows(2).map(|pair| pair[1] / pair[0]);
    let (least, most) = (
        growth.clone().fold(f64::INFINITY, f64::min),
        growth.fold(0.0, f64::max),
    );
    measured.extend([1e6 / all[0], least, most, all[7] / 1e3]);
    Ok(measured.into())
}
