//! The sections of a configuration file, with their fields, defaults and descriptions.

use super::field::{Field, Parsed, Secret, Shown, section};
use s3::{Buckets, Quota, Right};
use serde::Deserialize;
use status::Access;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use store::{Compression, Hours, Pace, Watermarks};
use terminal::Size;
use traces::{Address, Ratio};

section! {
    /// What is served, and how: the options of `zonestore serve`.
    Serve {
        drive: PathBuf, "path", "none: it has to be said", "\"/dev/sdb\"", "The drive";
        s3: String, "HOST:PORT", "127.0.0.1:9000", "\"0.0.0.0:9000\"", "Where to listen; port 0 takes a free one";
        s3_domain: String, "host name", "none", "\"s3.example.com\"", "The server's name in requests, if buckets are names below it";
        exit_on_failure: bool, "true or false", "false", "true", "End with exit code 11 when nothing can be written any more";
        create: bool, "true or false", "false", "true", "Make the drive if there is none, and a store on it if it is empty";
        compression: Parsed<Compression>, "mode[:codec]", "none", "\"passive\"", "none, passive, aggressive or force; :lz4 may follow";
        clean_pace: Parsed<Pace>, "pace", "full", "\"latency:20ms\"", "How fast the cleaner goes while nobody waits for a zone";
        clean_hours: Parsed<Hours>, "FROM-TO", "always", "\"22:00-06:00\"", "When it begins by itself before zones are urgently needed";
        clean_free_zones: Parsed<Watermarks>, "MIN..LOW, zones or %", "1..2", "\"5%..20%\"", "Free zones below which cleaning is urgent (MIN) and begins (LOW)";
        scrub_every: Parsed<ScrubEvery>, "time, or never", "30d", "\"14d\"", "How often all data is read before somebody needs it; all metadata is once a day";
        scrub_pace: Parsed<Pace>, "pace", "16MiB/s", "\"latency:20ms\"", "How fast that goes";
        cache: Parsed<Size>, "size in bytes", "an eighth of memory on a device, 0 on a file", "\"4GiB\"", "Memory for objects that were read";
        status_page: Parsed<Access>, "off, open or keys", "keys", "\"open\"", "Who may see the status page and the metrics below /-/";
    }
}

section! {
    /// Geometry of a drive that `create` makes.
    Shape {
        profile: String, "name", "hm-smr-14tb", "\"zns-zn540\"", "The drive it is modelled on: `zonestore drive profiles`";
        size: Parsed<Size>, "size in bytes", "the profile's", "\"64GiB\"", "How large it is, in whole zones";
        zone_size: Parsed<Size>, "size in bytes", "the profile's", "\"256MiB\"", "From one zone to the next";
        zone_capacity: Parsed<Size>, "size in bytes", "the profile's", "\"192MiB\"", "What can be written of a zone";
        conventional: u32, "zones", "the profile's", "8", "How many conventional zones it begins with";
        max_open: u32, "zones", "the profile's", "128", "Most zones open at once; 0 for no limit";
        max_active: u32, "zones", "the profile's", "128", "Most zones active at once; 0 for no limit";
    }
}

section! {
    /// Files for TLS (https). Both are reloaded when they change.
    TlsFiles {
        certificate: PathBuf, "path of a PEM file", "none: no TLS", "\"server.pem\"", "The certificate, with those that vouch for it behind it";
        key: PathBuf, "path of a PEM file", "none: no TLS", "\"server.key\"", "Its private key, which only its owner may read";
    }
}

section! {
    /// Log files, which are reopened after SIGHUP.
    Log {
        format: Parsed<LogFormat>, "text or json", "text", "\"json\"", "How lines look, in all of them";
        file: PathBuf, "path", "standard error", "\"/var/log/zonestore/server.log\"", "What the server does; RUST_LOG says how much";
        access: PathBuf, "path", "none: no access log", "\"/var/log/zonestore/access.log\"", "A line for each request";
        audit: PathBuf, "path", "with the server's log", "\"/var/log/zonestore/audit.log\"", "A line for each administrative act, and for keys that are refused";
    }
}

section! {
    /// Destination of traces: spans of requests.
    Trace {
        to: Parsed<Address>, "http(s)://HOST:PORT", "none: no traces", "\"http://127.0.0.1:4318\"", "The collector, by OTLP over HTTP; /v1/traces if it has no path";
        ratio: Parsed<Ratio>, "from 0 to 1", "1", "0.1", "The part of all requests that is traced; what a client traces is, too";
    }
}

section! {
    /// Quotas of each key (`[limits.key]`) and of each address (`[limits.address]`). Clients that exceed one are
    /// answered 503, with the time to wait.
    Limit {
        requests: u64, "requests a second, at least 1", "no limit", "500", "Requests";
        bytes: Parsed<Size>, "bytes a second", "no limit", "\"100MiB\"", "Bodies in both directions together, on average";
        connections: u64, "connections, at least 1", "no limit", "64", "Connections that have asked for something";
    }
}

