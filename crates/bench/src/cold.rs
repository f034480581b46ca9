//! Files as nobody has read them yet.

use crate::error::{Error, Result};
use rustix::fs::{Advice, fadvise};
use std::fs::File;
use std::path::Path;

/// Has the host forget what it has in memory of a file; what is not on its disk stays. Of a device, or where the
/// host does not do it, nothing happens.
///
/// # Errors
/// The file cannot be opened.
pub fn forget(path: &Path) -> Result<()> {
    let file = File::open(path).map_err(|error| Error::file(path, error))?;
    // Without it the figures are of reads from memory, on both sides.
    let _ = fadvise(&file, 0, None, Advice::DontNeed);
    Ok(())
}
