//! Detects changed files by their metadata, without reading them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Identity of a file's content: device, inode, length, mtime and ctime to the nanosecond. Symbolic links are
/// followed, so that a file that is replaced through one is noticed.
type Stamp = (u64, u64, u64, (i64, i64), (i64, i64));

/// Files with their stamps; `None` for a file that cannot be examined.
#[derive(PartialEq, Eq, Debug)]
pub struct Stamps(Vec<(PathBuf, Option<Stamp>)>);

impl Stamps {
    /// Stamps these files now.
    pub fn of(files: Vec<PathBuf>) -> Self {
        Self(files.into_iter().map(look).collect())
    }

    /// Whether one of the files has changed since it was stamped.
    pub fn are_old(&self) -> bool {
        let paths = self.0.iter().map(|(path, _)| path.clone());
        *self != Self::of(paths.collect())
    }

    /// Replaces the set of files: those that were in it keep their stamps, others are stamped now.
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
