//! Opens files that may be pipes with names: that waits until another program has opened the other end.

use crate::output::printable;
use runtime::Runtime;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// After how long a program that waits for the other end of a pipe says so.
const PATIENCE: Duration = Duration::from_secs(1);

/// Opens a file that a user has named. If it is a pipe whose other end no program opens within a second, a line on standard
/// error says what is waited for.
///
/// # Errors
/// Those of [`OpenOptions::open`].
pub fn open(path: &Path, options: &OpenOptions) -> io::Result<File> {
    let is_pipe = path.metadata().is_ok_and(|at| at.file_type().is_fifo());
    if !is_pipe {
        return options.open(path);
    }
    let line = format!(
        "{}: a pipe; waiting for a program that opens its other end",
        path.display()
    );
    let tell = move || _ = writeln!(io::stderr(), "{}", printable(&line));
    telling(PATIENCE, tell, || options.open(path))
}

/// Runs `work`; runs `tell` if that takes longer than `patience`.
fn telling<T>(
    patience: Duration,
    tell: impl FnOnce() + Send + 'static,
    work: impl FnOnce() -> T,
) -> T {
    let (done, ends) = mpsc::channel::<()>();
    let wait = move || {
        if matches!(ends.recv_timeout(patience), Err(RecvTimeoutError::Timeout)) {
            tell();
        }
    };
    // Without a thread nothing is said.
    let _waits = Runtime::system().spawn("waits", wait);
    let worked = work();
    drop(done);
    worked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waits_says_so_once_and_others_say_nothing() {
        let (told, hears) = mpsc::channel();
        let other = told.clone();
        let tell = move || told.send(1).unwrap();
        assert_eq!(telling(Duration::ZERO, tell, || hears.recv().unwrap()), 1);
        let never = Duration::from_secs(1 << 30);
        let tell = move || other.send(2).unwrap();
        assert_eq!(telling(never, tell, || 3), 3);
        // Both ends are gone, and nothing more was said.
        assert!(hears.recv().is_err());
    }
}
