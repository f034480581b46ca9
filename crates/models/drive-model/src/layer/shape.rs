//! The translation layer of a profile, and the limits on its parameters.
//!
//! The space that the parameters ask for is compared with the disk and with limits on memory before anything is
//! built.

use super::{
    Direct, FullyAssociative, FullyAssociativeShape, Seagate, SeagateShape, SetAssociative,
    SetAssociativeShape, Translation,
};
use crate::caveat::{CaveatScriptor, CaveatShape};
use crate::disk::Disk;
use crate::profile_error::{ProfileError, must};
use crate::request::BLOCK_BYTES;
use crate::time::Span;
use serde::{Deserialize, Serialize};

/// Limit on data and cache bands each: a model keeps some tens of bytes for each.
pub const MOST_BANDS: u64 = 1 << 22;
/// Limit on blocks of a band, 4 GiB, because a band is cleaned as a whole.
const MOST_BAND_BLOCKS: u64 = 1 << 20;
/// Limit on tracks of a band.
const MOST_BAND_TRACKS: u32 = 4096;

/// The translation layer of a profile.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum LayerShape {
    /// No translation layer.
    Conventional,
    /// See [`SetAssociative`].
    SetAssociative(SetAssociativeShape),
    /// See [`FullyAssociative`].
    FullyAssociative(FullyAssociativeShape),
    /// See [`Seagate`].
    Seagate(SeagateShape),
    /// See [`CaveatScriptor`].
    CaveatScriptor(CaveatShape),
}

/// Checks that the host's blocks and all spare space fit on the disk.
fn fits(disk: &Disk, capacity_bytes: u64, physical: u64) -> Result<(), ProfileError> {
    if physical <= disk.blocks() {
        return Ok(());
    }
    let beside = physical.saturating_sub(capacity_bytes / BLOCK_BYTES);
    Err(ProfileError::TooSmall {
        capacity_bytes,
        beside_bytes: beside.saturating_mul(BLOCK_BYTES),
        room_bytes: disk.blocks().saturating_mul(BLOCK_BYTES),
    })
}

fn band_blocks(band: u32, blocks: u64) -> Result<(), ProfileError> {
    let least = blocks.div_ceil(MOST_BANDS);
    let most = blocks.min(MOST_BAND_BLOCKS);
    must(
        (least..=most).contains(&u64::from(band)),
        "layer.band_blocks",
        band,
        format_args!("{least} to {most}, so that there are at most {MOST_BANDS} bands"),
    )
}

impl LayerShape {
    /// Builds the layer of a drive of `capacity_bytes`; `direct` if the profile has none.
    pub(crate) fn build(
        &self,
        disk: &Disk,
        capacity_bytes: u64,
        direct: Direct,
    ) -> Result<Translation, ProfileError> {
        let blocks = capacity_bytes / BLOCK_BYTES;
        let physical = match self {
            Self::Conventional => blocks,
            Self::CaveatScriptor(shape) => {
                check_caveat(shape, blocks)?;
                blocks
            }
            Self::SetAssociative(shape) => {
                check_set_associative(shape, blocks)?;
                SetAssociative::physical_blocks(shape, blocks)
            }
            Self::FullyAssociative(shape) => {
                check_fully_associative(shape, blocks)?;
                FullyAssociative::physical_blocks(shape, blocks)
            }
            Self::Seagate(shape) => {
                check_seagate(shape, disk)?;
                blocks + Seagate::cache_blocks(shape, disk)
            }
        };
        fits(disk, capacity_bytes, physical)?;
        Ok(match self {
            Self::Conventional => Translation::Direct(direct),
            Self::CaveatScriptor(shape) => {
                Translation::CaveatScriptor(CaveatScriptor::new(*shape, blocks))
            }
            Self::SetAssociative(shape) => {
                Translation::SetAssociative(SetAssociative::new(shape, blocks))
            }
            Self::FullyAssociative(shape) => {
                Translation::FullyAssociative(FullyAssociative::new(shape, blocks))
            }
            Self::Seagate(shape) => {
                Translation::Seagate(Box::new(Seagate::new(shape, blocks, disk)))
            }
        })
    }
}

fn check_caveat(shape: &CaveatShape, blocks: u64) -> Result<(), ProfileError> {
    let (near, far) = (shape.drive_no_overlap_range, shape.drive_isolation_distance);
    must(
        far < blocks,
        "layer.drive_isolation_distance",
        far,
        format_args!("less than the {blocks} sectors of the disk"),
    )?;
    must(
        near <= far,
        "layer.drive_no_overlap_range",
        near,
        format_args!("at most the drive_isolation_distance, {far}"),
    )
}

