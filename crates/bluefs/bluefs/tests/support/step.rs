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
    /// Reads a random part of a file that is perhaps being written.
    Read(usize, usize),
    /// Moves what is live in one zone elsewhere, if that is worth it.
    Clean,
    /// Unmount and mount.
    Remount,
    /// Mount again without having unmounted; nothing is lost of what the drive was told.
    Kill,
}
