//! Packs objects of a store into an archive, in one pass: data first, then the part of the list that describes it, with
//! a checksum of everything before it.

use crate::changes::Changes;
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::listing::{Collection, End, Head, Kind, Line, Listed, VERSION, encode};
use crate::output::Output;
use crate::since::Since;
use crate::sum::Sum;
use crate::tar_block::Type;
use crate::unpack::CHUNK;
use crate::{omap, path, place, progress};
use serde::{Deserialize, Serialize};
use std::io::{Read, Seek, Write};
use std::ops::Range;
use store::{Moment, Name, ObjectAt, Store};
use xxhash_rust::xxh3::Xxh3;

/// A part of the list ends after this many bytes of objects, this many objects, or this many bytes of list. The objects
/// between two parts are a group, which a restore stores in one transaction.
const GROUP_BYTES: u64 = 8 << 20;
const GROUP_OBJECTS: usize = 256;
const PART_BYTES: usize = 1 << 20;
/// Objects that are listed in one call.
const PAGE: usize = 256;
/// Bytes that are read at a time after a read failed: no checksum covers fewer.
const PIECE: usize = 4096;

/// Which part of a store goes into an archive.
#[derive(Clone, Debug)]
pub enum Selection {
    /// Everything, as a backup.
    Backup,
    /// Everything, or the objects of these collections whose names begin with this prefix.
    Export(Option<(Vec<String>, Name)>),
}

/// Options of [`pack`].
#[derive(Clone, Debug)]
pub struct PackOptions {
    /// Which part of the store is packed.
    pub selection: Selection,
    /// Time of packing, Unix time in microseconds.
    pub now_micros: u64,
    /// Whether unreadable objects and bytes are left out and reported, instead of ending the packing.
    pub skip_damaged: bool,
    /// Whether a server has the store open, so that clients may change it meanwhile; recorded in the archive.
    pub is_served: bool,
}

/// Result of [`pack`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Packed {
    /// Size of the archive in bytes.
    pub archive_bytes: u64,
    /// Objects whose data is in the archive.
    pub objects: u64,
    /// Bytes of these objects.
    pub bytes: u64,
    /// Objects that have not changed since the earlier backup, and are only listed.
    pub unchanged: u64,
    /// Objects that could not be read whole, and ranges of objects of which not even the names can be read, with the
    /// reasons.
    pub damaged: Vec<String>,
    /// Number of these ranges.
    #[serde(default)]
    pub ranges: u64,
}

/// Writes an archive to `target`, of the store as it is when this begins. A backup since an earlier one holds only what
/// has changed. `progress` is called with the number of bytes written.
///
/// # Errors
/// Also if an object cannot be read. `target` then holds no valid archive.
pub fn pack<W: Write, R: Read + Seek>(
    store: &Store,
    target: W,
    options: &PackOptions,
    since: Option<&mut Since<R>>,
    progress: &mut dyn FnMut(u64),
) -> Result<Packed> {
    store.at_moment(|moment| pack_moment(moment, target, options, since, progress))
}

/// Like [`pack`], of a moment that the caller has begun.
pub fn pack_moment<W: Write, R: Read + Seek>(
    moment: &Moment<'_>,
    target: W,
    options: &PackOptions,
    since: Option<&mut Since<R>>,
    progress: &mut dyn FnMut(u64),
) -> Result<Packed> {
    let all = moment.collections().into_iter().map(Collection::from);
    let (own, all): (Vec<_>, _) = all.partition(|collection| collection.name == place::OWN);
    if !own.is_empty() && moment.has(place::OWN, progress::OBJECT)? {
        return Err(Error::Unfinished);
    }
    let collections = chosen(moment, all, &options.selection)?;
    let uuid = Name::from(&moment.uuid()).hex();
    if since.as_ref().is_some_and(|since| since.store != uuid) {
        let found = "of another store";
        return Err(Error::WrongParent { found });
    }
    let kind = match (&options.selection, &since) {
        (Selection::Export(_), _) => Kind::Export,
        (Selection::Backup, None) => Kind::Full,
        (Selection::Backup, Some(_)) => Kind::Incremental,
    };
    let head = Head {
        version: VERSION,
        kind,
        store: uuid,
        created_micros: options.now_micros,
        is_served: options.is_served,
        since: since.as_ref().map(|since| since.head_sum),
        collections,
    };
    let mut lines = Vec::new();
    encode(&head, &mut lines).map_err(std::io::Error::from)?;
    let mut out = Output::new(target);
    out.lines("archive", &lines)?;
    let mut packer = Packer {
        moment,
        out,
        options,
        changes: Changes::new(since),
        part: Vec::new(),
        parts: 0,
        group_begins: 0,
        group_objects: 0,
        omaps: 0,
        listed: 0,
        packed: Packed::default(),
        progress,
    };
    for (number, collection) in head.collections.iter().enumerate() {
        packer.out.folder(&path::folder(&collection.name))?;
        packer.collection(number, collection)?;
    }
    packer.end()
}

