//! Every way an announcement can disagree with the bytes.

use super::*;
use http::HeaderValue;
use objects::digest::Digester;

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in pairs {
        let name = http::HeaderName::try_from(*name).unwrap();
        map.append(name, HeaderValue::from_str(value).unwrap());
    }
    map
}

fn digests(data: &[u8]) -> Digests {
    let mut digester = Digester::new(Algorithm::ALL);
    digester.update(data);
    digester.finish()
}

#[test]
fn what_matches_passes() {
    let body = b"hello";
    let found = digests(body);
    for algorithm in CHECKSUMS {
        let value = base64(&algorithm.of(body));
        let announced = Announced::of(&headers(&[(&header(algorithm), &value)])).unwrap();
        assert_eq!(announced.kept(), Some(algorithm));
        announced.verify(&found, None).unwrap();
        let announced = Announced::of(&headers(&[("x-amz-trailer", &header(algorithm))])).unwrap();
        announced
            .verify(&found, Some(&headers(&[(&header(algorithm), &value)])))
            .unwrap();
    }
    let announced = Announced::of(&headers(&[(
        "content-md5",
        &base64(found.value(Algorithm::Md5).unwrap()),
    )]))
    .unwrap();
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
    for algorithm in CHECKSUMS {
        let value = base64(&algorithm.of(b"other"));
        let announced = Announced::of(&headers(&[(&header(algorithm), &value)])).unwrap();
        assert_eq!(code(&announced, None), "BadDigest");
        let announced = Announced::of(&headers(&[("x-amz-trailer", &header(algorithm))])).unwrap();
        let trailers = headers(&[(&header(algorithm), &value)]);
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
    let code = |pairs: &[(&str, &str)]| {
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
