//! Known answers, combination, and every way an announcement can disagree with the bytes.

use super::*;
use http::HeaderValue;
use proptest::prelude::*;

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in pairs {
        map.append(*name, HeaderValue::from_str(value).unwrap());
    }
    map
}

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
        found.checksum(Algorithm::Crc32).unwrap(),
        0xcbf4_3926u32.to_be_bytes()
    );
    assert_eq!(
        found.checksum(Algorithm::Crc32c).unwrap(),
        0xe306_9283u32.to_be_bytes()
    );
    assert_eq!(
        found.checksum(Algorithm::Crc64Nvme).unwrap(),
        0xae8b_1486_0a79_9888u64.to_be_bytes()
    );
    let found = digests(b"abc");
    assert_eq!(hex(&found.md5), "900150983cd24fb0d6963f7d28e17f72");
    assert_eq!(
        hex(found.checksum(Algorithm::Sha1).unwrap()),
        "a9993e364706816aba3e25717850c26c9cd0d89d"
    );
    assert_eq!(
        hex(found.checksum(Algorithm::Sha256).unwrap()),
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
        prop_assert_eq!(pieces.md5, whole.md5);
        prop_assert_eq!(pieces.checksums, whole.checksums);
    }
}

#[test]
fn what_matches_passes() {
    let body = b"hello";
    let found = digests(body);
    for algorithm in Algorithm::ALL {
        let value = base64(&algorithm.of(body));
        let announced = Announced::of(&headers(&[(algorithm.header(), &value)])).unwrap();
        assert_eq!(announced.kept(), Some(algorithm));
        announced.verify(&found, None).unwrap();
        let announced = Announced::of(&headers(&[("x-amz-trailer", algorithm.header())])).unwrap();
        announced
            .verify(&found, Some(&headers(&[(algorithm.header(), &value)])))
            .unwrap();
    }
    let announced = Announced::of(&headers(&[("content-md5", &base64(&found.md5))])).unwrap();
    announced.verify(&found, None).unwrap();
}

#[test]
fn what_does_not_match_is_refused() {
    let found = digests(b"hello");
    let code = |announced: &Announced, trailers: Option<&HeaderMap>| {
        announced
            .verify(&found, trailers)
            .unwrap_err()
            .code()
            .as_str()
            .to_owned()
    };
    for algorithm in Algorithm::ALL {
        let value = base64(&algorithm.of(b"other"));
        let announced = Announced::of(&headers(&[(algorithm.header(), &value)])).unwrap();
        assert_eq!(code(&announced, None), "BadDigest");
        let announced = Announced::of(&headers(&[("x-amz-trailer", algorithm.header())])).unwrap();
        let trailers = headers(&[(algorithm.header(), &value)]);
        assert_eq!(code(&announced, Some(&trailers)), "BadDigest");
        assert_eq!(
            code(&announced, Some(&HeaderMap::new())),
            "MalformedTrailerError"
        );
        assert_eq!(code(&announced, None), "MalformedTrailerError");
    }
    let announced = Announced::of(&headers(&[("content-md5", &base64(&[7; 16]))])).unwrap();
    assert_eq!(code(&announced, None), "BadDigest");
}

#[test]
fn malformed_announcements_are_refused() {
    let code = |pairs: &[(&'static str, &str)]| {
        Announced::of(&headers(pairs))
            .unwrap_err()
            .code()
            .as_str()
            .to_owned()
    };
    assert_eq!(code(&[("content-md5", "nonsense")]), "InvalidDigest");
    assert_eq!(code(&[("content-md5", "AAAA")]), "InvalidDigest");
    assert_eq!(code(&[("x-amz-checksum-crc32", "AAAA")]), "InvalidRequest");
    assert_eq!(
        code(&[("x-amz-checksum-crc32", "!!!!!!==")]),
        "InvalidRequest"
    );
    let two = [
        ("x-amz-checksum-crc32", base64(&[0; 4])),
        ("x-amz-checksum-sha1", base64(&[0; 20])),
    ];
    assert_eq!(
        code(&two.each_ref().map(|(name, value)| (*name, value.as_str()))),
        "InvalidRequest"
    );
    assert_eq!(
        code(&[("x-amz-trailer", "x-amz-meta-surprise")]),
        "InvalidRequest"
    );
    assert_eq!(
        code(&[("x-amz-sdk-checksum-algorithm", "CRC16")]),
        "InvalidRequest"
    );
}
