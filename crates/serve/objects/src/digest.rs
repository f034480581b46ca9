//! Digests of bodies: any set of them, computed in one pass.

use crate::lanes::{self, Stream};
use crate::md5::Md5;
use bytes::Bytes;
use crc_fast::CrcAlgorithm;
use sha2::Digest as _;

/// Algorithms of digests.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Algorithm {
    /// MD5.
    Md5,
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
    pub const ALL: [Self; 6] = [
        Self::Md5,
        Self::Crc32,
        Self::Crc32c,
        Self::Crc64Nvme,
        Self::Sha1,
        Self::Sha256,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Md5 => "MD5",
            Self::Crc32 => "CRC32",
            Self::Crc32c => "CRC32C",
            Self::Crc64Nvme => "CRC64NVME",
            Self::Sha1 => "SHA1",
            Self::Sha256 => "SHA256",
        }
    }

    /// Bytes of a value.
    pub const fn value_len(self) -> usize {
        match self {
            Self::Crc32 | Self::Crc32c => 4,
            Self::Crc64Nvme => 8,
            Self::Md5 => 16,
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }

    const fn crc(self) -> Option<CrcAlgorithm> {
        match self {
            Self::Crc32 => Some(CrcAlgorithm::Crc32IsoHdlc),
            Self::Crc32c => Some(CrcAlgorithm::Crc32Iscsi),
            Self::Crc64Nvme => Some(CrcAlgorithm::Crc64Nvme),
            Self::Md5 | Self::Sha1 | Self::Sha256 => None,
        }
    }

    /// The value of two pieces in sequence, from their values; `None` if the algorithm is no CRC.
    pub fn combine(self, first: &[u8], second: &[u8], second_len: u64) -> Option<Vec<u8>> {
        let algorithm = self.crc()?;
        if first.len() != self.value_len() || second.len() != self.value_len() {
            return None;
        }
        let number = |bytes: &[u8]| bytes.iter().fold(0u64, |n, b| n << 8 | u64::from(*b));
        let crc = crc_fast::checksum_combine(algorithm, number(first), number(second), second_len);
        Some(big_endian(crc, self.value_len()))
    }

    /// The value of `data`, big-endian for CRCs.
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
    Md5(Md5, Stream<'static>),
    Sha1(sha1::Sha1),
    Sha256(sha2::Sha256),
}

impl Running {
    fn new(algorithm: Algorithm) -> Self {
        match (algorithm.crc(), algorithm) {
            (Some(crc), _) => Self::Crc(Box::new(crc_fast::Digest::new(crc))),
            (None, Algorithm::Md5) => Self::Md5(Md5::new(), Stream::new(&lanes::MD5)),
            (None, Algorithm::Sha1) => Self::Sha1(sha1::Sha1::new()),
            (None, _) => Self::Sha256(sha2::Sha256::new()),
        }
    }

    fn update(&mut self, data: &[u8]) {
        match self {
            Self::Crc(digest) => digest.update(data),
            Self::Md5(digest, stream) => {
                stream.settle(&mut digest.state);
                digest.update(data);
            }
            Self::Sha1(digest) => digest.update(data),
            Self::Sha256(digest) => digest.update(data),
        }
    }

    fn finish(self, algorithm: Algorithm) -> Vec<u8> {
        match self {
            Self::Crc(digest) => big_endian(digest.finalize(), algorithm.value_len()),
            Self::Md5(mut digest, mut stream) => {
                stream.settle(&mut digest.state);
                digest.finish().to_vec()
            }
            Self::Sha1(digest) => digest.finalize().to_vec(),
            Self::Sha256(digest) => digest.finalize().to_vec(),
        }
    }
}

/// Computes any set of digests in one pass.
pub struct Digester {
    running: Vec<(Algorithm, Running)>,
    length: u64,
}

/// Results of a [`Digester`].
#[derive(Debug)]
pub struct Digests {
    values: Vec<(Algorithm, Vec<u8>)>,
    /// Number of bytes digested.
    pub length: u64,
}

impl Digester {
    /// Computes these digests; an algorithm that is named twice is computed once.
    pub fn new(algorithms: impl IntoIterator<Item = Algorithm>) -> Self {
        let mut running: Vec<(Algorithm, Running)> = Vec::new();
        for algorithm in algorithms {
            if running.iter().all(|(a, _)| *a != algorithm) {
                running.push((algorithm, Running::new(algorithm)));
            }
        }
        Self { running, length: 0 }
    }

    /// Adds bytes.
    pub fn update(&mut self, data: &[u8]) {
        for (_, running) in &mut self.running {
            running.update(data);
        }
        self.length += data.len() as u64;
    }

    /// Adds bytes while `work` runs, and returns its result. MD5, the slowest, is computed together with that of
    /// other bodies, perhaps later, and keeps `data` until then.
    pub fn update_beside<T>(&mut self, data: &Bytes, work: impl FnOnce() -> T) -> T {
        self.length += data.len() as u64;
        let mut md5 = None;
        for (_, running) in &mut self.running {
            match running {
                Running::Md5(digest, stream) => md5 = Some((digest, stream)),
                other => other.update(data),
            }
        }
        let Some((md5, stream)) = md5 else {
            return work();
        };
        if !md5.is_between_blocks() {
            stream.settle(&mut md5.state);
        }
        let blocks = data.slice_ref(md5.take_blocks(data));
        stream.beside(&mut md5.state, blocks, work)
    }

    /// The results.
    pub fn finish(self) -> Digests {
        let running = self.running.into_iter();
        Digests {
            values: running.map(|(a, r)| (a, r.finish(a))).collect(),
            length: self.length,
        }
    }
}

impl Digests {
    /// The value of one algorithm, if it was computed.
    pub fn value(&self, algorithm: Algorithm) -> Option<&[u8]> {
        let mut values = self.values.iter();
        let (_, value) = values.find(|(a, _)| *a == algorithm)?;
        Some(value)
    }

    /// The value in hexadecimal; empty if it was not computed.
    pub fn hex(&self, algorithm: Algorithm) -> String {
        hex(self.value(algorithm).unwrap_or_default())
    }
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

/// Parses exactly `N` bytes in hexadecimal.
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
