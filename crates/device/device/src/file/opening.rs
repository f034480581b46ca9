//! Reads and checks the header and zone table of a drive file, whose bytes are not trusted.

use super::FileDriveError;
use super::ahead::{self, LARGEST_BLOCK, PREPARED_BYTES};
use super::format::{self, Entry, FormatError, Header};
use crate::rules::{RestedZone, ZoneTable};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;
use zone::{ZoneCondition, ZoneId, ZoneKind};

/// Entries of the zone table that are read at once when a file is opened.
const TABLE_CHUNK_ENTRIES: usize = 1024;

/// How often an observer reads a zone table that seems damaged, and the pause in between.
const OBSERVER_LOOKS: u32 = 5;
const OBSERVER_PAUSE: Duration = Duration::from_millis(2);

/// Retries an observation: an entry read while it is written may be torn and is whole at the next try. If it
/// stays damaged, it is.
pub(super) fn look_again<T>(
    look: &mut dyn FnMut() -> Result<T, FileDriveError>,
) -> Result<T, FileDriveError> {
    for _ in 1..OBSERVER_LOOKS {
        match look() {
            Err(FileDriveError::Damaged { .. }) => runtime::thread::sleep(OBSERVER_PAUSE),
            seen => return seen,
        }
    }
    look()
}

pub(super) fn read_header(path: &Path, file: &File) -> Result<Header, FileDriveError> {
    let io_error = |source| FileDriveError::Io {
        path: path.into(),
        source,
    };
    let length = file.metadata().map_err(io_error)?.len();
    let mut block = [0; format::HEADER_BYTES];
    let there = length.min(block.len() as u64) as usize;
    file.read_exact_at(&mut block[..there], 0)
        .map_err(io_error)?;
    if there < block.len() {
        // A file that ends inside its header but begins with the magic is a drive file that was cut short.
        return Err(if block[..there].starts_with(&format::MAGIC) {
            wrong_length(path, block.len() as u64, length)
        } else {
            FileDriveError::NotADrive { path: path.into() }
        });
    }
    let header = format::decode_header(&block).map_err(|error| in_file(path, 0, error))?;
    let expected = format::file_bytes(&header.geometry).unwrap_or(u64::MAX);
    if length != expected {
        return Err(wrong_length(path, expected, length));
    }
    Ok(header)
}

fn wrong_length(path: &Path, expected: u64, found: u64) -> FileDriveError {
    FileDriveError::Length {
        path: path.into(),
        expected,
        found,
    }
}

/// Reads the zone table. For zones whose entries name a prepared end, also returns that end.
pub(super) fn read_table(
    path: &Path,
    file: &File,
    header: &Header,
) -> Result<(ZoneTable, Vec<(ZoneId, u64)>), FileDriveError> {
    let io_error = |source| FileDriveError::Io {
        path: path.into(),
        source,
    };
    let geometry = &header.geometry;
    let mut table = ZoneTable::new(geometry.clone())?;
    let mut prepared = Vec::new();
    let mut chunk = vec![0; TABLE_CHUNK_ENTRIES * format::ENTRY_BYTES];
    for first in (0..geometry.zone_count).step_by(TABLE_CHUNK_ENTRIES) {
        let count = (geometry.zone_count - first).min(TABLE_CHUNK_ENTRIES as u32);
        let bytes = &mut chunk[..count as usize * format::ENTRY_BYTES];
        file.read_exact_at(bytes, format::entry_offset(ZoneId(first)))
            .map_err(io_error)?;
        let (entries, _) = bytes.as_chunks::<{ format::ENTRY_BYTES }>();
        for (zone, entry) in (first..).map(ZoneId).zip(entries) {
            let base = format::entry_offset(zone);
            let entry = format::decode_entry(zone, geometry.kind(zone), entry)
                .map_err(|error| in_file(path, base, error))?;
            let misfit = |what, at: usize, found| FileDriveError::Damaged {
                path: path.into(),
                what,
                at: base + at as u64,
                expected: geometry.capacity(zone),
                found,
            };
            if !table.restore(zone, entry.rested) {
                let what = "write pointer that does not fit the zone's condition";
                let found = entry.rested.write_pointer;
                return Err(misfit(what, format::entry_at::WRITE_POINTER, found));
            }
            if entry.prepared_end == 0 {
                continue;
            }
            if !may_be_prepared(header, zone, entry) {
                let what = "end of prepared blocks that does not fit the zone";
                let found = entry.prepared_end;
                return Err(misfit(what, format::entry_at::PREPARED_END, found));
            }
            // Earlier programs named one for larger blocks, too, and recorded each write there: the entry's pointer is exact.
            if geometry.block_size as usize > LARGEST_BLOCK {
                continue;
            }
            let rested = find_pointer(file, header, zone, entry);
            if !table.restore(zone, rested) {
                let what = "write pointer that the data tells does not fit the zone";
                return Err(misfit(
                    what,
                    format::entry_at::PREPARED_END,
                    rested.write_pointer,
                ));
            }
            prepared.push((zone, entry.prepared_end));
        }
    }
    Ok((table, prepared))
}

