//! Reads the list in an earlier backup, skipping its data: each object with its state.

use crate::error::{Error, Result};
use crate::input::{MAX_WHOLE, fill};
use crate::listing::{Collection, Kind, Line, Listed, decode};
use crate::sum::Sum;
use crate::tar_block::{BLOCK, Member, Type};
use crate::unpack::{Archive, is_own};
use std::collections::VecDeque;
use std::io::{BufReader, Read, Seek, SeekFrom};

/// An earlier backup, on which a new one builds.
pub struct Since<R> {
    from: BufReader<R>,
    at: u64,
    pub(crate) head_sum: Sum,
    pub(crate) store: String,
    pub(crate) collections: Vec<Collection>,
    lines: VecDeque<Listed>,
    /// Its last checksum, once the last part has been read.
    ended: Option<Sum>,
}

impl<R: Read + Seek> Since<R> {
    /// Opens an archive, which has to be a backup.
    ///
    /// # Errors
    /// Also if the archive is not a backup.
    pub fn open(from: R) -> Result<Self> {
        let mut from = BufReader::new(from);
        let archive = Archive::open(&mut from)?;
        let (head, head_sum) = (archive.head, archive.head_sum);
        if head.kind == Kind::Export {
            let found = Kind::Export.words();
            return Err(Error::WrongParent { found });
        }
        from.seek(SeekFrom::Start(0)).map_err(Error::Io)?;
        Ok(Self {
            from,
            at: 0,
            head_sum,
            store: head.store,
            collections: head.collections,
            lines: VecDeque::new(),
            ended: None,
        })
    }

    /// UUID of the store of which it is a backup.
    pub fn store(&self) -> &str {
        &self.store
    }

    fn corrupt(&self, what: &'static str) -> Error {
        Error::Corrupt { at: self.at, what }
    }

    /// The next object of the list, which [`Self::pop`] removes.
    pub(crate) fn peek(&mut self) -> Result<Option<&Listed>> {
        while self.lines.is_empty() && self.ended.is_none() {
            self.step()?;
        }
        Ok(self.lines.front())
    }

    pub(crate) fn pop(&mut self) {
        self.lines.pop_front();
    }

    /// The last checksum of the backup; reads the rest of the list.
    pub(crate) fn end(&mut self) -> Result<Sum> {
        loop {
            if let Some(sum) = self.ended {
                return Ok(sum);
            }
            self.step()?;
        }
    }

    /// Reads the next member: a part of the list, or else it is skipped.
    fn step(&mut self) -> Result<()> {
        let mut block = [0; BLOCK];
        let read = fill(&mut self.from, &mut block).map_err(Error::Io)?;
        self.at += read as u64;
        if read < BLOCK {
            return Err(Error::CutOff { at: self.at });
        }
        let member = Member::decode(&block);
        let member = member.ok_or_else(|| self.corrupt("no header of a file"))?;
        let size = member.padded().and_then(|size| i64::try_from(size).ok());
        let size = size.ok_or_else(|| self.corrupt("a file of no possible size"))?;
        self.at += size.unsigned_abs();
        if member.kind != Type::File || !is_own(&member, "part") {
            return self.from.seek_relative(size).map_err(Error::Io);
        }
        if member.size > MAX_WHOLE {
            return Err(self.corrupt("a list of more than 256 MiB"));
        }
        let mut content = Vec::new();
        let whole = self.from.by_ref().take(size.unsigned_abs());
        { whole }.read_to_end(&mut content).map_err(Error::Io)?;
        content.truncate(member.size as usize);
        let split = crate::listing::split(&content);
        let Some((lines, sum)) = split.filter(|_| content.len() as u64 == member.size) else {
            return Err(self.corrupt("a list without a checksum"));
        };
        let lines: Option<Vec<Line>> = decode(lines);
        for line in lines.ok_or_else(|| self.corrupt("a list that makes no sense"))? {
            match line {
                Line::Object(listed) if listed.collection < self.collections.len() => {
                    self.lines.push_back(listed);
                }
                Line::Object(_) => return Err(self.corrupt("an object of no collection")),
                Line::End(_) => self.ended = Some(sum),
            }
        }
        Ok(())
    }
}
