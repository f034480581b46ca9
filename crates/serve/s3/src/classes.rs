//! What was asked, in classes: the method, what it was about, and the answer's status. The log gets a
//! line with the first answer of a class, the tenth, the hundredth and so on: it says what clients do,
//! and its length does not grow with how much they do.

use http::{Method, Request, StatusCode};
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// What a request asks, without anything that only its sender may know.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Asked {
    /// The method; those that S3 does not have are one.
    pub method: &'static str,
    /// The service, a bucket or an object.
    pub about: &'static str,
}

impl Asked {
    /// Of a request as it came.
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

/// How many answers of each class there were.
#[derive(Default)]
pub struct Classes(Mutex<BTreeMap<(Asked, StatusCode), u64>>);

impl Classes {
    /// Counts an answer: how many of its class there are now, if that is worth a line.
    pub fn count(&self, asked: Asked, status: StatusCode) -> Option<u64> {
        let mut counts = self.0.lock();
        let count = counts.entry((asked, status)).or_default();
        *count += 1;
        10u64
            .checked_pow(count.ilog10())
            .filter(|power| power == count)
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

    #[test]
    fn the_first_is_told_and_every_tenfold() {
        let classes = Classes::default();
        let get = Asked {
            method: "GET",
            about: "object",
        };
        let told: Vec<u64> = (0..1234)
            .filter_map(|_| classes.count(get, StatusCode::OK))
            .collect();
        assert_eq!(told, [1, 10, 100, 1000]);
        assert_eq!(classes.count(get, StatusCode::NOT_FOUND), Some(1));
        let put = Asked {
            method: "PUT",
            about: "object",
        };
        assert_eq!(classes.count(put, StatusCode::OK), Some(1));
    }
}
