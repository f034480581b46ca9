//! What the pages of all listings are asked and answer alike.

use crate::{listing, xml};
use s3s::dto::*;
use s3s::{S3Result, s3_error};

/// The most items on a page.
pub const MAX_PAGE: usize = 1000;

/// How names are written in a listing.
pub struct Encode(bool);

impl Encode {
    /// By the request's `encoding-type`.
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

    /// Or as all of these names need it: XML has no place for some characters.
    pub fn for_names<'a>(self, mut names: impl Iterator<Item = &'a str>) -> Self {
        Self(self.0 || names.any(|name| !xml::can_have(name)))
    }

    /// What the client is told of it.
    pub fn kind(&self) -> Option<EncodingType> {
        self.0.then(|| EncodingType::from_static(EncodingType::URL))
    }

    /// One name.
    pub fn text(&self, text: String) -> String {
        if self.0 {
            listing::url_encode(&text)
        } else {
            text
        }
    }

    /// One name, if there is one.
    pub fn option(&self, text: Option<String>) -> Option<String> {
        text.map(|text| self.text(text))
    }

    /// Common prefixes.
    pub fn prefixes(&self, prefixes: Vec<String>) -> CommonPrefixList {
        prefixes
            .into_iter()
            .map(|p| CommonPrefix {
                prefix: Some(self.text(p)),
            })
            .collect()
    }
}

/// The size of a page from what the client asks for.
pub fn page_size(asked: Option<i32>) -> S3Result<usize> {
    match asked {
        None => Ok(MAX_PAGE),
        Some(n) => usize::try_from(n)
            .map(|n| n.min(MAX_PAGE))
            .map_err(|_| s3_error!(InvalidArgument, "A page must not have a negative size")),
    }
}

/// Reads a continuation token.
pub fn decode_token(token: &str) -> S3Result<String> {
    listing::decode_token(token).ok_or_else(|| {
        s3_error!(
            InvalidArgument,
            "The continuation token provided is incorrect"
        )
    })
}
