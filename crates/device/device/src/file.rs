//! A zoned drive in a sparse file of the host: `format` encodes its bytes, `drive` executes commands, `error`
//! says why a file is refused. See `docs/format/file-drive.md`.

mod ahead;
mod beside;
mod create;
mod direct;
mod drive;
mod error;
pub(crate) mod flushes;
pub mod format;
mod host;
mod mapped;
mod opening;

pub use beside::HostMemory;
pub use create::CreateOptions;
pub use drive::FileDrive;
pub use error::FileDriveError;
pub use format::DriveUuid;
