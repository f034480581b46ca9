//! Finds the process that has a drive locked, from the kernel's list of locks. No lock is attempted.

use serde::Serialize;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The process that has the drive open.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum User {
    /// No process has the drive open.
    Nobody,
    /// The list of locks or the drive's file cannot be read.
    Unknown,
    /// A process other than the drive's server. Its `pid` is 0 if it is in another namespace.
    Process {
        /// Process id.
        pid: u32,
        /// Name of the process, if it is visible.
        name: Option<String>,
    },
    /// `zonestore serve`, which answers requests about the drive.
    Server {
        /// Process id.
        pid: u32,
    },
}

impl User {
    /// The process that has the drive at `path` locked.
    pub fn of(path: &Path) -> Self {
        let (Ok(locks), Ok(file)) = (fs::read_to_string("/proc/locks"), fs::metadata(path)) else {
            return Self::Unknown;
        };
        match holder(&locks, file.ino()) {
            None => Self::Nobody,
            Some(pid) => {
                let name = fs::read_to_string(format!("/proc/{pid}/comm"));
                let name = name.ok().map(|name| name.trim_end().to_owned());
                Self::Process { pid, name }
            }
        }
    }
}

/// The process that holds a lock as drives use it on the file with this inode: `1: FLOCK ADVISORY WRITE 123
/// fe:00:4711 0 EOF`. Device numbers are not compared, because for some file systems the list has another one
/// than the file's metadata.
fn holder(locks: &str, inode: u64) -> Option<u32> {
    locks.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        if words.next()? != "FLOCK" {
            return None;
        }
        let pid = words.nth(2)?;
        let place = words.next()?;
        let found: u64 = place.rsplit(':').next()?.parse().ok()?;
        // A process of another namespace is listed without a number.
        (found == inode).then(|| pid.parse().unwrap_or(0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_holds_the_lock_is_found() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 fe:00:4711 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 8 fe:00:4712 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 9 fe:00:4713 0 EOF\n\
                     3: FLOCK  ADVISORY  READ -1 fe:00:4714 0 EOF\n\
                     nonsense\n";
        assert_eq!(holder(locks, 4711), None);
        assert_eq!(holder(locks, 4712), Some(8));
        // That process only waits for the lock.
        assert_eq!(holder(locks, 4713), None);
        assert_eq!(holder(locks, 4714), Some(0));
        assert_eq!(holder("", 1), None);
    }
}
