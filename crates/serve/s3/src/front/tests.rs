use super::*;
use crate::lifecycle_rules::Recent;
use crate::test_bucket::bucket;
use objects::Blocking;
use runtime::Runtime;
use s3s::S3Error;
use s3s::service::S3ServiceBuilder;

fn announced(method: Method, uri: &str) -> Option<Announced> {
    let request = Request::builder()
        .method(method)
        .uri(uri)
        .header("x-amz-checksum-crc32", "AAAAAA==")
        .body(())
        .unwrap();
    document(&request.into_parts().0, false).unwrap()
}

/// The entry of a server of a store in memory.
fn front() -> Front {
    let (store, locks) = bucket(Runtime::seeded(1));
    let gateway = Gateway {
        store,
        blocking: Blocking::new(1),
        region: "us-east-1".to_owned(),
        scheme: "http",
        random: Arc::new(|_: &mut [u8]| {}),
        clock: Arc::new(|| 0),
        locks,
        rules: Recent::default(),
        rules_changed: Arc::default(),
    };
    Front::new(
        S3ServiceBuilder::new(gateway.clone()).build(),
        &gateway,
        &Limits::default(),
        Hosts::new(None),
        ClientQuotas::default(),
        [0; 4],
        None,
    )
}

#[test]
fn metadata_is_checked_before_it_is_decoded() {
    let front = front();
    let check = |uri: &str, metadata: Option<&str>| {
        let mut request = Request::builder().method(Method::PUT).uri(uri);
        request = request.header("host", "127.0.0.1");
        if let Some(metadata) = metadata {
            request = request.header("x-amz-meta-a", metadata);
        }
        let mut head = request.body(()).unwrap().into_parts().0;
        match front.check(&mut head) {
            Ok(_) => Ok(()),
            Err(Refusal::Error(error)) => Err(error.code().as_str().to_owned()),
            Err(Refusal::Region) => Err("region".to_owned()),
        }
    };
    let (invalid, other) = (
        Err("InvalidArgument".to_owned()),
        Err("NotImplemented".to_owned()),
    );
    assert_eq!(check("/b/k", Some("=?UTF-8?Q?a?=")), Ok(()));
    assert_eq!(check("/b/k", Some("=?=")), invalid);
    assert_eq!(check("/b/k", Some("a =?UTF-8?Q?a?=")), other);
    // In a presigned URL.
    assert_eq!(check("/b/k?x-amz-meta-a=a", None), Ok(()));
    assert_eq!(check("/b/k?x-amz-meta-a=%3D%3F%3D", None), invalid);
}

#[test]
fn secrets_are_marked_wherever_they_came() {
    let request = Request::builder()
        .uri("/b/k?X-Amz-Security-Token=hidden&x-amz-acl=private")
        .header("authorization", "hidden")
        .header("x-amz-server-side-encryption-customer-key", "hidden")
        .body(())
        .unwrap();
    let mut head = request.into_parts().0;
    head::take_headers_of_query(&mut head).unwrap();
    hide_secrets(&mut head);
    let shown = format!("{:?}", head.headers);
    assert!(
        shown.contains("private") && !shown.contains("hidden"),
        "{shown}"
    );
}

#[test]
fn documents_are_told_from_data() {
    assert_eq!(announced(Method::PUT, "/b/k"), None);
    assert_eq!(announced(Method::GET, "/b"), None);
    assert_eq!(announced(Method::PUT, "/b/k?partNumber=1&uploadId=x"), None);
    assert_eq!(announced(Method::PUT, "/b/k?x-id=PutObject"), None);
    let tags = announced(Method::PUT, "/b/k?x-id=PutObjectTagging&tagging");
    assert!(tags.unwrap().checksum.is_some());
    assert!(announced(Method::PUT, "/b").unwrap().checksum.is_some());
    assert!(announced(Method::PUT, "/b/").unwrap().checksum.is_some());
    assert!(
        announced(Method::POST, "/b?delete")
            .unwrap()
            .checksum
            .is_some()
    );
    assert!(
        announced(Method::POST, "/b/k?uploadId=x")
            .unwrap()
            .checksum
            .is_none()
    );
}

#[test]
fn a_key_may_be_slashes() {
    let is_document = |uri: &str, in_bucket: bool| {
        let request = Request::builder().method(Method::PUT).uri(uri);
        let (head, ()) = request.body(()).unwrap().into_parts();
        document(&head, in_bucket).unwrap().is_some()
    };
    for (uri, in_bucket, expected) in [
        ("/", true, true),
        ("/k", true, false),
        ("//", true, false),
        ("//k", true, false),
        ("/b/", false, true),
        ("/b//", false, false),
    ] {
        assert_eq!(is_document(uri, in_bucket), expected, "{uri} {in_bucket}");
    }
}

#[test]
fn digests_of_a_body_that_is_not_there_are_of_nothing() {
    let check = |method: Method, name: &str, value: &str, copies: bool| {
        let mut request = Request::builder().method(method).uri("/b/k");
        request = request.header(name, value);
        if copies {
            request = request.header("x-amz-copy-source", "/b/from");
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        let code = |error: S3Error| error.code().as_str().to_owned();
        compare_with_nothing(&head).map_err(code)
    };
    let (wrong, malformed) = (Err("BadDigest".to_owned()), Err("InvalidDigest".to_owned()));
    for (method, copies) in [(Method::DELETE, false), (Method::PUT, true)] {
        let with = |name, value| check(method.clone(), name, value, copies);
        assert_eq!(with("x-amz-checksum-crc32", "AAAAAA=="), Ok(()));
        assert_eq!(with("x-amz-checksum-crc32", "AAAAAQ=="), wrong);
        assert_eq!(with("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg=="), Ok(()));
        assert_eq!(with("content-md5", "AAAAAAAAAAAAAAAAAAAAAA=="), wrong);
        assert_eq!(with("content-md5", "x"), malformed);
    }
    // Of an object's data, who writes it finds out.
    let data = check(Method::PUT, "x-amz-checksum-crc32", "AAAAAQ==", false);
    assert_eq!(data, Ok(()));
}
