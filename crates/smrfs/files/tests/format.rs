//! The format's document against the bytes: its worked example, and a slow decoder that knows only the document.

use crate::common::geometry;
use device::{MemoryDrive, ZonedDevice};
use runtime::Runtime;
use smrfs::{FileSystem, MkfsOptions, MountOptions, NewInode, ROOT};
use std::sync::Arc;
use zone::ByteOffset;

const DOCUMENT: &str = include_str!("../../../../docs/format/smrfs.md");

fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    let field = &bytes[at..at + length];
    field
        .iter()
        .rev()
        .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// The bytes in the document's code blocks.
fn example() -> Vec<u8> {
    let block = DOCUMENT.split("```").nth(1).unwrap();
    let digits = block.split_whitespace();
    digits
        .map(|byte| u8::from_str_radix(byte, 16).unwrap())
        .collect()
}

#[test]
fn the_worked_example_is_what_mkfs_writes() {
    let device = Arc::new(MemoryDrive::new(geometry(24, 4)).unwrap());
    let options = MkfsOptions {
        label: "photos".to_owned(),
        ..MkfsOptions::default()
    };
    FileSystem::mkfs(device.clone(), &Runtime::seeded(1), &options).unwrap();
    let mut bytes = vec![0; 4096];
    device.read(ByteOffset(0), &mut bytes).unwrap();
    let end = 64 + number(&bytes, 12, 4) as usize;
    let hex: Vec<String> = bytes[..end]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let lines: Vec<String> = hex.chunks(16).map(|line| line.join(" ")).collect();
    assert!(
        bytes[..end] == example(),
        "the head is\n{}",
        lines.join("\n")
    );
}

/// Reads a slot by the document alone: generation, and first bytes of all records in order.
fn decode(slot: &[u8]) -> (u64, Vec<u8>) {
    let (mut at, mut sequence, mut previous, mut kinds) = (0, 0, 0, Vec::new());
    let generation = number(slot, 16, 8);
    while slot[at..at + 8] == *b"ZSTRAPPD" {
        let frame = &slot[at..];
        let length = number(frame, 12, 4) as usize;
        // The version, in all frames of a slot.
        assert_eq!(number(frame, 8, 2), number(slot, 8, 2));
        let hashed = [&frame[..56], &frame[64..64 + length]].concat();
        assert_eq!(number(frame, 56, 8), xxhash_rust::xxh3::xxh3_64(&hashed));
        if number(frame, 16, 8) != generation || number(frame, 24, 8) != sequence {
            break;
        }
        assert_eq!(number(frame, 40, 8), previous);
        let kind = frame[10];
        assert_eq!(kind == 1, sequence == 0);
        let mut rest = &frame[64..64 + length];
        while kind != 1 && !rest.is_empty() {
            let text = |at: usize| 4 + number(rest, at, 4) as usize;
            let size = 1 + match rest[0] {
                1 => 8 + 5 * 4 + 8 + 4 * 12,
                2 | 10 | 11 => 8,
                3 => 16 + text(17),
                4 | 8 | 9 => 8 + text(9),
                5 => 8 + 8 + 4 + 4 + 4 + 4 * number(rest, 25, 4) as usize,
                6 | 12 => 24,
                7 => 8 + text(9) + text(9 + text(9)),
                other => panic!("record {other}"),
            };
            kinds.push(rest[0]);
            rest = &rest[size..];
        }
        previous = number(frame, 56, 8);
        sequence += 1;
        at += (64 + length).next_multiple_of(4096);
    }
    (generation, kinds)
}

#[test]
fn a_decoder_made_from_the_document_reads_every_record() {
    let device = Arc::new(MemoryDrive::new(geometry(24, 4)).unwrap());
    let runtime = Runtime::seeded(2);
    FileSystem::mkfs(device.clone(), &runtime, &MkfsOptions::default()).unwrap();
    let fs = FileSystem::mount(device.clone(), runtime, MountOptions::default()).unwrap();
    let new = NewInode {
        mode: libc::S_IFREG | 0o644,
        uid: 0,
        gid: 0,
        rdev: 0,
    };
    let ino = fs.create(ROOT, b"file", new).unwrap().ino;
    fs.write(ino, 0, &[1; 20_000]).unwrap();
    fs.set_xattr(ino, b"user.a", b"value", Default::default())
        .unwrap();
    fs.sync().unwrap();
    fs.truncate(ino, 5_000).unwrap();
    fs.remove_xattr(ino, b"user.a").unwrap();
    fs.symlink(ROOT, b"link", b"file", (0, 0)).unwrap();
    fs.unlink(ROOT, b"file").unwrap();
    fs.sync().unwrap();
    let half = 512 << 10;
    let mut slots = [vec![0; half], vec![0; half]];
    for (n, slot) in slots.iter_mut().enumerate() {
        device.read(ByteOffset((n * half) as u64), slot).unwrap();
    }
    // mkfs writes one and then the other, and ends the first.
    let (first, kinds) = decode(&slots[0]);
    assert_eq!(kinds, [10, 1, 11]);
    let (generation, kinds) = decode(&slots[1]);
    assert_eq!(generation, first + 1);
    for kind in 1..=10 {
        assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
    }
    assert_eq!(number(&slots[1], 8, 2), 1);
    // What is preallocated makes a copy of version 2.
    let ino = fs.create(ROOT, b"file", new).unwrap().ino;
    fs.preallocate(ino, 0, 30_000, true).unwrap();
    fs.sync().unwrap();
    fs.write(ino, 10_000, b"one").unwrap();
    fs.preallocate(ino, 50_000, 1, true).unwrap();
    fs.sync().unwrap();
    device.read(ByteOffset(0), &mut slots[0]).unwrap();
    assert_eq!(number(&slots[0], 8, 2), 2);
    let (later, kinds) = decode(&slots[0]);
    assert_eq!(later, generation + 1);
    let counted = kinds.iter().filter(|kind| **kind == 12).count();
    assert_eq!(counted, 2, "{kinds:?}");
}