fn check_set_associative(shape: &SetAssociativeShape, blocks: u64) -> Result<(), ProfileError> {
    band_blocks(shape.band_blocks, blocks)?;
    let data = blocks / u64::from(shape.band_blocks);
    let (cache, most) = (u64::from(shape.cache_bands), MOST_BANDS - data);
    must(
        (1..=most).contains(&cache),
        "layer.cache_bands",
        cache,
        format_args!("1 to {most}, so that there are at most {MOST_BANDS} bands"),
    )
}

fn check_fully_associative(shape: &FullyAssociativeShape, blocks: u64) -> Result<(), ProfileError> {
    if let Some(extents) = shape.map_extents {
        must(extents >= 64, "layer.map_extents", extents, "at least 64")?;
    }
    band_blocks(shape.band_blocks, blocks)?;
    let most = blocks / u64::from(shape.band_blocks);
    let data = u64::from(shape.zone_data_bands);
    must(
        (1..=most).contains(&data),
        "layer.zone_data_bands",
        data,
        format_args!("1 to {most}: a zone is not larger than the drive"),
    )?;
    let (cache, free) = (shape.zone_cache_bands, shape.zone_free_bands);
    for (field, bands) in [
        ("layer.zone_cache_bands", cache),
        ("layer.zone_free_bands", free),
    ] {
        must(bands > 1, field, bands, "at least 2")?;
    }
    let most = MOST_BANDS / (most / data);
    must(
        data + u64::from(cache) + u64::from(free) <= most,
        "layer.zone_data_bands, zone_cache_bands, zone_free_bands",
        format_args!("{data}, {cache}, {free}"),
        format_args!("{most} or fewer together, so that there are at most {MOST_BANDS} bands"),
    )?;
    for (field, count) in [
        ("layer.clean_every_writes", shape.clean_every_writes),
        ("layer.map_extents", shape.map_extents),
    ] {
        let count = count.unwrap_or(1);
        must(count > 0, field, count, "at least 1, or not be there")?;
    }
    Ok(())
}

fn check_seagate(shape: &SeagateShape, disk: &Disk) -> Result<(), ProfileError> {
    let half_track = Seagate::half_track_blocks(disk);
    must(
        half_track > 0,
        "shape.outer_track_blocks",
        disk.track_blocks(crate::Pba(0)),
        "at least 2, for a cache in half tracks",
    )?;
    let payload = u64::from(shape.half_track_payload_blocks);
    must(
        (1..=half_track).contains(&payload),
        "layer.half_track_payload_blocks",
        payload,
        format_args!("1 to {half_track}, the blocks of half of the outermost track"),
    )?;
    let (journal, beside) = (shape.entry_max_half_tracks, shape.out_of_band_half_tracks);
    must(
        (1..1 << 16).contains(&journal),
        "layer.entry_max_half_tracks",
        journal,
        "1 to 65,535",
    )?;
    must(
        beside < 1 << 16,
        "layer.out_of_band_half_tracks",
        beside,
        "0 to 65,535",
    )?;
    let least = 2 * (journal + beside);
    must(
        (least..1 << 31).contains(&shape.cache_half_tracks),
        "layer.cache_half_tracks",
        shape.cache_half_tracks,
        format_args!("{least} (two of the longest entries) to 2,147,483,647"),
    )?;
    let least = u64::from(journal) * payload;
    must(
        u64::from(shape.cache_payload_blocks) >= least,
        "layer.cache_payload_blocks",
        shape.cache_payload_blocks,
        format_args!("at least {least}, the longest entry's payload"),
    )?;
    let extents = shape.map_extents;
    must(extents >= 64, "layer.map_extents", extents, "at least 64")?;
    let entries = shape.map_merge_entries;
    must(
        entries > 0,
        "layer.map_merge_entries",
        entries,
        "at least 1",
    )?;
    must(
        (1..=MOST_BAND_TRACKS).contains(&shape.band_tracks),
        "layer.band_tracks",
        shape.band_tracks,
        format_args!("1 to {MOST_BAND_TRACKS}"),
    )?;
    let half_turn = disk.mechanics().geometry().rotation().nanos() / 2;
    must(
        Span::from_micros(shape.entry_gap_us).nanos() < half_turn,
        "layer.entry_gap_us",
        shape.entry_gap_us,
        format_args!("less than {}, half a turn", half_turn / 1000),
    )
}
