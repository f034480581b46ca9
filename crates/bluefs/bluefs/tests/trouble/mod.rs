//! Failing drives, shared drives, full drives and many threads: the guarantees of the file system when something goes
//! wrong, one small test each.

mod after_the_end;
mod breaking_zones;
mod full;
mod journal_zones;
mod later_version;
mod leftovers;
mod many_pieces;
mod neighbour;
mod threads;

use crate::support::{
    assert_clean, format, formatted, geometry, mount, mount_in, pool, read, write,
};
use bluefs::{BlueFs, Error, FormatOptions, Lifetime, Role};
use device::faults::{Fault, Faults, Plan};
use device::power_cut::CrashLimits;
use device::{PowerCut, ZonedDevice};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use zone::{ZoneCommand, ZoneCondition, ZoneError, ZoneId};
use zone_alloc::{Owner, Purpose, ZonePool};
