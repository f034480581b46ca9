//! Writes an archive's members, and computes the checksum of all bytes written.

use crate::error::Result;
use crate::listing::encode_sum;
use crate::path::OWN;
use crate::sum::Sum;
use crate::tar_block::{BLOCK, END, Member, NAME, Type};
use std::io::{self, Write};
use xxhash_rust::xxh3::Xxh3;

pub struct Output<W> {
    to: W,
    sum: Xxh3,
    /// Bytes written.
    pub bytes: u64,
}

impl<W: Write> Output<W> {
    pub fn new(to: W) -> Self {
        let sum = Xxh3::new();
        Self { to, sum, bytes: 0 }
    }

    /// The checksum of everything written so far.
    pub fn sum(&self) -> Sum {
        Sum(self.sum.digest128())
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.to.write_all(bytes)?;
        self.sum.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Writes the header of a member, whose content follows.
    pub fn begin(&mut self, kind: Type, name: &[u8], size: u64, modified: u64) -> io::Result<()> {
        self.write(&Member::new(kind, name, size, modified).encode())
    }

    /// Writes zeros up to the next block.
    pub fn pad(&mut self) -> io::Result<()> {
        let over = (self.bytes % BLOCK as u64) as usize;
        match over {
            0 => Ok(()),
            over => self.write(&[0; BLOCK][over..]),
        }
    }

    /// Writes a whole member.
    pub fn member(&mut self, kind: Type, name: &[u8], content: &[u8]) -> io::Result<()> {
        self.begin(kind, name, content.len() as u64, 0)?;
        self.write(content)?;
        self.pad()
    }

    /// Writes a folder; its name may be of any length.
    pub fn folder(&mut self, name: &str) -> io::Result<()> {
        let name = format!("{name}/");
        if name.len() > NAME {
            let mut records = Vec::new();
            crate::pax::add(&mut records, b"path", name.as_bytes());
            self.member(Type::Extended, b"folder", &records)?;
        }
        self.member(Type::Directory, name.as_bytes(), &[])
    }

    /// Writes one of the archive's own members with these lines, and the checksum of everything before it in a last
    /// line.
    pub fn lines(&mut self, name: &str, lines: &[u8]) -> Result<Sum> {
        let size = lines.len() + encode_sum(self.sum()).len();
        let name = format!("{OWN}/{name}");
        self.begin(Type::File, name.as_bytes(), size as u64, 0)?;
        self.write(lines)?;
        let sum = self.sum();
        self.write(&encode_sum(sum))?;
        self.pad()?;
        Ok(sum)
    }

    /// Writes the end of a tar archive; returns the size of the archive in bytes.
    pub fn end(mut self) -> io::Result<u64> {
        self.write(&[0; END])?;
        self.to.flush()?;
        Ok(self.bytes)
    }
}