fn chosen(
    moment: &Moment<'_>,
    all: Vec<Collection>,
    selection: &Selection,
) -> Result<Vec<Collection>> {
    let Selection::Export(Some((names, prefix))) = selection else {
        return Ok(all);
    };
    let all = all.into_iter();
    let chosen: Vec<_> = all.filter(|c| names.contains(&c.name)).collect();
    let wanted = names.first().map_or("", |name| name);
    if !chosen.iter().any(|c| c.name == wanted) {
        let collection = wanted.to_owned();
        return Err(store::Error::NoCollection { collection }.into());
    }
    if !prefix.is_empty() && moment.list_damaged(wanted, prefix, "", 1)?.is_empty() {
        return Err(Error::NothingSelected {
            collection: wanted.to_owned(),
            prefix: prefix.clone(),
        });
    }
    Ok(chosen)
}

struct Packer<'a, 'm, W, R> {
    moment: &'a Moment<'m>,
    out: Output<W>,
    options: &'a PackOptions,
    changes: Changes<'a, R>,
    /// Lines of the list that are not written yet.
    part: Vec<u8>,
    parts: u64,
    group_begins: u64,
    group_objects: usize,
    omaps: u64,
    listed: u64,
    packed: Packed,
    progress: &'a mut dyn FnMut(u64),
}

impl<W: Write, R: Read + Seek> Packer<'_, '_, W, R> {
    fn collection(&mut self, number: usize, collection: &Collection) -> Result<()> {
        let prefix = match &self.options.selection {
            Selection::Export(Some((_, prefix))) => prefix.clone(),
            _ => Name::default(),
        };
        let (mut from, mut packed) = (Name::default(), None);
        let mut limit = PAGE;
        loop {
            // A page of so many that cannot be read has the damage in the first row that has not been packed.
            let least = if packed.is_some() { 2 } else { 1 };
            let page = self
                .moment
                .list_damaged(&collection.name, &prefix, &from, limit);
            let page = match page {
                Ok(page) => page,
                Err(error) if self.skips(&error) && limit > least => {
                    limit = (limit / 4).max(least);
                    continue;
                }
                Err(error) => match self.skip_rows(collection, &prefix, &from, error)? {
                    Some(next) => {
                        (from, packed, limit) = (next, None, PAGE);
                        continue;
                    }
                    None => return Ok(()),
                },
            };
            let Some(last) = page.last().map(|(name, _)| name.clone()) else {
                return Ok(());
            };
            if packed.as_ref() == Some(&last) {
                return Ok(());
            }
            for (name, info) in page
                .into_iter()
                .filter(|(name, _)| Some(name) != packed.as_ref())
            {
                match info.and_then(|_| self.moment.open(&collection.name, &name)) {
                    Ok(reader) => self.object(number, collection, &name, &reader)?,
                    Err(error) => self.skip(collection, &name, error)?,
                }
            }
            from.clone_from(&last);
            packed = Some(last);
            limit = limit.max(2);
        }
    }

    /// Ends the packing with the error of a listing that failed at `from`, or reports it. Returns where the listing goes
    /// on.
    fn skip_rows(
        &mut self,
        collection: &Collection,
        prefix: &Name,
        from: &Name,
        source: store::Error,
    ) -> Result<Option<Name>> {
        let name = &collection.name;
        if !self.skips(&source) {
            return Err(unreadable(name.clone(), source));
        }
        if self.changes.is_incremental() {
            let collection = name.clone();
            return Err(Error::NamesLost { collection, source });
        }
        let Ok(next) = self.moment.after_damage(name, prefix, from) else {
            return Err(unreadable(name.clone(), source));
        };
        let to = next.as_ref().map_or_else(
            || "to the last one".to_owned(),
            |next| format!("before {name}/{next}"),
        );
        self.packed.ranges += 1;
        self.packed.damaged.push(format!(
            "{name}: the objects after {name}/{from} and {to}: {source}"
        ));
        Ok(next)
    }

    /// Ends the packing with the error of an object, or reports the object and goes on.
    fn skip(&mut self, collection: &Collection, name: &Name, source: store::Error) -> Result<()> {
        let object = format!("{}/{name}", collection.name);
        if !self.skips(&source) {
            return Err(unreadable(object, source));
        }
        self.packed.damaged.push(format!("{object}: {source}"));
        Ok(())
    }

    const fn skips(&self, error: &store::Error) -> bool {
        self.options.skip_damaged && !matches!(error, store::Error::MomentGivenUp)
    }

