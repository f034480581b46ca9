//! `smrfs clean`: the background cleaning of a mounted file system, for one that is not mounted.

use super::opening::open;
use super::suits;
use crate::errors::CommandResult;
use crate::output::Output;
use ::smrfs::{Free, MountOptions, Policy, Space};
use serde_json::json;
use std::path::Path;
use terminal::{Progress, count, human};
use zone_alloc::Pressure;

/// `smrfs clean`.
pub fn clean(
    path: &Path,
    bands: Option<u64>,
    policy: Option<Policy>,
    out: &mut Output,
) -> CommandResult {
    let options = MountOptions {
        policy: policy.unwrap_or_default(),
        ..MountOptions::default()
    };
    let fs = open(path, options)?;
    suits(&fs, policy.is_some(), false)?;
    let before = free_bands(&fs.space());
    let progress = Progress::steps("cleaning", bands);
    // Each cleaned band leaves fewer dead bytes; cleaning ends at a band that leaves as many. Free extents are
    // cleaned as long as that gains anything.
    let mut dead = u64::MAX;
    loop {
        let space = fs.space();
        progress.set(space.cleaned_bands);
        if bands.is_some_and(|bands| space.cleaned_bands >= bands) {
            break;
        }
        let ends = before.is_some() && space.dead_bytes >= dead;
        if ends || !fs.clean(Pressure::Any)? {
            break;
        }
        dead = space.dead_bytes;
    }
    drop(progress);
    // Cleaned bands are used anew: as at an unmount, metadata of before are never taken for the newest.
    fs.seal()?;
    let after = fs.space();
    let (free, what) = match after.free {
        Free::Bands(bands) => (count(bands.free_bands, "band"), "band"),
        Free::Extents(_) => (human(after.available_bytes), "part"),
    };
    out.line(format_args!(
        "{} cleaned, {} moved, {free} free now",
        count(after.cleaned_bands, what),
        human(after.moved_bytes),
    ))?;
    out.value(&json!({
        "cleaned_bands": after.cleaned_bands, "moved_bytes": after.moved_bytes, "free_bands": free_bands(&after),
        "free_bands_before": before, "dead_bytes": after.dead_bytes, "unusable_bytes": after.unusable_bytes,
    }))
}

/// Number of empty bands; `None` for a file system of extents.
const fn free_bands(space: &Space) -> Option<u64> {
    match space.free {
        Free::Bands(bands) => Some(bands.free_bands),
        Free::Extents(_) => None,
    }
}
