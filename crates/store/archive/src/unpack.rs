//! Reads an archive and passes its verified contents to a [`Sink`].

use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::input::{Input, MAX_WHOLE, fill};
use crate::listing::{End, Head, Line, Listed, VERSION, decode};
use crate::path::OWN;
use crate::sum::Sum;
use crate::tar_block::{BLOCK, Member, Type};
use crate::{listing, omap};
use backup::unpack::compressed_by;
use serde::Deserialize;
use std::io::{self, Read};
use std::ops::Range;
use store::Omap;
use xxhash_rust::xxh3::Xxh3;

/// Most bytes of data passed at a time.
pub const CHUNK: usize = 1 << 20;
/// Most damaged objects that an error names.
const MAX_NAMED: usize = 10;

/// Receiver of an archive's contents. Contents are unverified until [`Sink::group`] is called for them.
pub trait Sink {
    /// An object begins.
    fn begin(&mut self, entry: Entry) -> Result<()>;
    /// Bytes of the object, in order.
    fn data(&mut self, offset: u64, bytes: &[u8]) -> Result<()>;
    /// Rows of the object's omap, in order, after its data.
    fn omap(&mut self, rows: Omap) -> Result<()>;
    /// Everything since the last call is verified. `lines` are the next lines of the list: those with a sum are the
    /// objects that were begun, in this order. `sum` is the checksum of the archive up to here.
    fn group(&mut self, lines: Vec<Listed>, sum: Sum) -> Result<()>;
}

/// An archive whose head has been read.
pub struct Archive<R> {
    input: Input<io::Chain<io::Cursor<Vec<u8>>, R>>,
    pub head: Head,
    /// The checksum of its head.
    pub head_sum: Sum,
}

/// The result of reading an archive to its end.
pub struct Ended {
    pub end: End,
    /// The last checksum in the archive.
    pub sum: Sum,
    /// Objects, and ranges of objects, that could not be read when the archive was made, and that no line names.
    pub unnamed: u64,
}

/// The fields of a head that every version has.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

impl<R: Read> Archive<R> {
    pub fn open(mut from: R) -> Result<Self> {
        let mut first = vec![0; BLOCK];
        let read = fill(&mut from, &mut first).map_err(Error::Io)?;
        first.truncate(read);
        if let Some(with) = compressed_by(&first) {
            return Err(Error::Compressed { with });
        }
        let begins = format!("{OWN}/archive\0");
        if !first.starts_with(begins.as_bytes()) {
            let cut = begins.as_bytes().starts_with(&first);
            return Err(match cut {
                true => Error::CutOff { at: read as u64 },
                false => Error::NoArchive,
            });
        }
        let mut input = Input::new(io::Cursor::new(first).chain(from));
        let member = input.member()?;
        let member = member.ok_or_else(|| input.corrupt("no head"))?;
        let (lines, head_sum, is_right) = input.lines(member.size)?;
        if !is_right {
            return Err(input.corrupt("its head does not match its checksum"));
        }
        let bad = || input.corrupt("its head makes no sense");
        let found: Vec<Versioned> = decode(&lines).ok_or_else(bad)?;
        let found = found.first().ok_or_else(bad)?.version;
        if found != VERSION {
            let supported = VERSION;
            return Err(Error::Version { found, supported });
        }
        let heads: Vec<Head> = decode(&lines).ok_or_else(bad)?;
        let head = heads.into_iter().next().ok_or_else(bad)?;
        Ok(Self {
            input,
            head,
            head_sum,
        })
    }

