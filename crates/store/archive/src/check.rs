//! Reads an archive without storing anything.

use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::listing::{Kind, Listed};
use crate::sum::Sum;
use crate::unpack::{Archive, Ended, Sink};
use serde::Serialize;
use std::io::Read;
use store::Omap;

/// Description of an archive that is whole.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    /// Its kind.
    pub kind: Kind,
    /// When it was made, Unix time in microseconds.
    pub created_micros: u64,
    /// Number of collections that it lists.
    pub collections: u64,
    /// Objects with data in it.
    pub objects: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Objects that it lists, those of earlier archives included.
    pub listed: u64,
    /// Objects that could not be read whole when the archive was made.
    pub damaged: Vec<String>,
    /// Objects, and ranges of objects, that could not be read at all then, and that the archive does not name.
    pub unnamed: u64,
    #[serde(skip)]
    link: Link,
}

/// How an archive builds on another: its own checksums and those of the other archive, in the head and at the end.
#[derive(Clone, Copy, Debug)]
struct Link {
    head: (Sum, Option<Sum>),
    end: (Sum, Option<Sum>),
}

/// Checks that a restore would accept these archives, in this order. Exports and a single archive are always accepted.
///
/// # Errors
/// If the first is not a full backup, or another does not build on the one before it.
pub fn check_chain(archives: &[Checked]) -> Result<()> {
    let are_backups = archives.iter().any(|archive| archive.kind != Kind::Export);
    let [first, _, ..] = archives else {
        return Ok(());
    };
    if !are_backups {
        return Ok(());
    }
    if first.kind != Kind::Full {
        let found = first.kind.words();
        return Err(Error::NotFull { found });
    }
    for (number, pair) in archives.windows(2).enumerate() {
        let [before, next] = [pair[0].link, pair[1].link];
        if next.head.1 != Some(before.head.0) || next.end.1 != Some(before.end.0) {
            let number = number + 2;
            return Err(Error::NotNext { number });
        }
    }
    Ok(())
}

/// Reads an archive to its end and verifies all checksums. `progress` is called with the bytes read.
///
/// # Errors
/// If the archive is not whole.
pub fn check(source: impl Read, progress: &mut dyn FnMut(u64)) -> Result<Checked> {
    let archive = Archive::open(source)?;
    let head = archive.head.clone();
    let names = head.collections.iter().map(|c| c.name.clone()).collect();
    let mut sink = Nothing {
        names,
        damaged: Vec::new(),
    };
    let head_sum = archive.head_sum;
    let Ended { end, sum, unnamed } = archive.read(&mut sink, progress)?;
    Ok(Checked {
        link: Link {
            head: (head_sum, head.since),
            end: (sum, end.since),
        },
        kind: head.kind,
        created_micros: head.created_micros,
        collections: head.collections.len() as u64,
        objects: end.objects,
        bytes: end.bytes,
        listed: end.listed,
        damaged: sink.damaged,
        unnamed,
    })
}

struct Nothing {
    names: Vec<String>,
    damaged: Vec<String>,
}

impl Sink for Nothing {
    fn begin(&mut self, _: Entry) -> Result<()> {
        Ok(())
    }

    fn data(&mut self, _: u64, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn omap(&mut self, _: Omap) -> Result<()> {
        Ok(())
    }

    fn group(&mut self, lines: Vec<Listed>, _: Sum) -> Result<()> {
        let damaged = lines.iter().filter(|line| !line.lost.is_empty());
        let names = damaged.map(|line| format!("{}/{}", self.names[line.collection], line.name));
        self.damaged.extend(names);
        Ok(())
    }
}
