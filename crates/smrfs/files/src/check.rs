//! The consistency check of a mounted file system: metadata against itself, against the drive, and against the data.

use crate::core::{Core, MAX_PIECE, sum};
use crate::inode::Content;
use crate::tree;
use std::collections::BTreeMap;

/// Number of findings that are described in [`Findings::details`].
const MAX_DETAILS: usize = 100;

/// The result of a check.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Findings {
    /// Number of errors of each kind.
    pub errors: BTreeMap<&'static str, u64>,
    /// Descriptions of the first errors.
    pub details: Vec<String>,
    /// Number of inodes checked.
    pub inodes: u64,
    /// Bytes of data read.
    pub bytes_read: u64,
}

impl Findings {
    fn add(&mut self, kind: &'static str, detail: String) {
        *self.errors.entry(kind).or_default() += 1;
        if self.details.len() < MAX_DETAILS {
            self.details.push(format!("{kind}: {detail}"));
        }
    }
}

/// Checks the file system; see [`crate::FileSystem::check`].
pub fn check(core: &Core, deep: bool) -> Findings {
    let mut findings = Findings::default();
    if let Some(what) = core.space.misplaced(&core.state) {
        findings.add("place", what);
    }
    for what in &core.damage {
        findings.add("metadata", what.clone());
    }
    let (aside, wanted) = (core.space.blocks_aside(), core.state.preallocated());
    if let Some(aside) = aside.filter(|aside| *aside < wanted) {
        findings.add(
            "preallocated",
            format!("{wanted} blocks are preallocated, and room is kept for {aside}"),
        );
    }
    tree::contradictions(&core.state, |kind, detail| findings.add(kind, detail));
    let mut live: BTreeMap<u32, u64> = BTreeMap::new();
    for inode in core.state.inodes() {
        findings.inodes += 1;
        let attributes = inode.attributes;
        let ino = attributes.ino;
        let Content::File(map) = &inode.content else {
            continue;
        };
        let end = attributes.size.div_ceil(core.block as u64);
        for (block, extent) in map.iter() {
            *live.entry(extent.zone).or_default() += extent.blocks();
            if block + extent.blocks() > end {
                findings.add("size", format!("inode {ino} has blocks behind its end"));
            }
            if deep {
                read(core, ino, block, extent, &mut findings);
            }
        }
    }
    let bounds = core.state.bounds();
    for zone in bounds.first_zone..bounds.first_zone + bounds.zones {
        let found = live.get(&zone).copied().unwrap_or(0);
        let counted = core.state.holding(zone).map_or(0, |holding| holding.live);
        if found != counted {
            findings.add(
                "live",
                format!("zone {zone}: {counted} live blocks counted, {found} found"),
            );
        }
    }
    findings
}

fn read(core: &Core, ino: u64, block: u64, extent: &crate::map::Extent, findings: &mut Findings) {
    let most = MAX_PIECE / core.block;
    let mut buffer = vec![0; most.min(extent.sums.len()) * core.block];
    for (n, sums) in extent.sums.chunks(most).enumerate() {
        let at = extent.offset + (n * most) as u32;
        let data = &mut buffer[..sums.len() * core.block];
        if let Err(error) = core.read_raw(extent.zone, at, data) {
            findings.add("data", format!("inode {ino}: {error}"));
            continue;
        }
        findings.bytes_read += data.len() as u64;
        for (k, (bytes, expected)) in data.chunks(core.block).zip(sums).enumerate() {
            if sum(bytes) != *expected {
                let block = block + (n * most + k) as u64;
                findings.add(
                    "data",
                    format!("inode {ino}, block {block}, in zone {}", extent.zone),
                );
            }
        }
    }
}
