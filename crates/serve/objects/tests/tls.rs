//! Private connections: what a client meets, and certificates that are exchanged.
#![allow(clippy::unwrap_used)]

use objects::{Tls, TlsError};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const PATIENCE: Duration = Duration::from_secs(60);

struct Folder(tempfile::TempDir);

impl Folder {
    /// A certificate and its key.
    fn certify(&self, name: &str) -> (PathBuf, PathBuf) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let path = |end: &str| self.0.path().join(format!("{name}.{end}"));
        fs::write(path("pem"), made.cert.pem()).unwrap();
        fs::write(path("key"), made.signing_key.serialize_pem()).unwrap();
        (path("pem"), path("key"))
    }
}

/// What a client gets that sends these bytes and closes its side, and whether it was let in.
async fn meet(tls: &Tls, bytes: &[u8], patience: Duration) -> (Vec<u8>, bool) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap())
        .await
        .unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    let asked = async {
        client.write_all(bytes).await.unwrap();
        if !bytes.is_empty() {
            client.shutdown().await.unwrap();
        }
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer).await;
        answer
    };
    let (answer, accepted) = tokio::join!(asked, tls.accept(stream, patience));
    (answer, accepted.is_ok())
}

#[tokio::test]
async fn who_speaks_http_is_told_so_and_who_says_nothing_is_not_waited_for() {
    let folder = Folder(tempfile::tempdir().unwrap());
    let (certificate, key) = folder.certify("a");
    let tls = Tls::load(&certificate, &key).unwrap();
    let (answer, accepted) = meet(&tls, b"GET / HTTP/1.1\r\n\r\n", PATIENCE).await;
    assert!(answer.starts_with(b"HTTP/1.1 400 ") && !accepted);
    let (answer, accepted) = meet(&tls, b"\x16\x03\x01\x00\x01?", PATIENCE).await;
    assert!(!answer.starts_with(b"HTTP") && !accepted);
    let (answer, accepted) = meet(&tls, b"", Duration::from_millis(50)).await;
    assert!(answer.is_empty() && !accepted);
}

#[test]
fn files_that_are_none_or_of_two_pairs_are_refused() {
    let folder = Folder(tempfile::tempdir().unwrap());
    let (a, b) = (folder.certify("a"), folder.certify("b"));
    assert!(matches!(Tls::load(&a.0, &b.1), Err(TlsError::Pair { .. })));
    assert!(matches!(
        Tls::load(&a.1, &a.1),
        Err(TlsError::Pem {
            what: "certificate",
            ..
        })
    ));
    assert!(matches!(
        Tls::load(&a.0, &a.0),
        Err(TlsError::Pem {
            what: "private key",
            ..
        })
    ));
    let none = folder.0.path().join("none");
    let error = Tls::load(&none, &a.1).unwrap_err().to_string();
    assert!(error.contains("none"), "{error}");
}