/// Whether an entry may have a prepared end, and whether this one is in range.
fn may_be_prepared(header: &Header, zone: ZoneId, entry: Entry) -> bool {
    let geometry = &header.geometry;
    let from = entry.rested.write_pointer;
    // All of it is searched for the write pointer, and a hole may be as long as a zone.
    let last = from.saturating_add(PREPARED_BYTES);
    let ahead = from + 1..=last.min(geometry.capacity(zone));
    header.version > format::FIRST_VERSION
        && geometry.kind(zone) == ZoneKind::SequentialWriteRequired
        && entry.rested.condition == ZoneCondition::Closed
        && ahead.contains(&entry.prepared_end)
        && entry
            .prepared_end
            .is_multiple_of(u64::from(geometry.block_size))
}

/// Finds the write pointer of a zone whose entry holds only the range to search.
fn find_pointer(file: &File, header: &Header, zone: ZoneId, entry: Entry) -> RestedZone {
    let geometry = &header.geometry;
    let start = format::data_offset(geometry.zone_count) + geometry.start(zone).0;
    let (from, to) = (entry.rested.write_pointer, entry.prepared_end);
    let block_size = u64::from(geometry.block_size);
    let write_pointer = ahead::find_end(from, to, block_size, &mut |bytes, at| {
        file.read_exact_at(bytes, start + at)
    });
    let condition = if write_pointer == geometry.capacity(zone) {
        ZoneCondition::Full
    } else {
        entry.rested.condition
    };
    RestedZone {
        condition,
        write_pointer,
    }
}

fn in_file(path: &Path, base: u64, error: FormatError) -> FileDriveError {
    let path = path.into();
    match error {
        FormatError::Magic => FileDriveError::NotADrive { path },
        FormatError::Version(found) => FileDriveError::UnsupportedVersion {
            path,
            found,
            supported: format::VERSION,
        },
        FormatError::Field {
            what,
            at,
            expected,
            found,
        } => FileDriveError::Damaged {
            path,
            what,
            at: base + at as u64,
            expected,
            found,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn an_observer_looks_again_at_what_is_not_whole() {
        let torn = || FileDriveError::Damaged {
            path: PathBuf::new(),
            what: "zone entry checksum",
            at: 0,
            expected: 1,
            found: 2,
        };
        let mut looks = 0;
        let seen = look_again(&mut || {
            looks += 1;
            if looks < 3 { Err(torn()) } else { Ok(looks) }
        });
        assert!(matches!(seen, Ok(3)));
        let mut looks = 0;
        let seen = look_again::<()>(&mut || {
            looks += 1;
            Err(torn())
        });
        assert!(matches!(seen, Err(FileDriveError::Damaged { .. })));
        assert_eq!(looks, OBSERVER_LOOKS);
    }
}