    /// Passes everything to `sink`. `progress` is called with the bytes of the archive that were read.
    pub fn read(mut self, sink: &mut dyn Sink, progress: &mut dyn FnMut(u64)) -> Result<Ended> {
        // The objects of the group that is being read, with the digests of their contents.
        let mut group: Vec<(String, Xxh3)> = Vec::new();
        let (mut listed, mut lost) = (0, 0);
        let mut ended: Option<Ended> = None;
        while let Some(member) = self.input.member()? {
            if ended.is_some() {
                return Err(self.input.corrupt("something behind its last part"));
            }
            progress(self.input.at);
            match member.kind {
                Type::Directory if member.size == 0 => {}
                Type::Extended if member.name == b"folder" => {
                    self.input.whole(member.size)?;
                }
                Type::Extended => group.push(self.object(&member, sink)?),
                Type::File if is_own(&member, "omap") => {
                    let Some((_, digest)) = group.last_mut() else {
                        return Err(self.input.corrupt("an omap of no object"));
                    };
                    let bytes = self.input.whole(member.size)?;
                    digest.update(&bytes);
                    let rows = omap::decode(&bytes);
                    sink.omap(rows.ok_or_else(|| self.input.corrupt("no rows of an omap"))?)?;
                }
                Type::File if is_own(&member, "part") => {
                    let group = std::mem::take(&mut group);
                    let (part, sum, end) = self.part(&member, group)?;
                    listed += part.len() as u64;
                    lost += part.iter().filter(|line| !line.lost.is_empty()).count() as u64;
                    sink.group(part, sum)?;
                    ended = end.map(|end| Ended {
                        end,
                        sum,
                        unnamed: end.damaged.saturating_sub(lost),
                    });
                }
                _ => return Err(self.input.corrupt("a file that was not packed")),
            }
        }
        let ended = ended.ok_or_else(|| self.input.corrupt("it ends before its last part"))?;
        self.input.end()?;
        if listed != ended.end.listed {
            return Err(self.input.corrupt("its list is not complete"));
        }
        Ok(ended)
    }

    fn object(&mut self, member: &Member, sink: &mut dyn Sink) -> Result<(String, Xxh3)> {
        let records = self.input.whole(member.size)?;
        let header = self.input.member()?.filter(|file| file.kind == Type::File);
        let stored = header
            .ok_or_else(|| self.input.corrupt("a header without its file"))?
            .size;
        let entry = Entry::decode(&records, stored);
        let bad = || self.input.corrupt("no header of an object");
        let (mut entry, is_sparse) = entry.ok_or_else(bad)?;
        let mut follows = Vec::new();
        if is_sparse {
            let (ranges, data) = self.map(stored, entry.size)?;
            let sum: u64 = ranges.iter().map(|range| range.end - range.start).sum();
            if data != sum
                || entry
                    .ranges
                    .last()
                    .is_some_and(|last| last.end > entry.size)
            {
                return Err(self.input.corrupt("data that its map does not place"));
            }
            follows = ranges;
        } else if stored > 0 {
            follows.push(0..stored);
        }
        if entry.ranges.is_empty() {
            entry.ranges.clone_from(&follows);
        }
        let (label, wanted) = (entry.label(), entry.ranges.clone());
        let mut wanted = wanted.into_iter().peekable();
        sink.begin(entry)?;
        let mut digest = Xxh3::new();
        let mut buffer = vec![0; CHUNK.min(usize::try_from(stored).unwrap_or(CHUNK))];
        for range in follows {
            let mut at = range.start;
            while at < range.end {
                let length = (range.end - at).min(buffer.len() as u64) as usize;
                let bytes = &mut buffer[..length];
                self.input.read(bytes)?;
                digest.update(bytes);
                let end = at + length as u64;
                // Around the wanted bytes are zeros, up to the next block boundaries.
                while let Some(next) = wanted.peek().filter(|next| next.start < end) {
                    let (from, to) = (next.start.max(at), next.end.min(end));
                    if from < to {
                        sink.data(from, &bytes[(from - at) as usize..(to - at) as usize])?;
                    }
                    if next.end > end {
                        break;
                    }
                    wanted.next();
                }
                at = end;
            }
        }
        self.input.pad()?;
        Ok((label, digest))
    }

