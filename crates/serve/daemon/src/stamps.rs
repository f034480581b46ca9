//! Whether files have changed since they were looked at last, by what a look at them costs nothing.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// What a file is recognized by: device, inode, length, and both times to the nanosecond. A link counts as what it
/// leads to, so that a file that is exchanged through one is noticed.
type Stamp = (u64, u64, u64, (i64, i64), (i64, i64));

/// Files as they were when they were looked at.
#[derive(PartialEq, Eq, Debug)]
pub struct Stamps(Vec<(PathBuf, Option<Stamp>)>);

impl Stamps {
    /// Looks at these.
    pub fn of(files: Vec<PathBuf>) -> Self {
        let stamp = |path: &PathBuf| {
            let found = fs::metadata(path).ok()?;
            let (modified, changed) = (
                (found.mtime(), found.mtime_nsec()),
                (found.ctime(), found.ctime_nsec()),
            );
            Some((found.dev(), found.ino(), found.len(), modified, changed))
        };
        let look = |path: PathBuf| {
            let stamp = stamp(&path);
            (path, stamp)
        };
        Self(files.into_iter().map(look).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_written_removed_or_exchanged_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let look = || Stamps::of(vec![path.clone()]);
        let none = look();
        fs::write(&path, "one").unwrap();
        let one = look();
        assert_eq!(one, look());
        let other = folder.path().join("b");
        fs::write(&other, "two").unwrap();
        fs::rename(&other, &path).unwrap();
        let two = look();
        fs::remove_file(&path).unwrap();
        assert!(none != one && one != two && none == look());
    }
}
