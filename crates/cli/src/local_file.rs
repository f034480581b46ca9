//! Files of the host that data comes from and goes to.

use crate::errors::{CommandError, CommandResult, Exit};
use crate::occupant;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use terminal::WholeFile;

/// Opens what is to be stored: a file, or `-` for standard input, and its size if that is known.
pub fn source(path: &Path) -> CommandResult<(Box<dyn Read>, Option<u64>)> {
    if path == Path::new("-") {
        return Ok((Box::new(io::stdin()), None));
    }
    let failed = |error: io::Error| CommandError::file(path, &error);
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_dir() {
        let shown = path.display();
        let what = format_args!("{shown}: a directory; one file at a time is stored");
        let hint = format_args!("tar c {shown} packs it into one; - takes standard input");
        return Err(CommandError::new(Exit::Usage, what).hint(hint));
    }
    let size = metadata.is_file().then_some(metadata.len());
    Ok((Box::new(file), size))
}

/// Begins a file. A drive or a saved model is not replaced.
pub fn create(path: &Path) -> CommandResult<WholeFile> {
    occupant::refuse(path)?;
    Ok(WholeFile::create(path)?)
}

/// Writes a small one at once.
pub fn write(path: &Path, text: &str) -> CommandResult {
    let mut file = create(path)?;
    file.write_all(text.as_bytes())?;
    Ok(file.publish()?)
}
