//! The loads of the Caveat-Scriptor thesis's figures 5.1 to 5.7, for any file system: ours in virtual time, and those
//! of a kernel, whose requests `scripts/record-files` records. The same seed gives the same operations in the same
//! order.

/// The file system that a load runs on.
pub trait Files {
    /// Error of the file system.
    type Error;

    /// Begins a part of the load, with cold caches.
    ///
    /// # Errors
    /// Errors of the file system, as in all methods.
    fn begin(&mut self, part: &'static str) -> Result<(), Self::Error>;
    /// Ends the part: makes all of it durable, the time of which counts.
    fn end(&mut self) -> Result<(), Self::Error>;
    /// Makes a directory in the root.
    fn make_dir(&mut self, dir: u64) -> Result<(), Self::Error>;
    /// Makes an empty file.
    fn create(&mut self, file: Name) -> Result<(), Self::Error>;
    /// Writes into a file.
    fn write(&mut self, file: Name, at: u64, data: &[u8]) -> Result<(), Self::Error>;
    /// Writes at a file's end.
    fn append(&mut self, file: Name, data: &[u8]) -> Result<(), Self::Error>;
    /// Reads at most `most` bytes of a file at `at`. Returns their number.
    fn read(&mut self, file: Name, at: u64, most: usize) -> Result<usize, Self::Error>;
    /// Removes a file.
    fn remove(&mut self, file: Name) -> Result<(), Self::Error>;
    /// Makes all that was done durable.
    fn sync(&mut self) -> Result<(), Self::Error>;
}

/// A file: its directory, or `None` for the root, and its number there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Name {
    /// The directory.
    pub dir: Option<u64>,
    /// A number.
    pub file: u64,
}

impl Name {
    /// A file in the root.
    const fn root(file: u64) -> Self {
        Self { dir: None, file }
    }
}

/// Bytes of one request of a program to a large file.
const REQUEST: u64 = 64 << 10;
/// At least the bytes of any request.
const MOST_BYTES: usize = 128 << 10;

/// The loads, each for a new file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Load {
    /// One file of this many megabytes (section 5.2.1).
    Large(u64),
    /// Many small files, as of Vdbench (section 5.2.2).
    Small,
    /// Mails in a pool of files (section 5.2.3).
    PostMark,
    /// The accesses of a compiler (section 5.2.4).
    Compiling,
}

impl Load {
    /// All loads in the order of the figures.
    pub const ALL: [Self; 5] = [
        Self::Large(100),
        Self::Large(500),
        Self::Small,
        Self::PostMark,
        Self::Compiling,
    ];

    /// Name in one word, for traces and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Large(100) => "large-100",
            Self::Large(_) => "large-500",
            Self::Small => "small",
            Self::PostMark => "postmark",
            Self::Compiling => "compiling",
        }
    }

    /// The names of the parts, in order.
    pub const fn parts(self) -> &'static [&'static str] {
        match self {
            Self::Large(_) => &["write", "read", "random-read", "random-write"],
            _ => &["all"],
        }
    }

    /// The work of each part: megabytes of a large file, else operations on files.
    pub const fn work(self) -> u64 {
        match self {
            Self::Large(megabytes) => megabytes,
            Self::Small => 2 * SMALL_FILES,
            Self::PostMark => MAILS + 2 * TRANSACTIONS,
            Self::Compiling => 7 * SOURCES,
        }
    }

    /// Runs all parts of the load.
    ///
    /// # Errors
    /// Errors of the file system.
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

/// Makes 10,000 files, 1.2 GB in all, in 110 directories; then reads or overwrites random ones.
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

/// Makes a pool of mails of 0.5 to 10 KB; each transaction reads or extends one, and makes or removes one.
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

/// The accesses of a compiler, without its CPU time: sources are unpacked; each is read with some headers, and its
/// object file is written; all object files are read, and one file is written.
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
