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
        Self(files.into_iter().map(look).collect())
    }

    /// Whether one of them is no more as it was.
    pub fn are_old(&self) -> bool {
        let paths = self.0.iter().map(|(path, _)| path.clone());
        *self != Self::of(paths.collect())
    }

    /// Goes on with these files: those that were among them before stay as they were seen then, the others are looked
    /// at now.
    pub fn go_on_with(&mut self, files: Vec<PathBuf>) {
        let before = std::mem::take(&mut self.0);
        let known = |path: &PathBuf| before.iter().find(|(known, _)| known == path).cloned();
        let files = files.into_iter();
        self.0 = files
            .map(|path| known(&path).unwrap_or_else(|| look(path)))
            .collect();
    }
}

fn look(path: PathBuf) -> (PathBuf, Option<Stamp>) {
    let stamp = fs::metadata(&path).ok().map(|found| {
        let (modified, changed) = (
            (found.mtime(), found.mtime_nsec()),
            (found.ctime(), found.ctime_nsec()),
        );
        (found.dev(), found.ino(), found.len(), modified, changed)
    });
    (path, stamp)
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
