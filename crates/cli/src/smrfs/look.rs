//! `smrfs fsck`, `df`, `top` and `dump`: the state of a file system.

use super::opening::{check_directory, is_left, not_mounted, open, open_drive};
use crate::errors::{CommandError, CommandResult, fail};
use crate::live_lines;
use crate::output::{Output, findings};
use ::smrfs::{Free, Medium, MountOptions, Status};
use rustix::io::Errno;
use serde_json::json;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use terminal::{count, human};

const READ_ONLY: MountOptions = MountOptions {
    read_only: true,
    buffer_bytes: 0,
    policy: ::smrfs::Policy::CostBenefit,
    fit: ::smrfs::Fit::Best,
};
/// Most bytes of a mounted file system's status.
const STATUS_MOST: usize = 64 << 10;

/// `smrfs fsck`.
pub fn fsck(path: &Path, deep: bool, out: &mut Output) -> CommandResult {
    let report = open(path, READ_ONLY)?.check(deep);
    out.line(format_args!(
        "{}, {} of data read",
        count(report.inodes, "inode"),
        human(report.bytes_read)
    ))?;
    let errors = report
        .errors
        .iter()
        .map(|(kind, count)| ((*kind).to_owned(), *count))
        .collect();
    findings(&errors, &report.details, deep, out)?;
    out.value(&json!({
        "inodes": report.inodes, "bytes_read": report.bytes_read, "data_read": deep,
        "errors": report.errors, "details": report.details,
    }))?;
    if errors.is_empty() {
        return Ok(());
    }
    Err(CommandError::found_errors(
        path,
        &errors,
        &report.details,
        deep,
    ))
}

/// Status of the file system that is mounted at a directory.
fn status(directory: &Path) -> CommandResult<Status> {
    check_directory(directory)?;
    let mut bytes = vec![0; STATUS_MOST];
    let length = match rustix::fs::getxattr(directory, smrfs_fuse::STATUS, &mut bytes) {
        Ok(length) => length,
        Err(Errno::NODATA | Errno::OPNOTSUPP) => return not_mounted(directory),
        Err(error) => return Err(CommandError::file(directory, &error.into())),
    };
    Ok(serde_json::from_slice(&bytes[..length])?)
}

/// `smrfs df`.
pub fn df(path: &Path, out: &mut Output) -> CommandResult {
    let is_directory = match std::fs::metadata(path) {
        Ok(found) => found.is_dir(),
        Err(error) => is_left(&error),
    };
    let status = match is_directory {
        true => status(path)?,
        false => open(path, READ_ONLY)?.status(),
    };
    out.pairs(&pairs(&status))?;
    out.value(&json!({
        "space": status.space, "label": status.label, "uuid": status.uuid, "whole_files": status.is_whole,
        "caveat": status.is_caveat,
    }))
}

fn pairs(status: &Status) -> Vec<(&'static str, String)> {
    let space = &status.space;
    let mut used = human(space.used_bytes);
    if space.buffered_bytes > 0 {
        // The drive's own free space is larger by this amount until the buffer is written.
        let buffered = human(space.buffered_bytes);
        used = format!("{used}, of which up to {buffered} wait in memory to be written");
    }
    let mut pairs = vec![
        ("capacity", human(space.capacity_bytes)),
        ("used", used),
        ("preallocated", human(space.preallocated_bytes)),
        (
            "free",
            human(space.capacity_bytes.saturating_sub(space.used_bytes)),
        ),
    ];
    match space.free {
        Free::Bands(bands) => pairs.extend([
            (
                "dead",
                format!("{}, given back by cleaning", human(space.dead_bytes)),
            ),
            (
                "bands",
                format!(
                    "{} free of {}, {} each",
                    bands.free_bands,
                    bands.bands,
                    human(bands.band_bytes)
                ),
            ),
        ]),
        Free::Extents(extents) => pairs.extend([
            ("available", human(space.available_bytes)),
            (
                "unusable",
                format!(
                    "{}, as each write needs {} free behind it",
                    human(space.unusable_bytes),
                    human(extents.footer_bytes)
                ),
            ),
            (
                "free extents",
                format!(
                    "{}, the largest has {}",
                    extents.free_extents,
                    human(extents.largest_free_bytes)
                ),
            ),
            ("kept for cleaning", human(extents.reserve_bytes)),
        ]),
    }
    let files = if status.is_whole {
        "whole"
    } else {
        "in segments"
    };
    pairs.extend([
        ("inodes", space.inodes.to_string()),
        (
            "metadata",
            format!(
                "{} of {}",
                human(space.metadata_bytes),
                human(space.metadata_capacity_bytes)
            ),
        ),
        ("blocks", human(space.block_size.into())),
        ("files are", files.to_owned()),
        ("label", status.label.clone()),
    ]);
    pairs
}

