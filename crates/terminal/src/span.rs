//! Ranges of indices or bytes, as users write them.

use std::str::FromStr;
use zone::Bytes as Size;

/// `A..B`, `A..`, `..B` or `N`: indices or byte offsets from A up to and without B.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Start of the range.
    pub start: u64,
    /// End of the range (exclusive); `None` for no end.
    pub end: Option<u64>,
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            text.parse::<Size>()
                .map(|size| size.0)
                .map_err(|_| "write A..B (without B), A.., ..B or one number".to_owned())
        };
        let span = match text.split_once("..") {
            Some((start, end)) => Self {
                start: if start.is_empty() { 0 } else { number(start)? },
                end: if end.is_empty() {
                    None
                } else {
                    Some(number(end)?)
                },
            },
            None => {
                let one = number(text)?;
                Self {
                    start: one,
                    end: one.checked_add(1),
                }
            }
        };
        match span.end {
            Some(end) if end < span.start => Err("the end lies before the start".to_owned()),
            _ => Ok(span),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans() {
        let span = |text: &str| text.parse::<Span>();
        assert_eq!(
            span("2..5"),
            Ok(Span {
                start: 2,
                end: Some(5)
            })
        );
        assert_eq!(
            span("2.."),
            Ok(Span {
                start: 2,
                end: None
            })
        );
        assert_eq!(
            span("..4K"),
            Ok(Span {
                start: 0,
                end: Some(4096)
            })
        );
        assert_eq!(
            span("7"),
            Ok(Span {
                start: 7,
                end: Some(8)
            })
        );
        assert!(span("5..2").is_err());
        assert!(span("x").is_err());
    }
}
