//! Failures of calls, with the codes of `include/zonestore/bluefs.h`.

use std::ffi::c_int;

pub(crate) const NOT_FOUND: c_int = 1;
pub(crate) const EXISTS: c_int = 2;
pub(crate) const IO: c_int = 7;

/// A failure as the ABI returns it: a code and a message.
#[derive(Debug)]
pub(crate) struct Failure {
    pub code: c_int,
    pub words: String,
}

pub(crate) type Answer<T = ()> = Result<T, Failure>;

impl Failure {
    pub fn invalid(words: String) -> Self {
        Self { code: 6, words }
    }

    pub fn io(words: String) -> Self {
        Self { code: IO, words }
    }
}

impl From<bluefs::Error> for Failure {
    fn from(error: bluefs::Error) -> Self {
        use bluefs::Error as E;
        let code = match &error {
            E::NotFound { .. } => NOT_FOUND,
            E::Exists { .. } => EXISTS,
            E::NoSpace { .. } => 3,
            // The host's disk under an emulated drive is full, which RocksDB handles like a lack of space.
            E::Drive(error) if error.is_host_full() => 3,
            E::GeometryChanged { .. } | E::UnsupportedVersion { .. } => 4,
            error if error.is_damage() => 4,
            E::Locked { .. } => 5,
            E::BadPath { .. }
            | E::Invalid { .. }
            | E::IsDirectory { .. }
            | E::NotDirectory { .. } => 6,
            E::ReadOnly => 8,
            E::DirectoryNotEmpty { .. } => 9,
            E::Stopped { .. } => 10,
            _ => IO,
        };
        let words = error.to_string();
        Self { code, words }
    }
}

impl From<zeafs::Error> for Failure {
    fn from(error: zeafs::Error) -> Self {
        use zeafs::Error as E;
        let code = match &error {
            E::NotFound { .. } => NOT_FOUND,
            E::Exists { .. } => EXISTS,
            E::NoSpace | E::MetadataFull { .. } => 3,
            error if error.of_drive().is_some_and(|error| error.is_host_full()) => 3,
            E::GeometryChanged { .. } | E::UnsupportedVersion { .. } => 4,
            error if error.is_damage() => 4,
            E::Locked { .. } => 5,
            E::BadName { .. } | E::IsDirectory { .. } | E::Longer { .. } => 6,
            E::NotEmptyDirectory { .. } => 9,
            E::Stopped { .. } => 10,
            _ => IO,
        };
        let words = error.to_string();
        Self { code, words }
    }
}
