//! Opens the zoned drive at a path: a drive file or a zoned device of the host.

use crate::file::HostMemory;
use crate::{
    FileDrive, FileDriveError, HostDriveError, Keeps, LinuxDrive, NvmeDrive, ZonedDevice, nvme,
};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use thiserror::Error;
use zone::{ByteOffset, Geometry, ZoneDescriptor, ZoneId, ZoneResult};

/// A drive that was opened by its path.
#[derive(Debug)]
pub enum Drive {
    /// A drive file.
    File(Box<FileDrive>),
    /// A zoned block device.
    Linux(LinuxDrive),
    /// A ZNS namespace by its character device.
    Nvme(NvmeDrive),
}

/// Why a drive could not be opened.
#[derive(Debug, Error)]
pub enum DriveError {
    /// The path was opened as a drive file.
    #[error(transparent)]
    File(#[from] FileDriveError),
    /// The path was opened as a device of the host.
    #[error(transparent)]
    Host(#[from] HostDriveError),
}

impl DriveError {
    /// Whether another process has the drive open.
    pub const fn is_in_use(&self) -> bool {
        matches!(
            self,
            Self::File(FileDriveError::InUse { .. }) | Self::Host(HostDriveError::InUse { .. })
        )
    }
}

impl Drive {
    /// Opens the drive at `path` for this process alone.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DriveError> {
        let path = path.as_ref();
        Ok(match kind(path) {
            Kind::Block => Self::Linux(LinuxDrive::open(path)?),
            Kind::Namespace => Self::Nvme(NvmeDrive::open(path)?),
            Kind::Other => Self::File(Box::new(FileDrive::open(path)?)),
        })
    }

    /// Opens the drive at `path` for reading; other readers may have it open too.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self, DriveError> {
        let path = path.as_ref();
        Ok(match kind(path) {
            Kind::Block => Self::Linux(LinuxDrive::open_read_only(path)?),
            Kind::Namespace => Self::Nvme(NvmeDrive::open_read_only(path)?),
            Kind::Other => Self::File(Box::new(FileDrive::open_read_only(path)?)),
        })
    }

    /// Opens the drive at `path` for observation while another process may be changing it.
    ///
    /// Takes no lock and changes nothing. The zones of a drive file are as they were when it was opened; data
    /// that is read may have been erased and rewritten since.
    pub fn observe(path: impl AsRef<Path>) -> Result<Self, DriveError> {
        let path = path.as_ref();
        Ok(match kind(path) {
            Kind::Block => Self::Linux(LinuxDrive::observe(path)?),
            Kind::Namespace => Self::Nvme(NvmeDrive::observe(path)?),
            Kind::Other => Self::File(Box::new(FileDrive::observe(path)?)),
        })
    }

    /// Makes large reads and writes direct I/O, as those of a device are: see [`FileDrive::with_direct_io`].
    pub fn with_direct_io(self) -> Self {
        match self {
            Self::File(drive) => drive.with_direct_io().into(),
            Self::Linux(_) | Self::Nvme(_) => self,
        }
    }

    /// The drive file; `None` for a device.
    pub const fn as_file(&self) -> Option<&FileDrive> {
        match self {
            Self::File(drive) => Some(drive),
            Self::Linux(_) | Self::Nvme(_) => None,
        }
    }

    /// The path of the drive file or the device.
    pub fn path(&self) -> &Path {
        match self {
            Self::File(drive) => drive.path(),
            Self::Linux(drive) => drive.path(),
            Self::Nvme(drive) => drive.path(),
        }
    }

    /// The UUID of a drive file; "none" for a device.
    pub fn identity(&self) -> String {
        self.as_file()
            .map_or_else(|| "none".to_owned(), |file| file.uuid().to_string())
    }

    /// Bytes that the drive takes on the host, without the holes of a file.
    pub fn host_bytes(&self) -> io::Result<u64> {
        self.as_file()
            .map_or_else(|| Ok(self.geometry().size_bytes()), FileDrive::host_bytes)
    }

    /// Whether the file system under a drive file takes `room` more bytes, as far as it tells; true for a device.
    pub fn host_takes_writes(&self, room: u64) -> bool {
        self.as_file()
            .is_none_or(|file| file.host_takes_writes(room))
    }

    /// The profile that a drive file was made from; a fixed phrase for a device.
    pub fn profile_name(&self) -> &str {
        self.as_file()
            .map_or("a device of the host", FileDrive::profile_name)
    }

    fn device(&self) -> &dyn ZonedDevice {
        match self {
            Self::File(drive) => &**drive,
            Self::Linux(drive) => drive,
            Self::Nvme(drive) => drive,
        }
    }
}

/// Whether [`Drive::open`] would open `path` as a device of the host.
pub fn is_host_device(path: &Path) -> bool {
    !matches!(kind(path), Kind::Other)
}

/// The files that [`Drive::open`] locks for a canonical path, as far as they exist: the path itself, and the block device of
/// an NVMe namespace.
pub fn locked_files(path: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let sibling = nvme::block_sibling(path);
    std::iter::once(path.to_owned()).chain(sibling)
}

enum Kind {
    Block,
    Namespace,
    /// A drive file, or nothing that can be opened.
    Other,
}

fn kind(path: &Path) -> Kind {
    match std::fs::metadata(path).map(|metadata| metadata.file_type()) {
        Ok(kind) if kind.is_block_device() => Kind::Block,
        Ok(kind) if kind.is_char_device() && nvme::is_namespace(path) => Kind::Namespace,
        _ => Kind::Other,
    }
}

impl From<FileDrive> for Drive {
    fn from(drive: FileDrive) -> Self {
        Self::File(Box::new(drive))
    }
}

impl ZonedDevice for Drive {
    fn keeps(&self) -> Keeps {
        self.device().keeps()
    }
    fn host_memory(&self) -> Option<&HostMemory> {
        self.device().host_memory()
    }
    fn geometry(&self) -> &Geometry {
        self.device().geometry()
    }
    fn report(&self, first: ZoneId, count: u32) -> ZoneResult<Vec<ZoneDescriptor>> {
        self.device().report(first, count)
    }
    fn read(&self, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        self.device().read(at, buffer)
    }
    fn read_many(&self, reads: &mut [(ByteOffset, &mut [u8])]) -> ZoneResult<()> {
        self.device().read_many(reads)
    }
    fn write(&self, at: ByteOffset, data: &[u8]) -> ZoneResult<()> {
        self.device().write(at, data)
    }
    fn append(&self, zone: ZoneId, data: &[u8]) -> ZoneResult<ByteOffset> {
        self.device().append(zone, data)
    }
    fn open(&self, zone: ZoneId) -> ZoneResult<()> {
        self.device().open(zone)
    }
    fn close(&self, zone: ZoneId) -> ZoneResult<()> {
        self.device().close(zone)
    }
    fn finish(&self, zone: ZoneId) -> ZoneResult<()> {
        self.device().finish(zone)
    }
    fn reset(&self, zone: ZoneId) -> ZoneResult<()> {
        self.device().reset(zone)
    }
    fn flush(&self) -> ZoneResult<()> {
        self.device().flush()
    }
    fn host_free_bytes(&self) -> Option<u64> {
        self.device().host_free_bytes()
    }
}
