use super::*;

#[test]
fn sockets_are_the_owners_and_replaced_only_when_dead() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let address = Address::Unix(path.clone());
    let listener = Listener::bind(&address).unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let kind = Listener::bind(&address).unwrap_err().kind();
    assert_eq!(kind, std::io::ErrorKind::AddrInUse);
    let (stop, mut stopper) = UnixStream::pair().unwrap();
    let mut client = UnixStream::connect(&path).unwrap();
    // The first client: the second attempt found the lock, and did not come as far as the socket.
    let mut stream = listener.accept(stop.as_fd()).unwrap().unwrap();
    client.write_all(b"x").unwrap();
    stream.read_exact(&mut [0]).unwrap();
    stopper.write_all(b"x").unwrap();
    assert!(listener.accept(stop.as_fd()).unwrap().is_none());
    drop(listener);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    // Left by a process that was killed.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    drop(Listener::bind(&address).unwrap());
    std::fs::write(&path, "mine").unwrap();
    let kind = Listener::bind(&address).unwrap_err().kind();
    assert_eq!(kind, std::io::ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
}

#[test]
fn a_uri_has_any_path_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a b&c%#\u{e9}~");
    let listener = Listener::bind(&Address::Unix(path)).unwrap();
    let uri = listener.to_string();
    assert!(uri.starts_with("nbd+unix:///?socket=/"), "{uri}");
    assert!(uri.ends_with("/a%20b%26c%25%23%C3%A9~"), "{uri}");
}

/// One whose host has died would have its place for ever.
#[test]
fn clients_at_a_port_are_asked_whether_they_are_alive() {
    let listener = Listener::bind(&Address::Tcp("127.0.0.1:0".to_owned())).unwrap();
    let address = listener.to_string();
    let _client = std::net::TcpStream::connect(&address["nbd://".len()..]).unwrap();
    let (stop, _stopper) = UnixStream::pair().unwrap();
    let stream = listener.accept(stop.as_fd()).unwrap().unwrap();
    let Stream::Tcp(stream) = stream else {
        panic!("{stream:?}");
    };
    assert!(rustix::net::sockopt::socket_keepalive(&stream).unwrap());
}

#[test]
fn addresses() {
    let tcp = |text: &str| Address::parse(text) == Ok(Address::Tcp(text.to_owned()));
    assert!(tcp("127.0.0.1:10809") && tcp("[::1]:0") && tcp("host:1"));
    for path in ["d.sock", "/tmp/a:1", "./a:1"] {
        assert_eq!(
            Address::parse(path),
            Ok(Address::Unix(path.into())),
            "{path}"
        );
    }
    for wrong in ["", "a:b", "a:99999", ":x", ":1", "a:"] {
        assert!(Address::parse(wrong).is_err(), "{wrong}");
    }
    let listener = Listener::bind(&Address::parse("127.0.0.1:0").unwrap()).unwrap();
    assert!(listener.to_string().starts_with("nbd://127.0.0.1:"));
}
