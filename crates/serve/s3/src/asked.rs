//! Classes of requests, by which the log counts them: method and kind of resource.

use http::{Method, Request};

/// Class of a request, without anything that is private to its sender.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Asked {
    /// The method; `other` for those that S3 does not have.
    pub method: &'static str,
    /// Kind of resource: `service`, `bucket` or `object`.
    pub about: &'static str,
}

impl Asked {
    /// Class of a request, before it is authenticated; its host may name the bucket that it is `in_bucket`.
    pub fn of<B>(request: &Request<B>, in_bucket: bool) -> Self {
        let method = match *request.method() {
            Method::GET => "GET",
            Method::HEAD => "HEAD",
            Method::PUT => "PUT",
            Method::POST => "POST",
            Method::DELETE => "DELETE",
            Method::OPTIONS => "OPTIONS",
            _ => "other",
        };
        let path = request.uri().path().trim_start_matches('/');
        let key = match in_bucket {
            true => path,
            false => path.split_once('/').map_or("", |(_, key)| key),
        };
        let about = match (key, path) {
            ("", "") if !in_bucket => "service",
            ("", _) => "bucket",
            _ => "object",
        };
        Self { method, about }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: &str, uri: &str) -> (&'static str, &'static str) {
        let request = Request::builder().method(method).uri(uri);
        let asked = Asked::of(&request.body(()).unwrap(), false);
        (asked.method, asked.about)
    }

    #[test]
    fn a_path_below_a_host_that_names_a_bucket_is_a_key() {
        let about = |path: &str| {
            let request = Request::builder().uri(path).body(()).unwrap();
            Asked::of(&request, true).about
        };
        assert_eq!(about("/?list-type=2"), "bucket");
        assert_eq!(about("/key"), "object");
        assert_eq!(about("/a/b"), "object");
    }

    #[test]
    fn a_request_is_of_one_class() {
        assert_eq!(asked("GET", "/"), ("GET", "service"));
        assert_eq!(asked("PUT", "/bucket?acl"), ("PUT", "bucket"));
        assert_eq!(asked("GET", "/bucket/"), ("GET", "bucket"));
        assert_eq!(
            asked("GET", "http://host:1/bucket/a/b?x=/"),
            ("GET", "object")
        );
        assert_eq!(asked("BREW", "/bucket/key"), ("other", "object"));
    }
}
