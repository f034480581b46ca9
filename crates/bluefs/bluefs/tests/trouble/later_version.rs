//! A journal with an operation of a later version is refused by name.

use super::*;
use bluefs::format::journal::{DecodedFrame, Place, decode_frame, decode_header, encode_frame};

#[test]
fn an_operation_that_is_not_known_is_called_that() {
    let device = formatted(geometry(40, 0, 0));
    drop(mount(device.clone()).unwrap());
    let zone = BlueFs::probe(&*device).unwrap().journal_zone;
    let g = device.geometry();
    let end = device.report_zone(zone).unwrap().write_pointer;
    let mut bytes = vec![0; end as usize];
    device.read(g.start(zone), &mut bytes).unwrap();
    let mut next = None;
    while let Some(header) = decode_header(&bytes) {
        let (frame, length) = (
            header.frame_length(),
            g.round_up(header.frame_length() as u64),
        );
        let DecodedFrame::Whole(_, previous) = decode_frame(&bytes[..frame]) else {
            panic!("{header:?}");
        };
        next = Some(Place {
            sequence: header.place.sequence + 1,
            previous,
            ..header.place
        });
        bytes.drain(..length as usize);
    }
    let place = next.unwrap();
    let (frame, _) = encode_frame(place, 0, &[0xee], g.block_size);
    let at = zone::ZoneAddress::new(zone, end);
    device.write(g.absolute(at), &frame).unwrap();
    let error = mount(device.clone()).err().unwrap();
    assert!(matches!(error, Error::UnknownOperation { .. }), "{error:?}");
    let said = error.to_string();
    assert!(
        said.starts_with(&format!("frame {} of the journal", place.sequence)),
        "{said}"
    );
}
