//! A server on a drive in memory, and a client that signs by hand.
#![allow(dead_code, clippy::unwrap_used)]

use device::changed::{Change, Changed};
use device::{MemoryDrive, ZonedDevice, profile};
use hmac::{Hmac, KeyInit, Mac};
use kv_rocksdb::RocksDb;
use s3::{Config, Credentials, Key, Keyring, Limits, Rights, Server};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use store::{MkfsOptions, MountOptions, Store};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use zone::{ByteOffset, ZoneResult};

/// A read that returns these bytes returns them changed, once [`spoil`] was called.
pub const MARK: [u8; 32] = *b"\xfe\xedthis is what gets damaged...\xfe\xed";

/// Marked data is damaged on its way back.
#[derive(Default)]
pub struct Spoilt(AtomicBool);

pub type Damaged = Changed<MemoryDrive, Spoilt>;

pub fn drive(bytes: u64) -> Arc<Damaged> {
    let geometry = profile::by_name("test-small")
        .unwrap()
        .geometry(bytes, None)
        .unwrap();
    Arc::new(Changed {
        drive: MemoryDrive::new(geometry).unwrap(),
        change: Spoilt::default(),
    })
}

pub fn spoil(drive: &Damaged) {
    drive.change.0.store(true, Ordering::SeqCst);
}

impl Change<MemoryDrive> for Spoilt {
    fn read(&self, drive: &MemoryDrive, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        drive.read(at, buffer)?;
        if self.0.load(Ordering::SeqCst)
            && let Some(found) = buffer.windows(MARK.len()).position(|window| window == MARK)
        {
            buffer[found] ^= 1;
        }
        Ok(())
    }
}

pub fn mount(drive: &Arc<Damaged>, new: bool) -> Store {
    if new {
        Store::mkfs(
            drive.clone(),
            &MkfsOptions {
                uuid: [1; 16],
                ..MkfsOptions::new(RocksDb)
            },
        )
        .unwrap();
    }
    Store::mount(drive.clone(), MountOptions::new(RocksDb)).unwrap()
}

/// Limits that a machine which stands still for a while does not reach.
pub fn patient() -> Limits {
    let long = Duration::from_mins(10);
    Limits {
        turn_timeout: long,
        header_timeout: long,
        idle_timeout: long,
        busy_patience: long,
        shutdown_timeout: long,
        ..Limits::default()
    }
}

pub fn config() -> Config {
    let key = Key {
        credentials: Credentials::new("key", "secret"),
        rights: Rights::Admin,
    };
    Config {
        limits: patient(),
        ..Config::new(([127, 0, 0, 1], 0).into(), Keyring::new([key]))
    }
}

/// A server that runs until [`stop`](Self::stop).
pub struct Running {
    pub address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

pub fn serve(store: &Store, config: Config) -> Running {
    let server = Server::bind(config, store.clone()).unwrap();
    let (stop, stopped) = oneshot::channel();
    let address = server.local_addr();
    let task = tokio::spawn(async move {
        server
            .run(async { stopped.await.unwrap_or_default() })
            .await
            .unwrap();
    });
    Running {
        address,
        stop,
        task,
    }
}

impl Running {
    pub async fn stop(self) {
        self.stop.send(()).unwrap();
        self.task.await.unwrap();
    }

    /// The head of a signed request.
    pub fn head(&self, method: &str, path: &str, query: &str, length: usize) -> String {
        self.head_with(method, path, query, length, &[])
    }

