//! Command lines of s3cmd for a served drive, shown to the user.

use crate::keys::{self, Keys, KeysError, Source};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use terminal::{shell_text, shell_word};

/// Resolves `HOST:PORT` to its first address.
///
/// # Errors
/// The text is not of that form, or the host is unknown.
pub fn resolve(text: &str) -> io::Result<SocketAddr> {
    let none = || io::Error::other("no such host");
    text.to_socket_addrs()?.next().ok_or_else(none)
}

impl Keys {
    /// The command `s3cmd` with these keys for an endpoint at `address`, with TLS or without, quoted for a shell. The secret
    /// is no argument, which all users of the machine could read. Settings in a key file are changed to that address.
    ///
    /// # Errors
    /// The file cannot be changed.
    pub fn client(&self, address: SocketAddr, tls: bool) -> Result<String, KeysError> {
        let host = reachable(address).to_string();
        Ok(match &self.source {
            Source::File { path, .. } => {
                keys::point_at(path, &host, tls)?;
                format!("s3cmd -c {}", shell_word(path))
            }
            Source::Environment | Source::Configuration { .. } => format!(
                "AWS_ACCESS_KEY={} AWS_SECRET_KEY=\"${}\" s3cmd -c /dev/null --{} --host={host} --host-bucket={host}",
                shell_text(self.access_key.as_bytes()),
                keys::SECRET_KEY_VARIABLE,
                if tls { "ssl" } else { "no-ssl" },
            ),
        })
    }
}

impl Keys {
    /// Lines that tell the user the source of the keys, and commands to try with `client`; with `secrets` also the
    /// keys themselves, if they are in the file beside the drive.
    pub fn in_words(&self, client: &str, secrets: bool) -> Vec<String> {
        let mut lines = match &self.source {
            Source::Environment => vec!["Keys: from the environment".to_owned()],
            Source::File { path, new } => {
                let made = if *new { "made just now, " } else { "" };
                vec![format!("Keys: {made}in {}", path.display())]
            }
            Source::Configuration { path, count } => {
                vec![format!("Keys: {count}, from {}", path.display())]
            }
        };
        if let (true, Source::File { .. }, Some(secret_key)) =
            (secrets, &self.source, &self.secret_key)
        {
            lines.push(format!("  access key  {}", self.access_key));
            lines.push(format!("  secret key  {secret_key}"));
        }
        let secret = match &self.source {
            Source::File { .. } => String::new(),
            Source::Environment | Source::Configuration { .. } => {
                format!(", with the secret in {}", keys::SECRET_KEY_VARIABLE)
            }
        };
        lines.push(format!("Try, in another terminal{secret}:"));
        let tried = [
            "mb s3://first",
            "put README.md s3://first/",
            "ls s3://first",
        ];
        lines.extend(tried.map(|command| format!("  {client} {command}")));
        lines
    }
}

/// An address at which a client on this machine reaches the server: a wildcard address becomes that of the loopback.
pub fn reachable(address: SocketAddr) -> SocketAddr {
    let mut reachable = address;
    if address.ip().is_unspecified() {
        reachable.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    reachable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_no_argument_of_a_client() {
        let keys = Keys {
            access_key: "me".to_owned(),
            secret_key: Some("a secret of mine".to_owned()),
            source: Source::Environment,
        };
        let command = keys.client("127.0.0.1:9000".parse().unwrap(), false);
        // The file of settings that s3cmd takes by itself may have other keys, which would count.
        assert_eq!(
            command.unwrap(),
            "AWS_ACCESS_KEY=me AWS_SECRET_KEY=\"$ZONESTORE_SECRET_KEY\" s3cmd -c /dev/null --no-ssl --host=127.0.0.1:9000 \
             --host-bucket=127.0.0.1:9000"
        );
    }

    #[test]
    fn clients_are_sent_to_an_address_they_can_reach() {
        let reach = |text: &str| reachable(text.parse().unwrap()).to_string();
        assert_eq!(reach("0.0.0.0:9000"), "127.0.0.1:9000");
        assert_eq!(reach("[::]:1"), "[::1]:1");
        assert_eq!(reach("10.0.0.1:80"), "10.0.0.1:80");
    }
}
