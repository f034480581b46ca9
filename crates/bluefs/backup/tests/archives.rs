//! What comes out of an archive.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

use backup::format::Contents;
use backup::unpack::{Sink, unpack};
use backup::{Error, Packer};
use std::io::Read;
use tar::{Builder, EntryType, Header};

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

/// As `tar --sparse --format=posix` makes it: a map in front of the data, under a name of its own.
#[test]
fn a_sparse_file_is_not_taken_for_its_map() {
    let mut builder = Builder::new(Vec::new());
    let records: [(&str, &[u8]); 4] = [
        ("GNU.sparse.major", b"1"),
        ("GNU.sparse.minor", b"0"),
        ("GNU.sparse.name", b"file"),
        ("GNU.sparse.realsize", b"1000000"),
    ];
    builder.append_pax_extensions(records).unwrap();
    let mut content = vec![0; 1024];
    content[..10].copy_from_slice(b"1\n0\n512\n\0\0");
    let mut header = Header::new_ustar();
    header.set_size(1024);
    let name = "GNUSparseFile.0/file";
    builder
        .append_data(&mut header, name, &content[..])
        .unwrap();
    let archive = builder.into_inner().unwrap();
    let refused = unpacked(&archive, true).err();
    assert!(matches!(refused, Some(Error::Kind { .. })), "{refused:?}");
}

/// It would be among the files that are not verified yet, and could not get its name.
#[test]
fn the_directory_of_a_restore_is_in_no_archive() {
    let inside = "/.zonestore-restore/a";
    let mut packer = Packer::new(Vec::new());
    let refused = packer.file(inside, 1, 0, &b""[..]).err();
    assert!(matches!(refused, Some(Error::Reserved { .. })));
    let refused = packer.directory("/.zonestore-restore", 1).err();
    assert!(matches!(refused, Some(Error::Reserved { .. })));
    packer
        .file("/db/.zonestore-restore", 1, 0, &b""[..])
        .unwrap();
    let (archive, _) = packer.finish().unwrap();
    unpacked(&archive, false).unwrap();
    let mut builder = Builder::new(Vec::new());
    let mut header = Header::new_ustar();
    header.set_size(0);
    builder
        .append_data(&mut header, &inside[1..], &b""[..])
        .unwrap();
    let refused = unpacked(&builder.into_inner().unwrap(), true).err();
    assert!(matches!(refused, Some(Error::Reserved { .. })));
}

/// As `tar -C FOLDER -c .` makes it, in any order. As a file it would keep the file system from being packed.
#[test]
fn checksums_are_known_by_any_way_to_write_their_name() {
    let mut packer = Packer::new(Vec::new());
    packer.directory("/b", 1).unwrap();
    packer.directory("/c", 1).unwrap();
    packer.file("/a", 1, 7, &b"content"[..]).unwrap();
    packer.file("/b/d", 1, 0, &b""[..]).unwrap();
    let (_, packed) = packer.finish().unwrap();
    let checksums = packed.encode().unwrap();
    let list: (&str, &[u8]) = ("./.zonestore-backup", &checksums);
    let again = |entries: &[(&str, &[u8])], foreign| {
        let mut builder = Builder::new(Vec::new());
        for (name, bytes) in entries {
            let mut header = Header::new_old();
            // The library's own ways to set a name leave the point out.
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            if name.ends_with('/') {
                header.set_entry_type(EntryType::Directory);
            }
            header.set_size(bytes.len() as u64);
            header.set_cksum();
            builder.append(&header, *bytes).unwrap();
        }
        unpacked(&builder.into_inner().unwrap(), foreign)
    };
    let with = |content: &'static [u8]| {
        let [root, c, d, b] = ["./", "./c/", "./b/d", "./b/"].map(|name| (name, &b""[..]));
        [root, c, list, d, b, ("./a", content)]
    };
    let (found, files) = again(&with(b"content"), true).unwrap();
    assert_eq!((found, files.0.len()), (packed.clone(), 2));
    let refused = again(&with(b"another"), true).err();
    assert!(
        matches!(refused, Some(Error::Different { .. })),
        "{refused:?}"
    );
    let refused = again(&with(b"content"), false).err();
    assert!(matches!(refused, Some(Error::GoesOn)), "{refused:?}");
    let refused = again(&[list, list], true).err();
    assert!(matches!(refused, Some(Error::GoesOn)), "{refused:?}");
}
