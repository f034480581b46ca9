use super::*;

#[test]
fn the_export_tells_what_it_is() {
    let client = Client::default()
        .flags(3)
        .option(3, &[])
        .go("disk", &[1, 2, 3]);
    let (mut answers, result, _) = client.talk();
    result.unwrap();
    answers.greeting();
    assert_eq!(answers.option(3), (2, b"\0\0\0\x04disk".to_vec()));
    assert_eq!(answers.option(3), (1, vec![]));
    // Size; flags, flush, FUA, rotational, trim, several connections.
    let size = (1u64 << 20).to_be_bytes();
    let mut expected = vec![0, 0];
    expected.extend(size);
    expected.extend([0x01, 0x3d]);
    assert_eq!(answers.option(7), (3, expected));
    assert_eq!(answers.option(7), (3, b"\0\x01disk".to_vec()));
    assert_eq!(answers.option(7), (3, b"\0\x02a disk".to_vec()));
    let sizes = [0u16.to_be_bytes().to_vec(), vec![]].concat();
    assert_eq!(sizes, [0, 0]);
    let mut expected = 3u16.to_be_bytes().to_vec();
    for size in [1, 4096, MAX_PAYLOAD_BYTES] {
        expected.extend(size.to_be_bytes());
    }
    assert_eq!(answers.option(7), (3, expected));
    assert_eq!(answers.option(7), (1, vec![]));
    assert!(answers.0.is_empty());
}

#[test]
fn what_is_not_offered_is_refused_and_haggling_goes_on() {
    let client = Client::default()
        .flags(1)
        .option(5, &[])
        .option(8, &[])
        .option(3, b"x")
        .option(6, b"\0\0\0\xffshort")
        .go("other", &[])
        .option(2, &[])
        .option(8, &[]);
    let (mut answers, result, _) = client.talk();
    result.unwrap();
    answers.greeting();
    let error = 1 << 31;
    for (option, kind) in [(5, 1), (8, 1), (3, 3), (6, 3), (7, 6)] {
        assert_eq!(answers.option(option).0, error | kind);
    }
    // Behind an abort nothing is answered.
    assert_eq!(answers.option(2), (1, vec![]));
    assert!(answers.0.is_empty());
}

#[test]
fn the_older_way_to_begin_has_its_zeros() {
    for (flags, zeros) in [(1, 124), (3, 0)] {
        let client = Client::default().flags(flags).option(1, b"disk");
        let (mut answers, result, _) = client.talk();
        result.unwrap();
        answers.greeting();
        assert_eq!(answers.number(8), 1 << 20);
        assert_eq!(answers.number(2), 0x013d);
        assert_eq!(answers.bytes(zeros), vec![0; zeros]);
        assert!(answers.0.is_empty());
    }
    let (mut answers, result, _) = Client::default().flags(3).option(1, b"other").talk();
    result.unwrap();
    answers.greeting();
    assert!(answers.0.is_empty());
}
