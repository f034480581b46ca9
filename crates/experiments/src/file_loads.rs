//! The loads of the Caveat-Scriptor thesis's figures 5.1 to 5.7, for any file system: ours in virtual time, and those of a
//! kernel, of which `scripts/record-files` records the requests. The same seed gives the same operations in the same order.

/// Where a load's files are.
pub trait Files {
    /// Why something went wrong.
    type Error;

    /// A part of the load begins; nothing is in a cache.
    ///
    /// # Errors
    /// As of the file system; so for all of them.
    fn begin(&mut self, part: &'static str) -> Result<(), Self::Error>;
    /// The part is over: all of it is made durable, which counts too.
    fn end(&mut self) -> Result<(), Self::Error>;
    /// Makes a directory in the root.
    fn make_dir(&mut self, dir: u64) -> Result<(), Self::Error>;
    /// Makes an empty file.
    fn create(&mut self, file: Name) -> Result<(), Self::Error>;
    /// Writes into a file.
    fn write(&mut self, file: Name, at: u64, data: &[u8]) -> Result<(), Self::Error>;
    /// Writes at a file's end.
    fn append(&mut self, file: Name, data: &[u8]) -> Result<(), Self::Error>;
    /// Reads what the file has there, no more than `most` bytes; how many there are.
    fn read(&mut self, file: Name, at: u64, most: usize) -> Result<usize, Self::Error>;
    /// Removes a file.
    fn remove(&mut self, file: Name) -> Result<(), Self::Error>;
    /// Makes durable what was done.
    fn sync(&mut self) -> Result<(), Self::Error>;
}

/// A file: its directory, the root if it has none, and its name there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Name {
    /// The directory.
    pub dir: Option<u64>,
    /// A number.
    pub file: u64,
}

impl Name {
    /// In the root.
    const fn root(file: u64) -> Self {
        Self { dir: None, file }
    }
}

/// Bytes of one request of a program to a large file.
const REQUEST: u64 = 64 << 10;
/// More than any request has.
const MOST_BYTES: usize = 128 << 10;

/// What is done to a file system that is new.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Load {
    /// One file of so many megabytes (section 5.2.1).
    Large(u64),
    /// Vdbench (section 5.2.2).
    Small,
    /// Section 5.2.3.
    PostMark,
    /// Section 5.2.4.
    Compiling,
}

impl Load {
    /// In the order of the figures.
    pub const ALL: [Self; 5] = [
        Self::Large(100),
        Self::Large(500),
        Self::Small,
        Self::PostMark,
        Self::Compiling,
    ];

    /// One word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Large(100) => "large-100",
            Self::Large(_) => "large-500",
            Self::Small => "small",
            Self::PostMark => "postmark",
            Self::Compiling => "compiling",
        }
    }

    /// The parts, in their order.
    pub const fn parts(self) -> &'static [&'static str] {
        match self {
            Self::Large(_) => &["write", "read", "random-read", "random-write"],
            _ => &["all"],
        }
    }

    /// How much each part is: megabytes of a large file, otherwise operations on files.
    pub const fn work(self) -> u64 {
        match self {
            Self::Large(megabytes) => megabytes,
            Self::Small => 2 * SMALL_FILES,
            Self::PostMark => MAILS + 2 * TRANSACTIONS,
            Self::Compiling => 7 * SOURCES,
        }
    }

    /// Does it all.
    ///
    /// # Errors
    /// The file system's.
    pub fn run<F: Files>(self, files: &mut F, seed: u64) -> Result<(), F::Error> {
        let random = fastrand::Rng::with_seed(seed);
        match self {
            Self::Large(megabytes) => large(files, megabytes * 1_000_000 / REQUEST, random),
            _ => {
                files.begin(self.parts()[0])?;
                match self {
                    Self::Small => small(files, random),
                    Self::PostMark => postmark(files, random),
                    _ => compiling(files, random),
                }?;
                files.end()
            }
        }
    }
}

