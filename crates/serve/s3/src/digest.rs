//! The digests of S3: MD5 (the ETag and Content-MD5) and the x-amz-checksum-* family, computed
//! while bytes pass and compared with what the client announced in headers or trailers.
//!
//! Invariant: data whose digest does not match what the client sent is never committed.

use crc_fast::CrcAlgorithm;
use http::HeaderMap;
use md5::Digest as _;
use s3s::{S3Error, S3Result, s3_error};

/// A member of the x-amz-checksum-* family.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Algorithm {
    /// CRC-32 (ISO-HDLC).
    Crc32,
    /// CRC-32C (Castagnoli).
    Crc32c,
    /// CRC-64/NVME.
    Crc64Nvme,
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Crc32,
        Self::Crc32c,
        Self::Crc64Nvme,
        Self::Sha1,
        Self::Sha256,
    ];

    /// The name in XML and headers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Crc32 => "CRC32",
            Self::Crc32c => "CRC32C",
            Self::Crc64Nvme => "CRC64NVME",
            Self::Sha1 => "SHA1",
            Self::Sha256 => "SHA256",
        }
    }

    /// The header or trailer that carries the value.
    pub const fn header(self) -> &'static str {
        match self {
            Self::Crc32 => "x-amz-checksum-crc32",
            Self::Crc32c => "x-amz-checksum-crc32c",
            Self::Crc64Nvme => "x-amz-checksum-crc64nvme",
            Self::Sha1 => "x-amz-checksum-sha1",
            Self::Sha256 => "x-amz-checksum-sha256",
        }
    }

    /// Bytes of a value.
    pub const fn len(self) -> usize {
        match self {
            Self::Crc32 | Self::Crc32c => 4,
            Self::Crc64Nvme => 8,
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }

    /// The algorithm of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|a| a.name().eq_ignore_ascii_case(name))
    }

    const fn crc(self) -> Option<CrcAlgorithm> {
        match self {
            Self::Crc32 => Some(CrcAlgorithm::Crc32IsoHdlc),
            Self::Crc32c => Some(CrcAlgorithm::Crc32Iscsi),
            Self::Crc64Nvme => Some(CrcAlgorithm::Crc64Nvme),
            Self::Sha1 | Self::Sha256 => None,
        }
    }

    /// The value of two stretches one after the other; `None` if the algorithm does not combine.
    pub fn combine(self, first: &[u8], second: &[u8], second_len: u64) -> Option<Vec<u8>> {
        let algorithm = self.crc()?;
        if first.len() != self.len() || second.len() != self.len() {
            return None;
        }
        let number = |bytes: &[u8]| bytes.iter().fold(0u64, |n, b| n << 8 | u64::from(*b));
        let crc = crc_fast::checksum_combine(algorithm, number(first), number(second), second_len);
        Some(big_endian(crc, self.len()))
    }

    /// The value of `data`.
    pub fn of(self, data: &[u8]) -> Vec<u8> {
        let mut running = Running::new(self);
        running.update(data);
        running.finish(self)
    }
}

fn big_endian(crc: u64, len: usize) -> Vec<u8> {
    crc.to_be_bytes()[8 - len..].to_vec()
}

enum Running {
    Crc(Box<crc_fast::Digest>),
    Sha1(sha1::Sha1),
    Sha256(sha2::Sha256),
}

impl Running {
    fn new(algorithm: Algorithm) -> Self {
        match (algorithm.crc(), algorithm) {
            (Some(crc), _) => Self::Crc(Box::new(crc_fast::Digest::new(crc))),
            (None, Algorithm::Sha1) => Self::Sha1(sha1::Sha1::new()),
            (None, _) => Self::Sha256(sha2::Sha256::new()),
        }
    }

    fn update(&mut self, data: &[u8]) {
        match self {
            Self::Crc(digest) => digest.update(data),
            Self::Sha1(digest) => digest.update(data),
            Self::Sha256(digest) => digest.update(data),
        }
    }

