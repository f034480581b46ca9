//! TLS 1.2 and 1.3 with a certificate and its key, which can be replaced while the server runs.

use crate::small_file;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use thiserror::Error;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};
use tokio_rustls::server::TlsStream;

/// Type of the TLS record that a connection begins with: a handshake.
const HANDSHAKE: u8 = 22;
/// Answer to clients that speak HTTP where TLS is expected.
const PLAIN_HTTP: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\
    content-type: text/plain\r\nconnection: close\r\ncontent-length: 60\r\n\r\n\
    This server speaks TLS here: write https:// in the address.\n";

/// Why TLS cannot be set up.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file has no PEM item of the expected kind.
    #[error("{}: no {what} in PEM form: {source}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// The expected kind.
        what: &'static str,
        /// The parser's error.
        source: pem::Error,
    },
    /// The certificate and the key do not belong together.
    #[error("{} and {} do not fit together: {source}", certificate.display(), key.display())]
    Pair {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// The library's error.
        source: rustls::Error,
    },
}

impl TlsError {
    /// Whether a file could not be read at all.
    pub fn is_unread(&self) -> bool {
        matches!(
            self,
            Self::Pem {
                source: pem::Error::Io(_),
                ..
            }
        )
    }
}

/// Certificate and key of a server; clones share them.
#[derive(Clone)]
pub struct Tls(Arc<RwLock<TlsAcceptor>>);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// Loads the certificate from a file, followed by its intermediate certificates, and its key from another.
    ///
    /// # Errors
    /// The files cannot be read, or do not belong together.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        Ok(Self(Arc::new(RwLock::new(acceptor(certificate, key)?))))
    }

    /// Uses the certificate and the key of `other` for new connections from now on.
    pub fn replace(&self, other: &Self) {
        let new = other.acceptor();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = new;
    }

    fn acceptor(&self) -> TlsAcceptor {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Does the server's handshake. A client that speaks HTTP gets an answer that says so.
    ///
    /// # Errors
    /// The handshake failed, or took longer than `patience`.
    pub async fn accept(
        &self,
        mut stream: TcpStream,
        patience: Duration,
    ) -> io::Result<TlsStream<TcpStream>> {
        let accept = async {
            let mut first = [0];
            if stream.peek(&mut first).await? == 1 && first[0] != HANDSHAKE {
                stream.write_all(PLAIN_HTTP).await?;
                stream.shutdown().await?;
                // Reads until the client closes or the time is over: the rest of its request may be on the way, and
                // closing now could cost it the answer.
                let mut rest = [0; 1024];
                while tokio::io::AsyncReadExt::read(&mut stream, &mut rest).await? > 0 {}
                return Err(io::Error::other("a client does not speak TLS"));
            }
            self.acceptor().accept(stream).await
        };
        let accepted = tokio::time::timeout(patience, accept).await;
        accepted.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor, TlsError> {
    let no = |path: &Path, what| {
        let path = path.to_owned();
        move |source| TlsError::Pem { path, what, source }
    };
    let read = |path: &Path| small_file::read(path).map_err(pem::Error::Io);
    let certificates = read(certificate)
        .and_then(|text| CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>())
        .and_then(|found| match found.is_empty() {
            true => Err(pem::Error::NoItemsFound),
            false => Ok(found),
        })
        .map_err(no(certificate, "certificate"))?;
    let private = read(key)
        .and_then(|text| PrivateKeyDer::from_pem_slice(&text))
        .map_err(no(key, "private key"))?;
    let pair = |source| TlsError::Pair {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
        source,
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .map_err(pair)?
        .with_no_client_auth()
        .with_single_cert(certificates, private)
        .map_err(pair)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
