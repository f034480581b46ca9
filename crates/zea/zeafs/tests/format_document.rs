//! Compares `docs/format/zeafs.md` with the code.

use zeafs::format::FORMAT_VERSION;
use zeafs::format::frame::{self, Decoded, Frame, checksum};
use zeafs::format::operation::{CHUNK, Operation, Piece, sums};
use zone::{ZoneAddress, ZoneId};

const DOCUMENT: &str = include_str!("../../../../docs/format/zeafs.md");

/// The cells of the table after `heading`, by row.
fn rows(heading: &str) -> Vec<Vec<String>> {
    let from = DOCUMENT.find(heading).unwrap();
    let lines = DOCUMENT[from..].lines().skip(1);
    let table = lines
        .skip_while(|l| !l.starts_with('|'))
        .take_while(|l| l.starts_with('|'));
    table
        .skip(2)
        .map(|l| {
            l.trim_matches('|')
                .split('|')
                .map(|c| c.trim().to_owned())
                .collect()
        })
        .collect()
}

#[test]
fn frames() {
    assert!(DOCUMENT.starts_with(&format!("# The format of ZEAFS, version {FORMAT_VERSION}")));
    let heading = format!("## Frame ({} bytes", frame::HEADER);
    let written = Frame {
        uuid: [7; 16],
        epoch: 11,
        number: 12,
        length: 3,
        durable: 10,
        block_size: 512,
        zone_count: 14,
        zone_capacity: 15,
    };
    let block = written.encode(b"abc");
    assert_eq!(
        (block.len(), &block[..8], &block[80..83]),
        (512, &frame::MAGIC[..], &b"abc"[..])
    );
    let mut next = 0;
    for row in rows(&heading) {
        let (offset, size): (usize, usize) = (row[0].parse().unwrap(), row[1].parse().unwrap());
        assert_eq!(offset, next);
        next += size;
        let value = block[offset..next]
            .iter()
            .rev()
            .fold(0_u128, |v, b| v << 8 | u128::from(*b));
        let expected = match row[2].split([':', ',', ' ']).next().unwrap() {
            "format" => u128::from(FORMAT_VERSION),
            "checksum" => checksum(&block[..83]).into(),
            "epoch" => 11,
            "number" => 12,
            "bytes" => 3,
            "block" => 512,
            "zones" => 14,
            "capacity" => 15,
            "durable" => 10,
            _ => continue,
        };
        assert_eq!(value, expected, "{}", row[2]);
    }
    assert_eq!(next, frame::HEADER);
    assert_eq!(
        Frame::decode(&block),
        Decoded::Header(written, checksum(&block[..83]))
    );
}

#[test]
fn operations() {
    let piece = Piece {
        file_offset: 1,
        at: ZoneAddress::new(ZoneId(2), 3),
        length: CHUNK + 1,
        stored: 5,
        sums: sums(&vec![9; CHUNK as usize + 1]),
    };
    assert!(DOCUMENT.contains(&format!("{} KiB of it", CHUNK >> 10)));
    let name = || "n".to_owned();
    let all = [
        (
            Operation::Create {
                inode: 1,
                name: name(),
            },
            1 + 8 + 3,
        ),
        (Operation::Remove { name: name() }, 1 + 3),
        (
            Operation::Rename {
                from: name(),
                to: name(),
            },
            1 + 3 + 3,
        ),
        (
            Operation::Append {
                inode: 1,
                piece: piece.clone(),
            },
            1 + 8 + 36 + 8,
        ),
        (Operation::Truncate { inode: 1, size: 2 }, 1 + 8 + 8),
        (
            Operation::Move {
                inode: 1,
                file_offset: 1,
                to: vec![piece.clone(), piece],
            },
            1 + 8 + 8 + 4 + 2 * (36 + 8),
        ),
    ];
    let mut frame = Vec::new();
    for ((operation, size), row) in all.iter().zip(rows("## Operations")) {
        let from = frame.len();
        operation.encode(&mut frame);
        assert_eq!(
            (frame[from].to_string(), frame.len() - from),
            (row[0].clone(), *size)
        );
    }
    let decoded = Operation::decode_all(&frame).unwrap();
    assert!(
        decoded
            .iter()
            .eq(all.iter().map(|(operation, _)| operation))
    );
    // A truncated or changed frame may be no valid operation, but must not panic.
    for end in 1..frame.len() {
        let _ = Operation::decode_all(&frame[..end]);
    }
    for seed in 0..2000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut junk = frame.clone();
        for _ in 0..4 {
            let at = random.usize(..junk.len());
            junk[at] = random.u8(..);
        }
        let _ = Operation::decode_all(&junk);
        let _ = Frame::decode(&junk);
    }
}