    /// The same with more headers, which come behind the others in order.
    pub fn head_with(
        &self,
        method: &str,
        path: &str,
        query: &str,
        length: usize,
        more: &[(&str, &str)],
    ) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let time = amz_time(now.as_secs());
        let scope = format!("{}/us-east-1/s3/aws4_request", &time[..8]);
        let host = self.address.to_string();
        let payload = "UNSIGNED-PAYLOAD";
        let mut headers = vec![
            ("host", host.as_str()),
            ("x-amz-content-sha256", payload),
            ("x-amz-date", &time),
        ];
        headers.extend(more);
        headers.sort();
        let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let lines = |separator: &str, end: &str| -> String {
            let line = |(name, value): &(&str, &str)| format!("{name}{separator}{value}{end}");
            headers.iter().map(line).collect()
        };
        let canonical = format!(
            "{method}\n{path}\n{query}\n{}\n{names}\n{payload}",
            lines(":", "\n")
        );
        let mut key = sign(b"AWS4secret", &time[..8]);
        for part in ["us-east-1", "s3", "aws4_request"] {
            key = sign(&key, part);
        }
        let hash = hex(&Sha256::digest(canonical.as_bytes()));
        let signature = hex(&sign(
            &key,
            &format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{hash}"),
        ));
        let target = if query.is_empty() {
            path.to_owned()
        } else {
            format!("{path}?{query}")
        };
        format!(
            "{method} {target} HTTP/1.1\r\n{}content-length: {length}\r\n\
             authorization: AWS4-HMAC-SHA256 Credential=key/{scope}, SignedHeaders={names}, \
             Signature={signature}\r\n\r\n",
            lines(": ", "\r\n")
        )
    }

    pub async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends a request on a connection of its own and reads the answer.
    pub async fn request(&self, method: &str, path: &str, query: &str, body: &[u8]) -> Answer {
        let mut connection = self.connect().await;
        let head = self.head(method, path, query, body.len());
        // At once: a body that comes later is a slow one.
        let request = [head.as_bytes(), body].concat();
        connection.write_all(&request).await.unwrap();
        answer(&mut connection).await
    }

    /// Begins a put, and returns when the server asks for its body: it has its turn, and stopping waits for it.
    pub async fn begin_put(&self, path: &str, length: usize) -> TcpStream {
        let mut connection = self.connect().await;
        let head = expecting(&self.head("PUT", path, "", length));
        connection.write_all(head.as_bytes()).await.unwrap();
        let mut said = [0; 25];
        connection.read_exact(&mut said).await.unwrap();
        assert_eq!(&said, b"HTTP/1.1 100 Continue\r\n\r\n");
        connection
    }

    pub async fn put(&self, path: &str, body: &[u8]) -> Answer {
        self.request("PUT", path, "", body).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.request("GET", path, "", b"").await
    }
}

/// The head of a request whose client waits to be asked for the body.
pub fn expecting(head: &str) -> String {
    head.replace("\r\n\r\n", "\r\nexpect: 100-continue\r\n\r\n")
}

/// An answer, as far as it came.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
    /// Whether the body is as long as its head said.
    pub whole: bool,
}

impl Answer {
    pub fn code(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        let code = text
            .split("<Code>")
            .nth(1)
            .and_then(|rest| rest.split('<').next());
        code.unwrap_or_default().to_owned()
    }
}

/// Reads one answer.
pub async fn answer(connection: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    let head = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        let n = connection.read(&mut buffer).await.unwrap_or(0);
        assert!(n > 0, "no answer: {:?}", String::from_utf8_lossy(&bytes));
        bytes.extend_from_slice(&buffer[..n]);
    };
    let text = String::from_utf8(bytes[..head].to_vec()).unwrap();
    let mut lines = text.lines();
    let status = lines
        .next()
        .unwrap()
        .split(' ')
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers
        .get("content-length")
        .map_or(0, |length| length.parse().unwrap());
    let mut body = bytes[head..].to_vec();
    while body.len() < length {
        let n = connection.read(&mut buffer).await.unwrap_or(0);
        if n == 0 {
            break;
        }
        body.extend_from_slice(&buffer[..n]);
    }
    let whole = body.len() == length;
    Answer {
        status,
        headers,
        body,
        whole,
    }
}

fn sign(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `YYYYMMDDTHHMMSSZ`.
fn amz_time(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (mut year, mut left) = (1970, days);
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    while left >= 365 + u64::from(leap(year)) {
        left -= 365 + u64::from(leap(year));
        year += 1;
    }
    let mut month = 1;
    for days in [
        31,
        28 + u64::from(leap(year)),
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ] {
        if left < days {
            break;
        }
        left -= days;
        month += 1;
    }
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!(
        "{year:04}{month:02}{:02}T{hour:02}{minute:02}{second:02}Z",
        left + 1
    )
}
