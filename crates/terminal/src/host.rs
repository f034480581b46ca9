//! Checks of host names and addresses as users write them: an impossible one is refused before any look-up.

use std::net::{Ipv4Addr, SocketAddrV6};

/// Most bytes of a host name, and of one label between dots.
const NAME: usize = 253;
const LABEL: usize = 63;

/// Checks that a text can be an address `HOST:PORT`.
///
/// # Errors
/// The reason why it cannot.
pub fn check_address(text: &str) -> Result<(), &'static str> {
    let (host, port) = text.rsplit_once(':').ok_or("a port is missing")?;
    if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("the port is no number");
    }
    port.parse::<u16>().map_err(|_| "ports end at 65535")?;
    check_host(host)
}

/// Checks that a text can be a host: a name, an IPv4 address, or an IPv6 address in brackets.
///
/// # Errors
/// The reason why it cannot.
pub fn check_host(host: &str) -> Result<(), &'static str> {
    if host.starts_with('[') {
        // As the address is parsed later: an interface behind a percent sign is a number.
        let address = format!("{host}:0").parse::<SocketAddrV6>();
        return address.map(drop).map_err(|_| "no IPv6 address in brackets");
    }
    if host.contains(':') {
        return Err("an IPv6 address stands in brackets");
    }
    let name = host.strip_suffix('.').unwrap_or(host);
    let last = name.rsplit('.').next().unwrap_or_default();
    if last.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty() {
        let address = name.parse::<Ipv4Addr>();
        return address.map(drop).map_err(|_| "no IPv4 address");
    }
    let is_label = |label: &str| {
        let is_known = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        (1..=LABEL).contains(&label.len())
            && label.chars().all(is_known)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    match name.len() <= NAME && name.split('.').all(is_label) {
        true => Ok(()),
        false => Err("no name of a host"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_network_has_is_refused() {
        for good in [
            "127.0.0.1:9000",
            "[::1]:0",
            "[fe80::1%2]:80",
            "localhost:65535",
            "a-b.example.com.:1",
            "zone_store:9000",
            "1.example:80",
        ] {
            assert_eq!(check_address(good), Ok(()), "{good}");
        }
        let long = format!("{}:1", "a".repeat(64));
        for (bad, why) in [
            ("300.1.2.3:99999", "ports end"),
            ("300.1.2.3:80", "IPv4"),
            ("1.2.3:80", "IPv4"),
            ("[::zz]:80", "IPv6"),
            ("[::1:80", "IPv6"),
            ("[fe80::1%eth0]:80", "IPv6"),
            ("::1:80", "brackets"),
            ("localhost", "missing"),
            ("localhost:", "number"),
            ("localhost:+1", "number"),
            (":80", "name"),
            ("no such host:1", "name"),
            ("a..b:1", "name"),
            ("-a:1", "name"),
            (&long, "name"),
        ] {
            let found = check_address(bad).unwrap_err();
            assert!(found.contains(why), "{bad}: {found}");
        }
    }
}
