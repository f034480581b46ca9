use super::*;
use http::Request;

/// What becomes of a request that was taken for `operation`: its name, or an error's code.
fn admitted(
    operation: &str,
    method: &str,
    uri: &str,
    headers: &[(&str, &str)],
) -> Result<&'static str, String> {
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let (head, ()) = request.body(()).unwrap().into_parts();
    let path = s3s::path::parse_path_style(head.uri.path()).unwrap();
    let query = head.uri.query().unwrap_or_default();
    admit(
        operation,
        &head.method,
        &path,
        query,
        &head.headers,
        "zonestore",
    )
    .map(|operation| operation.name)
    .map_err(|error| error.code().as_str().to_owned())
}

/// What a method does to a resource if nothing else is said.
fn plain(method: &str, resource: Resource) -> &'static str {
    match (method, resource) {
        ("PUT", Resource::Bucket) => "CreateBucket",
        ("PUT", _) => "PutObject",
        ("DELETE", Resource::Bucket) => "DeleteBucket",
        ("DELETE", _) => "DeleteObject",
        ("HEAD", Resource::Bucket) => "HeadBucket",
        ("HEAD", _) => "HeadObject",
        (_, Resource::Bucket) => "ListObjects",
        _ => "GetObject",
    }
}

#[test]
fn no_subresource_falls_through_to_the_plain_operation() {
    let refused = Err("NotImplemented".to_owned());
    for (_, _, name, _) in SUBRESOURCES {
        for (resource, path) in [
            (Resource::Bucket, "/bucket"),
            (Resource::Object, "/bucket/key"),
        ] {
            for method in ["PUT", "DELETE", "GET", "HEAD", "POST"] {
                for query in [
                    name.to_string(),
                    format!("{name}="),
                    format!("{name}=x"),
                    format!("{}=x", name.to_ascii_uppercase()),
                    format!("%{:02x}{}", name.as_bytes()[0], &name[1..]),
                    format!("x-id=PutObject&{name}"),
                ] {
                    let uri = format!("{path}?{query}");
                    let found = admitted(plain(method, resource), method, &uri, &[]);
                    assert_eq!(found, refused, "{method} {uri}");
                }
            }
        }
    }
}

#[test]
fn a_header_without_a_value_is_not_none() {
    let refused = Err("InvalidArgument".to_owned());
    for (operation, method, name) in [
        ("PutObject", "PUT", "if-match"),
        ("PutObject", "PUT", "x-amz-acl"),
        ("DeleteObject", "DELETE", "if-match"),
        ("GetObject", "GET", "if-none-match"),
        ("CopyObject", "PUT", "x-amz-copy-source-if-match"),
    ] {
        let found = admitted(operation, method, "/bucket/key", &[(name, "")]);
        assert_eq!(found, refused, "{operation} {name}");
    }
    let found = admitted("PutObject", "PUT", "/bucket/key", &[("x-amz-meta-a", "")]);
    assert_eq!(found, Ok("PutObject"));
}

#[test]
fn what_selects_an_operation_is_all_of_it_that_is_known() {
    for (method, resource, name, operation) in SUBRESOURCES {
        let path = if *resource == Resource::Bucket {
            "/bucket"
        } else {
            "/bucket/key"
        };
        let found = admitted(operation, method, &format!("{path}?{name}"), &[]);
        let there = OPERATIONS.iter().any(|known| known.name == *operation);
        let refused = Err("NotImplemented".to_owned());
        assert_eq!(
            found,
            if there {
                Ok(*operation)
            } else {
                refused.clone()
            },
            "{operation}"
        );
        let both = format!("{path}?{name}&acl");
        assert_eq!(admitted(operation, method, &both, &[]), refused, "{both}");
    }
}

