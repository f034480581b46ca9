//! What comes out of an archive.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

use backup::format::Contents;
use backup::unpack::{Sink, unpack};
use backup::{Error, Packer};
use std::io::Read;

/// Files with their contents.
#[derive(Default)]
struct Files(Vec<(String, Vec<u8>)>);

impl Sink for Files {
    fn directory(&mut self, _: &str) -> Result<(), Error> {
        Ok(())
    }

    fn file(&mut self, path: &str, _: u64, content: &mut dyn Read) -> Result<u64, Error> {
        let mut bytes = Vec::new();
        let read = content.read_to_end(&mut bytes)?;
        self.0.push((path.to_owned(), bytes));
        Ok(read as u64)
    }
}

fn unpacked(archive: &[u8], foreign: bool) -> Result<(Contents, Files), Error> {
    let mut files = Files::default();
    Ok((unpack(archive, foreign, &mut files)?, files))
}

#[test]
fn a_directory_may_have_the_name_of_the_checksums() {
    let mut packer = Packer::new(Vec::new());
    packer.directory("/.zonestore-backup", 1).unwrap();
    let (path, content) = ("/.zonestore-backup/a", b"content");
    packer.file(path, 1, 7, &content[..]).unwrap();
    let (archive, packed) = packer.finish().unwrap();
    let (found, files) = unpacked(&archive, false).unwrap();
    assert_eq!(found, packed);
    assert_eq!(files.0, [(path.to_owned(), content.to_vec())]);
}
