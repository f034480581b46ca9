//! A zoned drive in a sparse file of the host: `format` is its bytes, `drive` the drive, `error`
//! what can be wrong with a file. See `docs/format/file-drive.md`.

mod ahead;
mod beside;
mod create;
mod drive;
mod error;
mod flushes;
pub mod format;
mod host;
mod mapped;
mod opening;

pub use beside::HostMemory;
pub use create::CreateOptions;
pub use drive::FileDrive;
pub use error::FileDriveError;
pub use format::DriveUuid;