    fn finish(self, algorithm: Algorithm) -> Vec<u8> {
        match self {
            Self::Crc(digest) => big_endian(digest.finalize(), algorithm.len()),
            Self::Sha1(digest) => digest.finalize().to_vec(),
            Self::Sha256(digest) => digest.finalize().to_vec(),
        }
    }
}

/// Computes MD5 and any set of checksums in one pass.
pub struct Digester {
    md5: md5::Md5,
    running: Vec<(Algorithm, Running)>,
    length: u64,
}

/// What a [`Digester`] found.
#[derive(Debug)]
pub struct Digests {
    /// MD5 of the bytes.
    pub md5: [u8; 16],
    /// The checksums asked for.
    pub checksums: Vec<(Algorithm, Vec<u8>)>,
    /// How many bytes.
    pub length: u64,
}

impl Digester {
    /// MD5 and these.
    pub fn new(algorithms: impl IntoIterator<Item = Algorithm>) -> Self {
        let mut running: Vec<(Algorithm, Running)> = Vec::new();
        for algorithm in algorithms {
            if running.iter().all(|(a, _)| *a != algorithm) {
                running.push((algorithm, Running::new(algorithm)));
            }
        }
        Self {
            md5: md5::Md5::new(),
            running,
            length: 0,
        }
    }

    /// More bytes.
    pub fn update(&mut self, data: &[u8]) {
        self.md5.update(data);
        for (_, running) in &mut self.running {
            running.update(data);
        }
        self.length += data.len() as u64;
    }

    /// The results.
    pub fn finish(self) -> Digests {
        Digests {
            md5: self.md5.finalize().into(),
            checksums: self
                .running
                .into_iter()
                .map(|(a, r)| (a, r.finish(a)))
                .collect(),
            length: self.length,
        }
    }
}

impl Digests {
    /// The value by one algorithm.
    pub fn checksum(&self, algorithm: Algorithm) -> Option<&[u8]> {
        self.checksums
            .iter()
            .find(|(a, _)| *a == algorithm)
            .map(|(_, value)| value.as_slice())
    }
}

/// What a client announced about its body.
#[derive(Default, Clone, PartialEq, Eq, Debug)]
pub struct Announced {
    /// `Content-MD5`.
    pub md5: Option<[u8; 16]>,
    /// `x-amz-checksum-…`: at most one.
    pub checksum: Option<(Algorithm, Vec<u8>)>,
    /// The checksum that follows the body, by `x-amz-trailer`.
    pub trailer: Option<Algorithm>,
    /// A checksum to compute without a value to compare (`x-amz-sdk-checksum-algorithm`).
    pub wanted: Option<Algorithm>,
}

impl Announced {
    /// Reads `Content-MD5` alone.
    pub fn md5_of(headers: &HeaderMap) -> S3Result<Self> {
        let mut announced = Self::default();
        if let Some(value) = text(headers, "content-md5")? {
            let bytes = decode(value).and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
            let invalid = || s3_error!(InvalidDigest, "The Content-MD5 you specified was invalid");
            announced.md5 = Some(bytes.ok_or_else(invalid)?);
        }
        Ok(announced)
    }

    /// Reads a request's headers.
    pub fn of(headers: &HeaderMap) -> S3Result<Self> {
        let mut announced = Self::md5_of(headers)?;
        for algorithm in Algorithm::ALL {
            let Some(value) = text(headers, algorithm.header())? else {
                continue;
            };
            if announced.checksum.is_some() {
                return Err(s3_error!(
                    InvalidRequest,
                    "Expecting a single x-amz-checksum- header. Multiple checksum types are not \
                     allowed"
                ));
            }
            announced.checksum = Some((algorithm, parse_value(algorithm, value)?));
        }
        for names in headers.get_all("x-amz-trailer") {
            for name in names.to_str().unwrap_or_default().split(',') {
                let name = name.trim();
                let found = Algorithm::ALL
                    .into_iter()
                    .find(|a| name.eq_ignore_ascii_case(a.header()));
                let Some(algorithm) = found else {
                    return Err(s3_error!(
                        InvalidRequest,
                        "The value specified in the x-amz-trailer header is not supported"
                    ));
                };
                if announced.trailer.is_some_and(|other| other != algorithm)
                    || announced.checksum.is_some()
                {
                    return Err(s3_error!(
                        InvalidRequest,
                        "Expecting a single x-amz-checksum- header or trailer"
                    ));
                }
                announced.trailer = Some(algorithm);
            }
        }
        let wanted = match text(headers, "x-amz-checksum-algorithm")? {
            Some(name) => Some(name),
            None => text(headers, "x-amz-sdk-checksum-algorithm")?,
        };
        if let Some(name) = wanted {
            announced.wanted = Some(parse_name(name)?);
        }
        Ok(announced)
    }

