//! Reads an archive's members, and computes the checksum of all bytes read.

use crate::error::{Error, Result};
use crate::listing::split;
use crate::sum::Sum;
use crate::tar_block::{BLOCK, Member};
use std::io::{self, Read};
use xxhash_rust::xxh3::Xxh3;

/// Most bytes that are read into memory as a whole: a list, an extended header, rows, a map.
pub const MAX_WHOLE: u64 = 256 << 20;

pub struct Input<R> {
    from: R,
    sum: Xxh3,
    /// Bytes read.
    pub at: u64,
}

/// Reads until the buffer is full or the input ends; returns the bytes read.
pub fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match from.read(&mut buffer[done..]) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

impl<R: Read> Input<R> {
    pub fn new(from: R) -> Self {
        let sum = Xxh3::new();
        Self { from, sum, at: 0 }
    }

    /// The checksum of everything read so far.
    pub fn sum(&self) -> Sum {
        Sum(self.sum.digest128())
    }

    pub fn corrupt(&self, what: &'static str) -> Error {
        Error::Corrupt { at: self.at, what }
    }

    fn read_unsummed(&mut self, buffer: &mut [u8]) -> Result<()> {
        let read = fill(&mut self.from, buffer).map_err(Error::Io)?;
        self.at += read as u64;
        match read == buffer.len() {
            true => Ok(()),
            false => Err(Error::CutOff { at: self.at }),
        }
    }

    pub fn read(&mut self, buffer: &mut [u8]) -> Result<()> {
        self.read_unsummed(buffer)?;
        self.sum.update(buffer);
        Ok(())
    }

    /// The next header; `None` for a block of zeros, which ends the archive.
    pub fn member(&mut self) -> Result<Option<Member>> {
        let mut block = [0; BLOCK];
        self.read(&mut block)?;
        if block == [0; BLOCK] {
            return Ok(None);
        }
        let member = Member::decode(&block);
        member
            .map(Some)
            .ok_or_else(|| self.corrupt("no header of a file"))
    }

    /// Skips the padding after a member's content; an error unless it is zeros.
    pub fn pad(&mut self) -> Result<()> {
        let over = (self.at % BLOCK as u64) as usize;
        match over {
            0 => Ok(()),
            over => {
                let mut padding = [0; BLOCK];
                self.read(&mut padding[over..])?;
                match padding == [0; BLOCK] {
                    true => Ok(()),
                    false => Err(self.corrupt("something behind a file's end")),
                }
            }
        }
    }

    /// The content of a member. Memory grows with the bytes that are read, not with the size in the header.
    fn whole_unsummed(&mut self, size: u64) -> Result<Vec<u8>> {
        if size > MAX_WHOLE {
            return Err(self.corrupt("a list or header of more than 256 MiB"));
        }
        let mut content = Vec::new();
        let read = self.from.by_ref().take(size).read_to_end(&mut content);
        self.at += read.map_err(Error::Io)? as u64;
        match content.len() as u64 == size {
            true => Ok(content),
            false => Err(Error::CutOff { at: self.at }),
        }
    }

    /// The content of a member, whose padding is skipped.
    pub fn whole(&mut self, size: u64) -> Result<Vec<u8>> {
        let content = self.whole_unsummed(size)?;
        self.sum.update(&content);
        self.pad()?;
        Ok(content)
    }

    /// The lines of a list without the last one, the checksum in that one, and whether it is the checksum of everything
    /// before it.
    pub fn lines(&mut self, size: u64) -> Result<(Vec<u8>, Sum, bool)> {
        let mut content = self.whole_unsummed(size)?;
        let Some((lines, told)) = split(&content) else {
            return Err(self.corrupt("a list without a checksum"));
        };
        let lines = lines.len();
        self.sum.update(&content[..lines]);
        let is_right = self.sum() == told;
        self.sum.update(&content[lines..]);
        self.pad()?;
        content.truncate(lines);
        Ok((content, told, is_right))
    }

    /// Checks that only the end of a tar archive is left. Its first block of zeros has been read.
    pub fn end(&mut self) -> Result<()> {
        let mut block = [0; BLOCK];
        self.read_unsummed(&mut block)?;
        if block != [0; BLOCK] {
            return Err(self.corrupt("something between the blocks that end it"));
        }
        let mut more = [0];
        match fill(&mut self.from, &mut more).map_err(Error::Io)? {
            0 => Ok(()),
            _ => Err(self.corrupt("it goes on behind its end")),
        }
    }
}