    /// The map of an object with holes, and the number of bytes of data that follow. The map must lie within `stored`
    /// bytes.
    fn map(&mut self, stored: u64, size: u64) -> Result<(Vec<Range<u64>>, u64)> {
        let begins = self.input.at;
        let mut text = Vec::new();
        let (mut wanted, mut lines) = (None, 0);
        while wanted.is_none_or(|wanted| lines < wanted) {
            let mut block = [0; BLOCK];
            if self.input.at - begins >= stored {
                return Err(self.input.corrupt("a map that does not end"));
            }
            // Each line has two bytes or more.
            if wanted.unwrap_or(0) > MAX_WHOLE / 2 || text.len() as u64 >= MAX_WHOLE {
                return Err(self.input.corrupt("a map of more than 256 MiB"));
            }
            self.input.read(&mut block)?;
            lines += block.iter().filter(|byte| **byte == b'\n').count() as u64;
            text.extend_from_slice(&block);
            if wanted.is_none() {
                let first = text.split(|byte| *byte == b'\n').next();
                let count = first.and_then(|line| std::str::from_utf8(line).ok()?.parse().ok());
                let count: Option<u64> = count.filter(|_| lines > 0);
                let all = count.and_then(|count| count.checked_mul(2)?.checked_add(1));
                wanted = Some(all.ok_or_else(|| self.input.corrupt("a map without a count"))?);
            }
        }
        let ranges =
            ranges(&text, size).ok_or_else(|| self.input.corrupt("a map without sense"))?;
        let data = stored.checked_sub(self.input.at - begins);
        Ok((
            ranges,
            data.ok_or_else(|| self.input.corrupt("a map that is too long"))?,
        ))
    }

    /// Reads a part of the list; an error unless everything before it in the archive matches the checksums in it.
    fn part(
        &mut self,
        member: &Member,
        group: Vec<(String, Xxh3)>,
    ) -> Result<(Vec<Listed>, Sum, Option<End>)> {
        let (text, sum, is_right) = self.input.lines(member.size)?;
        let lines = listing::decode::<Line>(&text);
        let bad = || self.input.corrupt("a list that makes no sense");
        let (mut listed, mut end) = (Vec::new(), None);
        for line in lines.ok_or_else(bad)? {
            match line {
                _ if end.is_some() => return Err(bad()),
                Line::Object(object) => listed.push(object),
                Line::End(found) => end = Some(found),
            }
        }
        let told = listed.iter().filter_map(|line| line.sum);
        let pairs = told.clone().zip(&group);
        let wrong = pairs.filter(|(told, (_, found))| told.0 != found.digest128());
        let mut objects: Vec<String> = wrong.map(|(_, (label, _))| label.clone()).collect();
        if !objects.is_empty() && told.clone().count() == group.len() {
            let more = objects.len().saturating_sub(MAX_NAMED);
            objects.truncate(MAX_NAMED);
            if more > 0 {
                objects.push(format!("and {more} more"));
            }
            return Err(Error::Content { objects });
        }
        if !is_right || told.count() != group.len() {
            return Err(self.input.corrupt("something does not match its checksum"));
        }
        let known = self.head.collections.len();
        if listed.iter().any(|line| line.collection >= known) {
            return Err(bad());
        }
        Ok((listed, sum, end))
    }
}

/// Whether a member is one of the archive's own files of this kind.
pub fn is_own(member: &Member, what: &str) -> bool {
    member.name.starts_with(format!("{OWN}/{what}/").as_bytes())
}

/// The ranges of a map, without empty ones; `None` unless they are in order and end at `size` at most.
pub fn ranges(text: &[u8], size: u64) -> Option<Vec<Range<u64>>> {
    let mut numbers = text
        .split(|byte| *byte == b'\n')
        .map(|line| std::str::from_utf8(line).ok()?.parse::<u64>().ok());
    let count = numbers.next()??;
    let (mut found, mut last) = (Vec::new(), 0);
    for _ in 0..count {
        let (offset, length) = (numbers.next()??, numbers.next()??);
        let end = offset.checked_add(length)?;
        if offset < last || end > size {
            return None;
        }
        last = end;
        if length > 0 {
            found.push(offset..end);
        }
    }
    Some(found)
}
