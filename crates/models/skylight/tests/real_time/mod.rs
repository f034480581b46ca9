//! The code path of a host's device (threads, watchdog, limits), with a model and its clock in place of the device:
//! findings are those in virtual time, and every failure ends in an error that names it, with the findings until
//! then.

mod deceptions;
mod errors;
mod findings;
mod limits;

use crate::simulated;
use crate::simulated::{Delay, Fault, model, target, with};
use drive_model::Span;
use rustix::io::Errno;
use skylight::finding::{DriveType, Size};
use skylight::reading::{read, rows};
use skylight::target::real::Limits;
use skylight::target::{Told, Zoned};
use skylight::{Findings, Model, Options, Random, Target, TargetError, examine};
use std::sync::atomic::Ordering;

const FULL: Options = Options {
    quick: false,
    seed: 7,
};

const QUICK: Options = Options {
    quick: true,
    seed: 7,
};

fn look(
    name: &str,
    fault: Fault,
    delay: Delay,
    options: Options,
) -> (Findings, Result<(), TargetError>) {
    let drive = with(model(name), fault, delay, Told::default());
    let mut target = target(&drive, Limits::default());
    let (found, _, result) = examine(&mut target, options, &mut |_| {});
    (found, result)
}

fn kind(found: &Findings) -> Option<DriveType> {
    found.drive_type.map(|kind| kind.value)
}