#[test]
fn names_are_judged_by_whether_they_may_be_meant() {
    let put = |query: &str| admitted("PutObject", "PUT", &format!("/bucket/key?{query}"), &[]);
    let refused = Err("NotImplemented".to_owned());
    for ignored in ["x-id=PutObject", "x-id", "nonce=1&other=2", "X-Amz-Date=1"] {
        assert_eq!(put(ignored), Ok("PutObject"), "{ignored}");
    }
    for meant in [
        "tomorrow",
        "tomorrow=",
        "partNumber=1",
        "PARTNUMBER=1",
        "uploadid=a",
        "versionId=1",
        "annotationName=a",
    ] {
        assert_eq!(put(meant), refused, "{meant}");
    }
    let twice = "/bucket/key?versionId=null&versionId=old";
    let found = admitted("DeleteObject", "DELETE", twice, &[]);
    assert_eq!(found, Err("InvalidArgument".to_owned()));
}

#[test]
fn headers_that_change_the_meaning_are_known_or_refused() {
    let put = |headers: &[(&str, &str)]| admitted("PutObject", "PUT", "/bucket/key", headers);
    let known = [
        ("content-type", "text/plain"),
        ("if-none-match", "*"),
        ("x-amz-meta-a", "1"),
        ("x-amz-meta-b", "2"),
        ("x-amz-expected-bucket-owner", "zonestore"),
        // By the SDK for C++, with every request.
        ("x-amz-api-version", "2006-03-01"),
    ];
    assert_eq!(put(&known), Ok("PutObject"));
    for name in [
        "x-amz-rename-source",
        "x-amz-tagging-directive",
        "x-amz-copy-source",
        "x-amz-of-tomorrow",
        "if-modified-since",
    ] {
        assert_eq!(put(&[(name, "x")]), Err("NotImplemented".to_owned()));
    }
    let delete = |name: &str| admitted("DeleteObject", "DELETE", "/b-1/k", &[(name, "x")]);
    for name in [
        "x-amz-mfa",
        "x-amz-if-match-size",
        "x-amz-if-match-last-modified-time",
        "if-none-match",
    ] {
        assert_eq!(delete(name), Err("NotImplemented".to_owned()), "{name}");
    }
    let code = |text: &str| Err(text.to_owned());
    let range = [("content-range", "bytes 0-1/9")];
    assert_eq!(put(&range), code("InvalidRequest"));
    let twice = [("x-amz-acl", "private"), ("x-amz-acl", "public-read")];
    assert_eq!(put(&twice), code("InvalidArgument"));
    let twice = [("x-amz-meta-a", "1"), ("x-amz-meta-a", "2")];
    assert_eq!(put(&twice), code("InvalidArgument"));
    let twice = [("x-amz-trailer", "a"), ("x-amz-trailer", "b")];
    assert_eq!(put(&twice), Ok("PutObject"));
    let stranger = [("x-amz-expected-bucket-owner", "111122223333")];
    assert_eq!(put(&stranger), code("AccessDenied"));
    let source = [("x-amz-source-expected-bucket-owner", "111122223333")];
    assert_eq!(
        admitted("CopyObject", "PUT", "/bucket/key", &source),
        code("AccessDenied")
    );
    // A read may answer more than it has to.
    let since = [("if-modified-since", "x")];
    assert_eq!(
        admitted("ListObjects", "GET", "/bucket", &since),
        Ok("ListObjects")
    );
}

/// `docs/s3.md` says what each operation needs.
#[test]
fn the_documentation_has_the_right_of_every_operation() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/s3.md");
    let document = std::fs::read_to_string(path).unwrap();
    let row = |operation: &Operation| {
        let right = match operation.need {
            Need::Key => "any key".to_owned(),
            Need::Any => "any right".to_owned(),
            Need::One(right) => format!("`{right}`"),
        };
        format!("| {} | {right} |\n", operation.name)
    };
    let rows: String = OPERATIONS.iter().map(row).collect();
    let table = format!("| operation | right on the bucket |\n|---|---|\n{rows}\n");
    assert!(document.contains(&table), "{path} has to have:\n{table}");
}
