//! Addresses of collectors.

use http::Uri;
use std::str::FromStr;

/// Where OTLP over HTTP takes spans if the address has no path.
const PATH: &str = "/v1/traces";

/// The address of a collector.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Address(String);

impl Address {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Address {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const NONE: &str =
            "write the address of a collector: http://HOST:4318 or https://HOST/PATH";
        let uri: Uri = text.parse().map_err(|_| NONE)?;
        let is_known = matches!(uri.scheme_str(), Some("http" | "https"));
        let host = uri.host().filter(|host| is_known && !host.is_empty());
        let host = host.ok_or(NONE)?;
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let own = authority.rsplit_once('@').map_or(authority, |(_, own)| own);
        match own == host {
            true => terminal::check_host(host)?,
            false => terminal::check_address(own)?,
        }
        Ok(Self(match uri.path() {
            "" | "/" => format!("{}{PATH}", text.trim_end_matches('/')),
            _ => text.to_owned(),
        }))
    }
}

/// The text of an address as it may be shown and logged: dots stand for a user name and password, which are sent as basic
/// authentication.
pub fn without_user(text: &str) -> String {
    let split = text.split_once("://").and_then(|(scheme, rest)| {
        let authority = rest.split(['/', '?', '#']).next()?;
        let (user, _) = authority.rsplit_once('@')?;
        Some((scheme, &rest[user.len()..]))
    });
    match split {
        Some((scheme, at_host)) => format!("{scheme}://…{at_host}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_path_gets_that_of_the_protocol() {
        let address = |text: &str| text.parse::<Address>().ok().map(|address| address.0);
        for text in ["http://there:4318", "http://there:4318/"] {
            assert_eq!(
                address(text).as_deref(),
                Some("http://there:4318/v1/traces")
            );
        }
        let whole = "https://there/otlp";
        assert_eq!(address(whole).as_deref(), Some(whole));
        for none in [
            "",
            "there",
            "there:4318",
            "ftp://there",
            "http://",
            "http://a b",
        ] {
            assert_eq!(address(none), None, "{none}");
        }
    }

    #[test]
    fn a_password_is_not_shown() {
        for (text, shown) in [
            (
                "http://me:se@cret@there:4318/a@b",
                "http://…@there:4318/a@b",
            ),
            ("https://me@[::1]", "https://…@[::1]"),
            ("http://there/a@b", "http://there/a@b"),
            ("64GiB", "64GiB"),
        ] {
            assert_eq!(without_user(text), shown);
        }
    }
}
