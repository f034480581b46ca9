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
    /// Class of a request, before it is authenticated.
    pub fn of<B>(request: &Request<B>) -> Self {
        let method = match *request.method() {
            Method::GET => "GET",
            Method::HEAD => "HEAD",
            Method::PUT => "PUT",
            Method::POST => "POST",
            Method::DELETE => "DELETE",
            Method::OPTIONS => "OPTIONS",
            _ => "other",
        };
        let about = match request.uri().path().trim_start_matches('/').split_once('/') {
            Some((_, key)) if !key.is_empty() => "object",
            None if request.uri().path().trim_start_matches('/').is_empty() => "service",
            _ => "bucket",
        };
        Self { method, about }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: &str, uri: &str) -> (&'static str, &'static str) {
        let request = Request::builder().method(method).uri(uri);
        let asked = Asked::of(&request.body(()).unwrap());
        (asked.method, asked.about)
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
