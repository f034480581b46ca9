//! Steps of a history of files.

pub const NAMES: [&str; 6] = [
    "/a.sst",
    "/000001.log",
    "/d/b.sst",
    "/d/000002.log",
    "/MANIFEST-000003",
    "/d/CURRENT",
];

/// One step; files are indices into [`NAMES`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    Create(usize),
    Append(usize, usize),
    Sync(usize),
    RangeSync(usize),
    Close(usize),
    Delete(usize),
    Rename(usize, usize),
    Link(usize, usize),
    Truncate(usize, usize),
    SyncNames,
    /// Reads a random part of a file, which may be open for writing.
    Read(usize, usize),
    /// Moves the live data out of one zone, if that is worth it.
    Clean,
    /// Unmounts and mounts.
    Remount,
    /// Mounts again without an unmount; the drive loses nothing.
    Kill,
}
