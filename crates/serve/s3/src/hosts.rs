//! Host names: which are the server's own, and which name a bucket.
//!
//! `/key` at `Host: bucket.domain` is the same resource as `/bucket/key` at `Host: domain`. If a name were taken for
//! the wrong kind, a request would list, create or delete another resource than the client means. So names with dots
//! are only served below the domain that the server was given.

use http::HeaderMap;
use http::header::HOST;
use s3s::host::{S3Host, VirtualHost};
use s3s::{S3Result, s3_error};
use std::net::{IpAddr, SocketAddr};

/// The server's host names.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    /// The domain below which names are those of buckets.
    domain: Option<String>,
}

impl Hosts {
    /// Buckets are names below `domain`, which is taken in lower case and without dots at its ends.
    pub fn new(domain: Option<&str>) -> Self {
        let clean = |domain: &str| domain.trim_matches('.').to_ascii_lowercase();
        Self {
            domain: domain.map(clean).filter(|domain| !domain.is_empty()),
        }
    }

    /// The bucket that a `Host` header names, if any; addresses and names without a dot are the server's own.
    pub fn bucket<'a>(&'a self, host: &'a str) -> S3Result<Option<&'a str>> {
        if host.parse::<SocketAddr>().is_ok() || host.parse::<IpAddr>().is_ok() {
            return Ok(None);
        }
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let name = name.trim_end_matches('.');
        let address = name.trim_start_matches('[').trim_end_matches(']');
        if !name.contains('.') || address.parse::<IpAddr>().is_ok() {
            return Ok(None);
        }
        // All names below it are this host (RFC 6761).
        for domain in self.domain.as_deref().into_iter().chain(["localhost"]) {
            if name.eq_ignore_ascii_case(domain) {
                return Ok(None);
            }
            let Some(at) = name.len().checked_sub(domain.len()) else {
                continue;
            };
            if let (Some(front), Some(end)) = (name.get(..at), name.get(at..))
                && end.eq_ignore_ascii_case(domain)
                && let Some(bucket) = front.strip_suffix('.')
            {
                return Ok(Some(bucket));
            }
        }
        Err(s3_error!(
            InvalidRequest,
            "{name} may be the server's name or that of a bucket below it; start the server with \
             --s3-domain and the part of it that is the server's"
        ))
    }

    /// Whether the `Host` header of a request names a bucket.
    pub fn names_bucket(&self, headers: &HeaderMap) -> S3Result<bool> {
        let host = headers.get(HOST);
        let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
        Ok(self.bucket(host)?.is_some())
    }
}

impl S3Host for Hosts {
    fn parse_host_header<'a>(&'a self, host: &'a str) -> S3Result<VirtualHost<'a>> {
        let virtual_host = VirtualHost::new(host);
        Ok(match self.bucket(host)? {
            Some(bucket) => virtual_host.with_bucket(bucket),
            None => virtual_host,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_servers_or_a_buckets() {
        let hosts = Hosts::new(Some("S3.example.com."));
        let bucket = |host| hosts.bucket(host).map_err(|error| error.code().clone());
        for own in [
            "127.0.0.1:9000",
            "127.0.0.1",
            "[::1]:9000",
            "[::1]",
            "localhost:9000",
            "storage",
            "s3.example.com",
            "S3.Example.COM.:80",
        ] {
            assert_eq!(bucket(own), Ok(None), "{own}");
        }
        assert_eq!(bucket("a.b.s3.example.com:80"), Ok(Some("a.b")));
        assert_eq!(bucket("photos.localhost:9000"), Ok(Some("photos")));
        for other in ["bucket.example.com", "xs3.example.com", "é.b"] {
            assert!(bucket(other).is_err(), "{other}");
        }
        assert!(Hosts::new(None).bucket("photos.example.com").is_err());
    }
}
