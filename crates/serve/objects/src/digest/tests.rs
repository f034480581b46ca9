//! Known answers, and combination.

use super::*;
use proptest::prelude::*;

fn digests(data: &[u8]) -> Digests {
    let mut digester = Digester::new(Algorithm::ALL);
    digester.update(data);
    digester.finish()
}

#[test]
fn known_answers() {
    // The check values of the CRC catalogue, and RFC 1321 / FIPS 180 examples.
    let found = digests(b"123456789");
    assert_eq!(
        found.value(Algorithm::Crc32).unwrap(),
        0xcbf4_3926u32.to_be_bytes()
    );
    assert_eq!(
        found.value(Algorithm::Crc32c).unwrap(),
        0xe306_9283u32.to_be_bytes()
    );
    assert_eq!(
        found.value(Algorithm::Crc64Nvme).unwrap(),
        0xae8b_1486_0a79_9888u64.to_be_bytes()
    );
    let found = digests(b"abc");
    assert_eq!(
        found.hex(Algorithm::Md5),
        "900150983cd24fb0d6963f7d28e17f72"
    );
    assert_eq!(
        found.hex(Algorithm::Sha1),
        "a9993e364706816aba3e25717850c26c9cd0d89d"
    );
    assert_eq!(
        found.hex(Algorithm::Sha256),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
    assert_eq!(found.length, 3);
}

#[test]
fn hexadecimal_goes_both_ways() {
    assert_eq!(parse_hex::<3>("00fFa1"), Some([0, 255, 161]));
    assert_eq!(hex(&[0, 255, 161]), "00ffa1");
    for bad in ["00ff", "00ffa1b2", "00ffg1", "00ff é"] {
        assert_eq!(parse_hex::<3>(bad), None, "{bad}");
    }
}

proptest! {
    #[test]
    fn parts_combine(a in prop::collection::vec(any::<u8>(), 0..300), b in prop::collection::vec(any::<u8>(), 0..300)) {
        let whole = [a.clone(), b.clone()].concat();
        for algorithm in Algorithm::ALL {
            let combined =
                algorithm.combine(&algorithm.of(&a), &algorithm.of(&b), b.len() as u64);
            let expected = algorithm.crc().is_some().then(|| algorithm.of(&whole));
            prop_assert_eq!(combined, expected, "{:?}", algorithm);
        }
    }

    #[test]
    fn pieces_make_no_difference(data in prop::collection::vec(any::<u8>(), 0..600), cut in 1usize..50) {
        let mut digester = Digester::new(Algorithm::ALL);
        data.chunks(cut).for_each(|piece| digester.update(piece));
        let (pieces, whole) = (digester.finish(), digests(&data));
        prop_assert_eq!(pieces.values, whole.values);
    }
}
