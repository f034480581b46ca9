//! Parameters that all listings share: page size, encoding of names, continuation tokens.

use crate::{listing, xml};
use s3s::dto::*;
use s3s::{S3Result, s3_error};

/// The most items on a page.
pub const MAX_PAGE: usize = 1000;

/// Encoding of names in a listing: as they are, or percent-encoded.
pub struct Encode(bool);

impl Encode {
    /// The encoding that the request's `encoding-type` asks for.
    pub fn of(encoding: Option<&EncodingType>) -> S3Result<Self> {
        match encoding.map(|encoding| encoding.as_str()) {
            None => Ok(Self(false)),
            Some(EncodingType::URL) => Ok(Self(true)),
            Some(_) => Err(s3_error!(
                InvalidArgument,
                "Invalid Encoding Method specified in Request"
            )),
        }
    }

    /// Percent-encodes all names if one of these needs it: XML excludes some characters.
    pub fn for_names<'a>(self, mut names: impl Iterator<Item = &'a str>) -> Self {
        Self(self.0 || names.any(|name| !xml::can_have(name)))
    }

    /// The answer's `encoding-type`.
    pub fn kind(&self) -> Option<EncodingType> {
        self.0.then(|| EncodingType::from_static(EncodingType::URL))
    }

    /// Encodes a name.
    pub fn text(&self, text: String) -> String {
        if self.0 {
            listing::url_encode(&text)
        } else {
            text
        }
    }

    /// Encodes a name, if there is one.
    pub fn option(&self, text: Option<String>) -> Option<String> {
        text.map(|text| self.text(text))
    }

    /// Encodes common prefixes.
    pub fn prefixes(&self, prefixes: Vec<String>) -> CommonPrefixList {
        prefixes
            .into_iter()
            .map(|p| CommonPrefix {
                prefix: Some(self.text(p)),
            })
            .collect()
    }
}

/// The page size for a requested one: 1000 by default and at most.
pub fn page_size(asked: Option<i32>) -> S3Result<usize> {
    match asked {
        None => Ok(MAX_PAGE),
        Some(n) => usize::try_from(n)
            .map(|n| n.min(MAX_PAGE))
            .map_err(|_| s3_error!(InvalidArgument, "A page must not have a negative size")),
    }
}

/// Decodes a continuation token.
pub fn decode_token(token: &str) -> S3Result<String> {
    listing::decode_token(token).ok_or_else(|| {
        s3_error!(
            InvalidArgument,
            "The continuation token provided is incorrect"
        )
    })
}
