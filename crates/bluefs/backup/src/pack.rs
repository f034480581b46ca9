//! Packing: the files of a file system become an archive.

use crate::error::{Error, Result};
use crate::format::{CHECKSUMS, Contents, Member};
use crate::summed::Summed;
use crate::tree::{Source, walk};
use bluefs::BlueFs;
use std::io::{self, Write};
use tar::{Builder, EntryType, Header};

/// Writes all files to `target`, each after it has been compared with its checksums. `progress` is told how
/// many bytes of files were written so far.
///
/// # Errors
/// Also that a file is damaged. What is in `target` then is no archive.
pub fn pack<W: Write>(
    fs: &BlueFs,
    target: W,
    progress: &mut dyn FnMut(u64),
) -> Result<(W, Contents)> {
    let mut builder = Builder::new(target);
    let mut contents = Contents::default();
    let mut bytes = 0;
    walk(fs, "/", &mut |path, found| {
        let mut header = Header::new_gnu();
        header.set_mtime(found.modified_micros / 1_000_000);
        let name = path.trim_start_matches('/');
        if name == CHECKSUMS {
            let path = path.to_owned();
            return Err(Error::Reserved { path });
        }
        if found.is_directory {
            header.set_entry_type(EntryType::Directory);
            header.set_mode(0o755);
            header.set_size(0);
            builder.append_data(&mut header, format!("{name}/"), io::empty())?;
            contents.directories.push(path.to_owned());
            return Ok(());
        }
        let (source, crc32c) = Source::verified(fs, path)?;
        let size = source.size();
        let mut source = Summed::new(source);
        header.set_mode(0o644);
        header.set_size(size);
        builder.append_data(&mut header, name, &mut source)?;
        let path = path.to_owned();
        if source.crc32c() != crc32c {
            return Err(Error::Changed { path });
        }
        bytes += size;
        contents.files.push(Member {
            path,
            bytes: size,
            crc32c,
        });
        progress(bytes);
        Ok(())
    })?;
    let text = contents.encode().map_err(io::Error::from)?;
    let mut header = Header::new_gnu();
    header.set_mode(0o644);
    header.set_size(text.len() as u64);
    builder.append_data(&mut header, CHECKSUMS, &text[..])?;
    Ok((builder.into_inner()?, contents))
}
