//! Reads files of a configuration (keys, certificates, settings), which are small: no more than [`MAX_BYTES`] are
//! read, whatever the path leads to.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Most bytes of such a file.
pub const MAX_BYTES: u64 = 1 << 20;

/// All bytes of a small file. Pipes are refused: files are read repeatedly, and a pipe would block the reader.
///
/// # Errors
/// It cannot be read, is a pipe, or has more than [`MAX_BYTES`]: [`io::ErrorKind::FileTooLarge`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    if std::fs::metadata(path)?.file_type().is_fifo() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a pipe, no file",
        ));
    }
    let mut bytes = Vec::new();
    // The length of a device is not known before it is read.
    File::open(path)?
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MAX_BYTES {
        true => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "larger than 1 MiB, which no such file is",
        )),
        false => Ok(bytes),
    }
}

/// All of a small file as text.
///
/// # Errors
/// Those of [`read`], and [`io::ErrorKind::InvalidData`] if it is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    let no_text = |_| io::Error::new(io::ErrorKind::InvalidData, "it is no text");
    String::from_utf8(read(path)?).map_err(no_text)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_larger_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let with = |bytes: usize| {
            std::fs::write(&path, vec![b'x'; bytes]).unwrap();
            read_text(&path)
                .map(|text| text.len())
                .map_err(|e| e.kind())
        };
        assert_eq!(with(MAX_BYTES as usize), Ok(MAX_BYTES as usize));
        assert_eq!(
            with(MAX_BYTES as usize + 1),
            Err(io::ErrorKind::FileTooLarge)
        );
        let endless = read(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(endless.kind(), io::ErrorKind::FileTooLarge);
        std::fs::write(&path, [0xff]).unwrap();
        let kind = read_text(&path).unwrap_err().kind();
        assert_eq!(kind, io::ErrorKind::InvalidData);
    }
}
