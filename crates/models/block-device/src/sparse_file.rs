//! Storage for a model's data in a sparse file of the host.

use crate::data::Data;
use runtime::LockedFile;
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Why a file cannot hold the data.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// A temporary file cannot be created.
    #[error("{}: {source}", folder.display())]
    Unnamed {
        /// Folder of temporary files.
        folder: PathBuf,
        /// The host's error.
        source: io::Error,
    },
    /// The file cannot be opened or created.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The host's error.
        source: io::Error,
    },
    /// Another export has the file open.
    #[error("{}: in use", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file is neither empty nor as large as the drive, so it has other content. Nothing was written to it.
    #[error("{}: not the data of this model", path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// Bytes of the drive.
        bytes: u64,
    },
}

/// Storage in a sparse file.
pub struct SparseFile {
    file: LockedFile,
    /// Whether the file has a name, so that a flush has to make it durable.
    named: bool,
}

impl SparseFile {
    /// A file without a name, which is removed with the process.
    ///
    /// # Errors
    /// [`DataError::Unnamed`].
    pub fn unnamed(bytes: u64) -> Result<Self, DataError> {
        let folder = std::env::temp_dir();
        let made = tempfile::tempfile_in(&folder);
        let made = made.and_then(|file| file.set_len(bytes).map(|()| file));
        match made {
            Ok(file) => Ok(Self {
                file: LockedFile::without_lock(file),
                named: false,
            }),
            Err(source) => Err(DataError::Unnamed { folder, source }),
        }
    }

    /// A named file, created if it is missing, and locked.
    ///
    /// # Errors
    /// Any but [`DataError::Unnamed`].
    pub fn named(path: &Path, bytes: u64) -> Result<Self, DataError> {
        let own = || path.to_owned();
        let of_file = |source| DataError::File {
            path: own(),
            source,
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(path).map_err(of_file)?;
        let file = LockedFile::exclusive(file).map_err(|error| match error {
            TryLockError::WouldBlock => DataError::InUse { path: own() },
            TryLockError::Error(error) => of_file(error),
        })?;
        let found = file.metadata().map_err(of_file)?;
        if !found.is_file() || ![0, bytes].contains(&found.len()) {
            return Err(DataError::Other { path: own(), bytes });
        }
        if found.len() == 0 {
            // Flushes make the content durable, not the name.
            let folder = path.parent().filter(|folder| *folder != Path::new(""));
            let folder = File::open(folder.unwrap_or(Path::new(".")));
            let named = folder.and_then(|folder| folder.sync_all());
            named.map_err(of_file)?;
        }
        file.set_len(bytes).map_err(of_file)?;
        Ok(Self { file, named: true })
    }

    /// Offset of the next data or hole; `None` if there is no other.
    fn find(&self, what: SeekFrom) -> io::Result<Option<u64>> {
        match seek(&*self.file, what) {
            Ok(at) => Ok(Some(at)),
            Err(rustix::io::Errno::NXIO) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl Data for SparseFile {
    /// Skips holes: reading a cold one takes the host's file system milliseconds for a mebibyte, longer than many a
    /// modelled drive.
    fn read(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = at + buffer.len() as u64;
        let mut next = at;
        while next < end {
            let data = self
                .find(SeekFrom::Data(next))?
                .map_or(end, |data| data.min(end));
            let behind = if data < end {
                self.find(SeekFrom::Hole(data))?
                    .map_or(end, |hole| hole.min(end))
            } else {
                end
            };
            let (hole, rest) = buffer[(next - at) as usize..].split_at_mut((data - next) as usize);
            hole.fill(0);
            let rest = &mut rest[..(behind - data) as usize];
            self.file.read_exact_at(rest, data)?;
            next = behind;
        }
        Ok(())
    }

    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, at)
    }

    /// Frees the space of the bytes if the host's file system can.
    fn discard(&self, at: u64, length: u64) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match fallocate(&*self.file, flags, at, length) {
            // A trim is a hint.
            Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
            done => Ok(done?),
        }
    }

    fn sync(&self) -> io::Result<()> {
        if self.named {
            self.file.sync_data()
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drive_model::Random;

    /// Against plain bytes: writes, trims and reads over each other's borders.
    #[test]
    fn what_was_written_reads_back_and_all_else_is_zeros() {
        const BYTES: usize = 1 << 20;
        let folder = tempfile::tempdir().unwrap();
        let named = SparseFile::named(&folder.path().join("d"), BYTES as u64).unwrap();
        for data in [SparseFile::unnamed(BYTES as u64).unwrap(), named] {
            let mut model = vec![0u8; BYTES];
            let mut random = Random::new(1);
            let mut below = |bound: usize| random.below(bound as u64) as usize;
            for n in 0..400 {
                let at = below(BYTES);
                let length = (below(40_000) + 1).min(BYTES - at);
                match below(4) {
                    0 => {
                        data.discard(at as u64, length as u64).unwrap();
                        model[at..at + length].fill(0);
                    }
                    1 => {
                        let bytes = vec![n as u8; length];
                        data.write(at as u64, &bytes).unwrap();
                        model[at..at + length].copy_from_slice(&bytes);
                    }
                    _ => {
                        let mut read = vec![0xEE; length];
                        data.read(at as u64, &mut read).unwrap();
                        assert!(read == model[at..at + length], "{at} {length}");
                    }
                }
            }
            data.sync().unwrap();
        }
    }

    #[test]
    fn only_files_that_can_be_the_models_are_taken() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d");
        std::fs::write(&path, "something else").unwrap();
        let refused = SparseFile::named(&path, 1 << 20).err().unwrap();
        assert!(matches!(refused, DataError::Other { .. }));
        assert_eq!(std::fs::read(&path).unwrap(), b"something else");
        std::fs::write(&path, "").unwrap();
        let first = SparseFile::named(&path, 1 << 20).unwrap();
        let second = SparseFile::named(&path, 1 << 20).err().unwrap();
        assert!(matches!(second, DataError::InUse { .. }));
        first.write(5, b"kept").unwrap();
        drop(first);
        let mut bytes = [0; 4];
        SparseFile::named(&path, 1 << 20)
            .unwrap()
            .read(5, &mut bytes)
            .unwrap();
        assert_eq!(&bytes, b"kept");
    }
}
