//! Runs a load on one of the two file systems of the Caveat-Scriptor thesis, through a page cache as FUSE's files
//! have one.

use crate::file_loads::{Files, Load, Name};
use crate::smrfs_bed::Bed;
use runtime::{HashMap, HashSet};
use smrfs::{Error, ROOT};
use std::time::Duration;

/// Bytes of a page.
const PAGE: u64 = 4096;

/// Runs a load. Returns the seconds of each of its parts, until its writes are durable.
pub(crate) fn seconds(bed: &Bed, load: Load, seed: u64) -> Result<Vec<f64>, Error> {
    let mut behind = PageCache::new(bed);
    load.run(&mut behind, seed)?;
    Ok(behind.seconds)
}

/// A write-through page cache. It holds all that was written and read in a part, and never evicts.
struct PageCache<'a> {
    bed: &'a Bed,
    dirs: HashMap<u64, u64>,
    /// Inode and length of each file.
    files: HashMap<Name, (u64, u64)>,
    pages: HashSet<(u64, u64)>,
    buffer: Vec<u8>,
    begun: Duration,
    seconds: Vec<f64>,
}

impl<'a> PageCache<'a> {
    fn new(bed: &'a Bed) -> Self {
        Self {
            bed,
            dirs: HashMap::default(),
            files: HashMap::default(),
            pages: HashSet::default(),
            buffer: Vec::new(),
            begun: Duration::ZERO,
            seconds: Vec::new(),
        }
    }

    fn dir(&self, name: Name) -> u64 {
        name.dir.map_or(ROOT, |dir| self.dirs[&dir])
    }
}

fn pages(ino: u64, at: u64, length: usize) -> impl Iterator<Item = (u64, u64)> {
    let end = (at + length as u64).div_ceil(PAGE);
    (at / PAGE..end).map(move |page| (ino, page))
}

impl Files for PageCache<'_> {
    type Error = Error;

    fn begin(&mut self, _: &'static str) -> Result<(), Error> {
        self.bed.fs.sync()?;
        self.pages.clear();
        self.begun = self.bed.now();
        Ok(())
    }

    fn end(&mut self) -> Result<(), Error> {
        self.bed.fs.sync()?;
        self.seconds
            .push((self.bed.now() - self.begun).as_secs_f64());
        Ok(())
    }

    fn make_dir(&mut self, dir: u64) -> Result<(), Error> {
        // Directories are named from the largest number down, so that no file has the same name.
        let ino = self.bed.make(ROOT, u64::MAX - dir, libc::S_IFDIR)?;
        self.dirs.insert(dir, ino);
        Ok(())
    }

    fn create(&mut self, name: Name) -> Result<(), Error> {
        let ino = self.bed.make(self.dir(name), name.file, libc::S_IFREG)?;
        self.files.insert(name, (ino, 0));
        Ok(())
    }

    fn write(&mut self, name: Name, at: u64, data: &[u8]) -> Result<(), Error> {
        let (ino, length) = self.files[&name];
        self.bed.fs.write(ino, at, data)?;
        let end = at + data.len() as u64;
        self.files.insert(name, (ino, length.max(end)));
        self.pages.extend(pages(ino, at, data.len()));
        Ok(())
    }

    fn append(&mut self, name: Name, data: &[u8]) -> Result<(), Error> {
        self.write(name, self.files[&name].1, data)
    }

    fn read(&mut self, name: Name, at: u64, most: usize) -> Result<usize, Error> {
        let (ino, length) = self.files[&name];
        let most = most.min(length.saturating_sub(at) as usize);
        if pages(ino, at, most).all(|page| self.pages.contains(&page)) {
            return Ok(most);
        }
        self.buffer.resize(most, 0);
        self.pages.extend(pages(ino, at, most));
        self.bed.fs.read(ino, at, &mut self.buffer)
    }

    fn remove(&mut self, name: Name) -> Result<(), Error> {
        let dir = self.dir(name);
        self.files.remove(&name);
        self.bed.fs.unlink(dir, name.file.to_string().as_bytes())
    }

    fn sync(&mut self) -> Result<(), Error> {
        self.bed.fs.sync()
    }
}