    /// The checksum that the object keeps.
    pub fn kept(&self) -> Option<Algorithm> {
        self.checksum
            .as_ref()
            .map(|(a, _)| *a)
            .or(self.trailer)
            .or(self.wanted)
    }

    /// The checksums to compute.
    pub fn algorithms(&self) -> impl Iterator<Item = Algorithm> {
        self.kept().into_iter()
    }

    /// Compares what arrived with what was announced; `trailers` are those after the body.
    pub fn verify(&self, found: &Digests, trailers: Option<&HeaderMap>) -> S3Result<()> {
        if self.md5.is_some_and(|md5| md5 != found.md5) {
            return Err(s3_error!(
                BadDigest,
                "The Content-MD5 you specified did not match what we received"
            ));
        }
        if let Some((algorithm, value)) = &self.checksum {
            compare(*algorithm, value, found)?;
        }
        if let Some(algorithm) = self.trailer {
            let value = match trailers {
                Some(trailers) => text(trailers, algorithm.header())?,
                None => None,
            };
            let Some(value) = value else {
                return Err(crate::errors::missing_trailer());
            };
            compare(algorithm, &parse_value(algorithm, value)?, found)?;
        }
        Ok(())
    }
}

fn compare(algorithm: Algorithm, expected: &[u8], found: &Digests) -> S3Result<()> {
    if found.checksum(algorithm) == Some(expected) {
        return Ok(());
    }
    Err(s3_error!(
        BadDigest,
        "The {} you specified did not match the calculated checksum",
        algorithm.name()
    ))
}

/// Reads an algorithm's name.
pub fn parse_name(name: &str) -> S3Result<Algorithm> {
    Algorithm::from_name(name).ok_or_else(|| {
        s3_error!(
            InvalidRequest,
            "Checksum algorithm provided is unsupported: {name}"
        )
    })
}

/// Reads a checksum's base64.
pub fn parse_value(algorithm: Algorithm, value: &str) -> S3Result<Vec<u8>> {
    match decode(value) {
        Some(bytes) if bytes.len() == algorithm.len() => Ok(bytes),
        _ => Err(s3_error!(
            InvalidRequest,
            "Value for {} header is invalid",
            algorithm.header()
        )),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> S3Result<Option<&'a str>> {
    let mut values = headers.get_all(name).into_iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let invalid = || -> S3Error { s3_error!(InvalidRequest, "Header {name} is invalid") };
    if values.next().is_some() {
        return Err(invalid());
    }
    value
        .to_str()
        .map(|text| Some(text.trim()))
        .map_err(|_| invalid())
}

fn decode(text: &str) -> Option<Vec<u8>> {
    base64_simd::STANDARD.decode_to_vec(text).ok()
}

/// Base64 as in headers.
pub fn base64(bytes: &[u8]) -> String {
    base64_simd::STANDARD.encode_to_string(bytes)
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble & 15)]);
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(*byte)])
        .collect()
}

/// Reads exactly `N` bytes of hexadecimal.
pub fn parse_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let bytes = text.as_bytes();
    if bytes.len() != 2 * N {
        return None;
    }
    let mut out = [0; N];
    for (byte, pair) in out.iter_mut().zip(bytes.chunks(2)) {
        let nibble = |c: u8| {
            char::from(c)
                .to_digit(16)
                .and_then(|n| u8::try_from(n).ok())
        };
        *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
    }
    Some(out)
}

#[cfg(test)]
mod tests;