section! {
    /// A key. Without any, the key beside the drive (DRIVE.keys), or that of the environment, has all rights.
    KeyEntry {
        access_key: String, "text", "none: it has to be said", "\"backup\"", "Its name";
        secret_key: Secret, "text", "none", "\"at least eight characters\"", "Its secret; only its owner may read the configuration then";
        secret_file: PathBuf, "path", "none", "\"backup.secret\"", "Instead: a file with the secret, which only its owner may read";
        admin: bool, "true or false", "false", "false", "Whether it may do everything in every bucket";
        rights: Vec<RightsEntry>, "list of tables", "none", "[{ bucket = \"logs-*\", may = [\"read\", \"list\"] }]", "What it may do otherwise; see below";
    }
}

section! {
    /// One entry of a key's `rights`.
    RightsEntry {
        bucket: Parsed<Buckets>, "name, or its beginning and a star", "none: it has to be said", "\"photos\"", "In which buckets";
        may: Vec<Parsed<Right>>, "list of read, write, list, admin", "none: it has to be said", "[\"read\", \"list\"]", "What may be done there";
    }
}

impl Shown for RightsEntry {
    fn shown(&self) -> String {
        let fields = self.shown().into_iter();
        let fields = fields.filter_map(|(name, value)| Some(format!("{name} = {}", value?)));
        format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "))
    }
}

/// How often all data is scrubbed; `None` ("never") turns off the scrub of metadata, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScrubEvery(pub Option<Duration>);

impl FromStr for ScrubEvery {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "never" {
            return Ok(Self(None));
        }
        let every: terminal::Duration = text.parse()?;
        match every.0 {
            0 => Err("write a time such as 30d, or never".to_owned()),
            seconds => Ok(Self(Some(Duration::from_secs(seconds)))),
        }
    }
}

/// Format of log lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

impl FromStr for LogFormat {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err("text or json is meant"),
        }
    }
}

impl From<&Limit> for Quota {
    fn from(limit: &Limit) -> Self {
        Self {
            requests: limit.requests,
            bytes: limit.bytes.as_ref().map(|bytes| bytes.value.0),
            connections: limit.connections,
        }
    }
}

/// Section `[limits]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Limits of each key.
    pub key: Limit,
    /// Limits of each address.
    pub address: Limit,
}

/// A whole configuration file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct File {
    /// `[serve]`.
    pub serve: Serve,
    /// `[drive]`.
    pub drive: Shape,
    /// `[tls]`.
    pub tls: TlsFiles,
    /// `[log]`.
    pub log: Log,
    /// `[trace]`.
    pub trace: Trace,
    /// `[limits]`.
    pub limits: Limits,
    /// `[[key]]`.
    pub key: Vec<KeyEntry>,
}

/// Description of a section.
pub struct Section {
    /// Its path, such as `limits.key`.
    pub path: &'static str,
    /// Its purpose.
    pub what: &'static str,
    /// Its fields.
    pub fields: &'static [Field],
}

/// All sections, in the order in which they are explained.
pub const SECTIONS: &[Section] = &[
    Section {
        path: "serve",
        what: "What is served, and how. Options of `zonestore serve` win over these.",
        fields: Serve::FIELDS,
    },
    Section {
        path: "drive",
        what: "The shape of a drive that `serve.create` makes.",
        fields: Shape::FIELDS,
    },
    Section {
        path: "tls",
        what: "Private connections (https); at least TLS 1.2. Without these two, HTTP is spoken.",
        fields: TlsFiles::FIELDS,
    },
    Section {
        path: "log",
        what: "Logs. SIGHUP has their files opened anew.",
        fields: Log::FIELDS,
    },
    Section {
        path: "trace",
        what: "Traces: what each request did and how long that took, for OpenTelemetry.",
        fields: Trace::FIELDS,
    },
    Section {
        path: "limits.key",
        what: "What each key may ask for; who asks for more is told to slow down (503).",
        fields: Limit::FIELDS,
    },
    Section {
        path: "limits.address",
        what: "What each address may ask for; an IPv6 network (/64) is one.",
        fields: Limit::FIELDS,
    },
    Section {
        path: "key",
        what: "A key; as often as there are keys. Without any, the key beside the drive may do everything.",
        fields: KeyEntry::FIELDS,
    },
    Section {
        path: "key.rights",
        what: "What a key may do in some buckets: read, write (put, copy to, remove), list, admin (make and remove the bucket, set what it keeps, weaken locks).",
        fields: RightsEntry::FIELDS,
    },
];