/// The lines that `top` shows.
fn lines(status: &Status) -> Vec<String> {
    let (space, counts) = (&status.space, &status.counts);
    let mut pairs = pairs(status);
    pairs.extend([
        ("open inodes", status.open_inodes.to_string()),
        ("buffer", human(space.buffered_bytes)),
        (
            "written",
            format!(
                "{} by users, {} to the drive",
                human(space.written_bytes),
                human(space.device_bytes)
            ),
        ),
        (
            "cleaned",
            format!(
                "{}, {} moved",
                count(counts.cleaned_zones, "time"),
                human(counts.moved_bytes)
            ),
        ),
        (
            "durable by",
            format!(
                "{}, {}",
                count(counts.commits, "commit"),
                count(counts.checkpoints, "checkpoint")
            ),
        ),
        (
            "writing",
            status.stopped.as_deref().unwrap_or("goes on").to_owned(),
        ),
    ]);
    let line = |(name, value): &(&str, String)| format!("{name:>18}  {value}");
    pairs.iter().map(line).collect()
}

/// `smrfs top`.
pub fn top(directory: PathBuf, interval: Duration, once: bool, out: &mut Output) -> CommandResult {
    let first = status(&directory)?;
    if once || out.is_json() || !std::io::stdout().is_terminal() {
        for line in lines(&first) {
            out.line(format_args!("{line}"))?;
        }
        return out.value(&first);
    }
    live_lines::show(lines(&first), interval, move || {
        Ok(lines(&status(&directory)?))
    })
}

/// `smrfs dump`.
pub fn dump(path: &Path, out: &mut Output) -> CommandResult {
    let Medium::Caveat(drive) = Medium::of(Arc::new(open_drive(path, true)?))? else {
        let shown = path.display();
        return fail!(NotFormatted, "{shown}: no Caveat-Scriptor drive"; "zonestore smrfs mkfs --kind caveat makes one");
    };
    let (what, runs) = (drive.modesense(), drive.dump());
    out.pairs(&[
        (
            "blocks",
            format!("{} of {}", what.blocks, human(what.block_size.into())),
        ),
        ("unshingled", what.unshingled.to_string()),
        ("isolation distance", what.isolation_distance.to_string()),
        ("no-overlap range", what.no_overlap_range.to_string()),
    ])?;
    out.line(format_args!("blocks that can be read:"))?;
    for (first, count) in &runs {
        out.line(format_args!("{first:>12}  {count}"))?;
    }
    let lost = drive.lost();
    for (first, end) in &lost {
        out.line(format_args!(
            "blocks {first} to {} count as readable, for their part of the bitmap is damaged",
            end - 1
        ))?;
    }
    out.value(&json!({
        "blocks": what.blocks, "block_size": what.block_size, "unshingled": what.unshingled,
        "isolation_distance": what.isolation_distance, "no_overlap_range": what.no_overlap_range,
        "readable": runs, "bitmap_lost": lost,
    }))
}
