//! Frames and operations of ZEAFS (docs/format/zeafs.md), as they come, and in a frame with a right checksum on a drive
//! that is mounted then, and once more.

#![no_main]

use device::{MemoryDrive, ZonedDevice};
use libfuzzer_sys::fuzz_target;
use runtime::Runtime;
use std::sync::Arc;
use zeafs::format::frame::{Decoded, Frame};
use zeafs::format::operation::Operation;
use zeafs::{Error, Examined, ZeaFs};
use zone::{ByteOffset, Geometry, ZoneKind};

const BLOCK: u64 = 512;

fuzz_target!(|input: &[u8]| {
    let Some((choice, bytes)) = input.split_first() else {
        return;
    };
    match choice % 4 {
        0 => _ = Frame::decode(bytes),
        1 => operations(bytes),
        choice => mounted(bytes, choice == 2),
    }
});

/// What decodes encodes to the same bytes.
fn operations(bytes: &[u8]) {
    if let Some(all) = Operation::decode_all(bytes) {
        let mut again = Vec::new();
        all.iter()
            .for_each(|operation| operation.encode(&mut again));
        assert!(again == bytes);
    }
}

/// The frame behind the two that an empty file system has, which may call itself durable: it is refused, or left out, or what it
/// says can be gone on with.
fn mounted(bytes: &[u8], is_durable: bool) {
    // Refused by the first look, which is known.
    if Operation::decode_all(bytes).is_none() {
        return;
    }
    let geometry = Geometry {
        block_size: BLOCK as u32,
        zone_size: 16 << 10,
        zone_capacity: 16 << 10,
        zone_count: 6,
        conventional_zones: 1,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 0,
        max_active_zones: 0,
        max_append_bytes: 0,
    };
    let Ok(device) = MemoryDrive::new(geometry) else {
        return;
    };
    let device = Arc::new(device);
    ZeaFs::format(&*device, [3; 16], false).expect("an empty drive can be formatted");
    // Behind the two copies of the head, the checkpoint and frame 1.
    let (mut block, place) = ([0; BLOCK as usize], 4 * BLOCK);
    device
        .read(ByteOffset(place - BLOCK), &mut block)
        .expect("it is there");
    let Decoded::Header(last, _) = Frame::decode(&block) else {
        panic!("frame 1 is not where the document says");
    };
    let number = last.number + 1;
    let frame = Frame {
        number,
        durable: if is_durable { number } else { last.durable },
        ..last
    };
    device
        .write(ByteOffset(place), &frame.encode(bytes))
        .expect("there is room");
    let fs = match ZeaFs::mount(device.clone(), Runtime::seeded(1)) {
        Ok(fs) => fs,
        Err(Error::Corrupt { .. } | Error::MetadataFull { .. }) => return,
        Err(error) => panic!("{error}"),
    };
    for name in fs.list("") {
        let reader = fs.open(&name).expect("it was listed");
        let mut some = [0; 600];
        let _ = reader.read_at(0, &mut some);
        let _ = reader.read_at(reader.size() / 2, &mut some);
    }
    let synced = fs.create("new").and_then(|mut writer| {
        writer.append(&[7; 3000])?;
        writer.sync()
    });
    drop(fs);
    Examined::of(&*device).expect("it was mounted");
    let fs = ZeaFs::mount(device, Runtime::seeded(2)).expect("it was mounted");
    if synced.is_ok() {
        let mut found = [0; 3000];
        let reader = fs.open("new").expect("it was synced");
        assert!(
            reader
                .read_at(0, &mut found)
                .is_ok_and(|length| length == 3000)
                && found == [7; 3000]
        );
    }
}
