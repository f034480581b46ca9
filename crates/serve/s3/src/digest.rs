//! Digests that clients announce in headers or trailers, compared with those of the data received.
//!
//! Invariant: data whose digest does not match what the client sent is never committed.

use http::HeaderMap;
use objects::digest::{Algorithm, Digests};
use s3s::{S3Error, S3Result, s3_error};

/// The algorithms of `x-amz-checksum-*`.
pub const CHECKSUMS: [Algorithm; 5] = [
    Algorithm::Crc32,
    Algorithm::Crc32c,
    Algorithm::Crc64Nvme,
    Algorithm::Sha1,
    Algorithm::Sha256,
];

/// The header or trailer that carries a checksum.
pub fn header(algorithm: Algorithm) -> String {
    format!("x-amz-checksum-{}", algorithm.name().to_ascii_lowercase())
}

/// The checksum algorithm of this name, in any case.
pub fn from_name(name: &str) -> Option<Algorithm> {
    let mut checksums = CHECKSUMS.into_iter();
    checksums.find(|algorithm| algorithm.name().eq_ignore_ascii_case(name))
}

/// Digests that a request announces.
#[derive(Default, Clone, PartialEq, Eq, Debug)]
pub struct Announced {
    /// `Content-MD5`.
    pub md5: Option<[u8; 16]>,
    /// `x-amz-checksum-…`: at most one.
    pub checksum: Option<(Algorithm, Vec<u8>)>,
    /// Algorithm of the checksum that follows the body, by `x-amz-trailer`.
    pub trailer: Option<Algorithm>,
    /// Algorithm of a checksum to compute without a value to compare with (`x-amz-sdk-checksum-algorithm`).
    pub wanted: Option<Algorithm>,
}

impl Announced {
    /// Reads only `Content-MD5`.
    pub fn md5_of(headers: &HeaderMap) -> S3Result<Self> {
        let mut announced = Self::default();
        if let Some(value) = text(headers, "content-md5")? {
            let bytes = decode(value).and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
            let invalid = || s3_error!(InvalidDigest, "The Content-MD5 you specified was invalid");
            announced.md5 = Some(bytes.ok_or_else(invalid)?);
        }
        Ok(announced)
    }

    /// Reads all of a request's digest headers.
    pub fn of(headers: &HeaderMap) -> S3Result<Self> {
        let mut announced = Self::md5_of(headers)?;
        for algorithm in CHECKSUMS {
            let Some(value) = text(headers, &header(algorithm))? else {
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
                let found = CHECKSUMS
                    .into_iter()
                    .find(|a| name.eq_ignore_ascii_case(&header(*a)));
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

    /// Algorithm of the checksum that the object keeps.
    pub fn kept(&self) -> Option<Algorithm> {
        self.checksum
            .as_ref()
            .map(|(a, _)| *a)
            .or(self.trailer)
            .or(self.wanted)
    }

    /// The digests to compute.
    pub fn algorithms(&self) -> impl Iterator<Item = Algorithm> {
        let md5 = self.md5.map(|_| Algorithm::Md5);
        md5.into_iter().chain(self.kept())
    }

    /// Compares the digests of the data with those announced; `trailers` follow the body.
    pub fn verify(&self, found: &Digests, trailers: Option<&HeaderMap>) -> S3Result<()> {
        if let Some(md5) = &self.md5
            && found.value(Algorithm::Md5) != Some(md5)
        {
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
                Some(trailers) => text(trailers, &header(algorithm))?,
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
    if found.value(algorithm) == Some(expected) {
        return Ok(());
    }
    Err(s3_error!(
        BadDigest,
        "The {} you specified did not match the calculated checksum",
        algorithm.name()
    ))
}

/// Parses an algorithm's name, or refuses it.
pub fn parse_name(name: &str) -> S3Result<Algorithm> {
    from_name(name).ok_or_else(|| {
        s3_error!(
            InvalidRequest,
            "Checksum algorithm provided is unsupported: {name}"
        )
    })
}

/// Parses a checksum in base64, and checks its length.
pub fn parse_value(algorithm: Algorithm, value: &str) -> S3Result<Vec<u8>> {
    match decode(value) {
        Some(bytes) if bytes.len() == algorithm.value_len() => Ok(bytes),
        _ => Err(s3_error!(
            InvalidRequest,
            "Value for {} header is invalid",
            header(algorithm)
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

#[cfg(test)]
mod tests;