fn large<F: Files>(
    files: &mut F,
    requests: u64,
    mut random: fastrand::Rng,
) -> Result<(), F::Error> {
    let file = Name::root(0);
    let data = [7; REQUEST as usize];
    let in_order: Vec<u64> = (0..requests).map(|n| n * REQUEST).collect();
    let mut anyhow = in_order.clone();
    random.shuffle(&mut anyhow);
    let parts = Load::Large(0).parts();
    for (number, part) in parts.iter().enumerate() {
        files.begin(part)?;
        if number == 0 {
            files.create(file)?;
        }
        let order = if number < 2 { &in_order } else { &anyhow };
        for at in order {
            match number {
                0 | 3 => files.write(file, *at, &data)?,
                _ => files.read(file, *at, data.len()).map(drop)?,
            }
        }
        files.end()?;
    }
    Ok(())
}

const SMALL_FILES: u64 = 10_000;

/// 10,000 files, 1.2 GB together, in 110 directories; made, then read or overwritten.
fn small<F: Files>(files: &mut F, mut random: fastrand::Rng) -> Result<(), F::Error> {
    let name = |file| Name {
        dir: Some(file % 110),
        file,
    };
    let data = [5; 120_000];
    (0..110).try_for_each(|dir| files.make_dir(dir))?;
    for n in 0..SMALL_FILES {
        files.create(name(n))?;
        files.write(name(n), 0, &data)?;
    }
    for _ in 0..SMALL_FILES {
        let file = name(random.u64(0..SMALL_FILES));
        match random.bool() {
            true => files.write(file, 0, &data)?,
            false => files.read(file, 0, data.len()).map(drop)?,
        }
    }
    Ok(())
}

const MAILS: u64 = 5_000;
const TRANSACTIONS: u64 = 20_000;

/// A pool of mails of 0.5 to 10 KB; one is read or added to, and one is made or removed.
fn postmark<F: Files>(files: &mut F, mut random: fastrand::Rng) -> Result<(), F::Error> {
    let data = [3; 10_000];
    let (mut pool, mut next) = (Vec::new(), 0);
    let mut make = |files: &mut F, random: &mut fastrand::Rng, pool: &mut Vec<Name>| {
        let file = Name::root(next);
        files.create(file)?;
        files.write(file, 0, &data[..random.usize(500..10_000)])?;
        pool.push(file);
        next += 1;
        Ok::<_, F::Error>(())
    };
    for _ in 0..MAILS {
        make(files, &mut random, &mut pool)?;
    }
    for n in 0..TRANSACTIONS {
        let file = pool[random.usize(0..pool.len())];
        match random.bool() {
            true => files.read(file, 0, MOST_BYTES).map(drop)?,
            false => files.append(file, &data[..random.usize(500..5_000)])?,
        }
        if random.bool() || pool.len() < 2 {
            make(files, &mut random, &mut pool)?;
        } else {
            files.remove(pool.swap_remove(random.usize(0..pool.len())))?;
        }
        if n % 500 == 499 {
            files.sync()?;
        }
    }
    Ok(())
}

const SOURCES: u64 = 2_000;

/// A compiler's accesses, without its thinking: a tree of sources is unpacked; each is read with some headers, and an object is
/// written; all objects are read and one file is written.
fn compiling<F: Files>(files: &mut F, mut random: fastrand::Rng) -> Result<(), F::Error> {
    let data = [1; 60_000];
    for n in 0..SOURCES {
        let file = Name::root(n);
        files.create(file)?;
        files.write(file, 0, &data[..random.usize(2_000..40_000)])?;
    }
    files.sync()?;
    for n in 0..SOURCES {
        files.read(Name::root(n), 0, MOST_BYTES)?;
        for _ in 0..3 {
            files.read(Name::root(random.u64(0..200)), 0, MOST_BYTES)?;
        }
        let object = Name::root(SOURCES + n);
        files.create(object)?;
        files.write(object, 0, &data[..random.usize(4_000..60_000)])?;
        if n % 100 == 99 {
            files.sync()?;
        }
    }
    let program = Name::root(2 * SOURCES);
    files.create(program)?;
    for n in 0..SOURCES {
        let length = files.read(Name::root(SOURCES + n), 0, MOST_BYTES)?;
        files.append(program, &data[..length])?;
    }
    Ok(())
}