    fn object(
        &mut self,
        number: usize,
        collection: &Collection,
        name: &Name,
        reader: &ObjectAt<'_>,
    ) -> Result<()> {
        let mut digest = Xxh3::new();
        let state = reader.state().and_then(|state| {
            digest.update(&state.to_le_bytes());
            omap::for_each::<store::Error>(self.moment, &collection.name, name, &mut |rows| {
                digest.update(rows);
                Ok(())
            })?;
            reader.data_ranges(0..u64::MAX)
        });
        let ranges = match state {
            Ok(ranges) => ranges,
            Err(error) => return self.skip(collection, name, error),
        };
        let info = reader.info();
        let mut listed = Listed {
            collection: number,
            name: name.clone(),
            state: Sum(digest.digest128()),
            bytes: info.size,
            sum: None,
            lost: Vec::new(),
        };
        if self.changes.has(collection, name, listed.state)? {
            self.packed.unchanged += 1;
        } else {
            let is_object = |name: &[u8]| self.moment.has(&collection.name, name).unwrap_or(false);
            let entry = Entry {
                collection: collection.name.clone(),
                name: name.clone(),
                path: path::path(&collection.name, name, is_object),
                modified_micros: info.modified_micros,
                attributes: info.attributes.clone(),
                size: info.size,
                ranges,
            };
            self.write(&entry, reader, &mut listed)?;
        }
        encode(&Line::Object(listed), &mut self.part).map_err(std::io::Error::from)?;
        self.listed += 1;
        if self.part.len() >= PART_BYTES
            || self.group_objects >= GROUP_OBJECTS
            || self.out.bytes - self.group_begins >= GROUP_BYTES
        {
            self.end_part()?;
        }
        Ok(())
    }

    fn write(&mut self, entry: &Entry, reader: &ObjectAt<'_>, listed: &mut Listed) -> Result<()> {
        let mut name = entry.path.as_bytes().to_vec();
        self.out.member(Type::Extended, &name, &entry.records())?;
        let stored = entry.stored();
        let data: u64 = stored.iter().map(|range| range.end - range.start).sum();
        let map = match entry.is_sparse() {
            true => entry.map(),
            false => Vec::new(),
        };
        let map_size = (map.len() as u64).next_multiple_of(crate::tar_block::BLOCK as u64);
        if entry.is_sparse() {
            // The name under which a tar program that does not know holes extracts the file.
            name = [b"GNUSparseFile.0/", &name[..]].concat();
        }
        let size = map_size + data;
        self.out.begin(Type::File, &name, size, entry.modified())?;
        self.out.write(&map)?;
        self.out.pad()?;
        let mut digest = Xxh3::new();
        let mut why = None;
        let mut buffer = vec![0; CHUNK.min(usize::try_from(data).unwrap_or(CHUNK))];
        for range in stored {
            let mut at = range.start;
            while at < range.end {
                let length = (range.end - at).min(buffer.len() as u64) as usize;
                let bytes = &mut buffer[..length];
                if let Err(error) = reader.read_at(at, bytes) {
                    if !self.skips(&error) {
                        return Err(unreadable(entry.label(), error));
                    }
                    why = Some(why.unwrap_or(error));
                    read_pieces(reader, at, bytes, &mut listed.lost);
                }
                digest.update(bytes);
                self.out.write(bytes)?;
                (self.progress)(self.out.bytes);
                at += length as u64;
            }
        }
        self.out.pad()?;
        let (out, number) = (&mut self.out, &mut self.omaps);
        let omaps =
            omap::for_each::<Error>(self.moment, &entry.collection, &entry.name, &mut |rows| {
                *number += 1;
                digest.update(rows);
                let name = format!("{}/omap/{number:08}", path::OWN);
                Ok(out.member(Type::File, name.as_bytes(), rows)?)
            });
        omaps?;
        listed.sum = Some(Sum(digest.digest128()));
        self.packed.objects += 1;
        self.packed.bytes += entry.size;
        self.group_objects += 1;
        // All bytes may have come when they were read again.
        if let Some(why) = why.filter(|_| !listed.lost.is_empty()) {
            self.packed
                .damaged
                .push(format!("{}: {why}", entry.label()));
        }
        Ok(())
    }

    fn end_part(&mut self) -> Result<Sum> {
        self.parts += 1;
        let part = std::mem::take(&mut self.part);
        let sum = self.out.lines(&format!("part/{:08}", self.parts), &part)?;
        self.group_begins = self.out.bytes;
        self.group_objects = 0;
        (self.progress)(self.out.bytes);
        Ok(sum)
    }

    fn end(mut self) -> Result<Packed> {
        let end = End {
            objects: self.packed.objects,
            bytes: self.packed.bytes,
            listed: self.listed,
            damaged: self.packed.damaged.len() as u64,
            since: self.changes.end()?,
        };
        encode(&Line::End(end), &mut self.part).map_err(std::io::Error::from)?;
        self.end_part()?;
        self.packed.archive_bytes = self.out.end()?;
        Ok(self.packed)
    }
}

/// The error for an object that cannot be read, unless the moment was given up, which is not the object's fault.
fn unreadable(object: String, source: store::Error) -> Error {
    match source {
        store::Error::MomentGivenUp => source.into(),
        source => Error::Unreadable { object, source },
    }
}

/// Reads the readable pieces of `bytes` again; the others become zeros and are added to `lost`.
fn read_pieces(reader: &ObjectAt<'_>, at: u64, bytes: &mut [u8], lost: &mut Vec<Range<u64>>) {
    let mut from = at;
    for piece in bytes.chunks_mut(PIECE) {
        let to = from + piece.len() as u64;
        if reader.read_at(from, piece).is_err() {
            piece.fill(0);
            match lost.last_mut() {
                Some(last) if last.end == from => last.end = to,
                _ => lost.push(from..to),
            }
        }
        from = to;
    }
}
