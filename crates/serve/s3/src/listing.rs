//! One page of a listing: pure, given a function that seeks.
//!
//! Keys that share a prefix up to the delimiter become one common prefix, and the listing jumps
//! over all of them with one seek: what a page costs depends on what it shows, not on how many
//! keys lie below its common prefixes.

/// What to list.
#[derive(Clone, Debug, Default)]
pub struct Query<'a> {
    /// Only keys that begin with this.
    pub prefix: &'a str,
    /// Roll keys up at this; empty for none.
    pub delimiter: &'a str,
    /// Only items after this one, and none below it if it is a common prefix or lies in one.
    pub after: &'a str,
    /// At most this many items.
    pub limit: usize,
}

/// A page of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// Keys on the page.
    pub entries: Vec<T>,
    /// Common prefixes on the page.
    pub prefixes: Vec<String>,
    /// The last item, if more follow.
    pub next: Option<String>,
}

impl<T> Default for Page<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            prefixes: Vec::new(),
            next: None,
        }
    }
}

impl<T: Keyed> Page<T> {
    /// All keys and prefixes on the page.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let keys = self.entries.iter().map(Keyed::key);
        keys.chain(self.prefixes.iter().map(String::as_str))
            .chain(self.next.as_deref())
    }
}

/// An entry of a listing.
pub trait Keyed {
    /// The key.
    fn key(&self) -> &str;

    /// Its unique position in the listing; positions are in order of keys.
    fn place(&self) -> &str {
        self.key()
    }
}

/// Bounds on the number of entries per seek.
const BATCH: std::ops::RangeInclusive<usize> = 16..=1000;

/// Lists one page. `seek(from, n)` gives at most `n` entries in byte order from `from` (inclusive)
/// on whose keys begin with the query's prefix; fewer only at the end.
pub fn page<T: Keyed, E>(
    query: &Query<'_>,
    seek: impl FnMut(&str, usize) -> Result<Vec<T>, E>,
) -> Result<Page<T>, E> {
    match start(query) {
        Some(from) => page_from(query, from, seek),
        None => Ok(Page::default()),
    }
}

/// Lists the page that begins at the place `from`; [`Query::after`] is ignored.
pub fn page_from<T: Keyed, E>(
    query: &Query<'_>,
    mut from: String,
    mut seek: impl FnMut(&str, usize) -> Result<Vec<T>, E>,
) -> Result<Page<T>, E> {
    let mut page = Page::default();
    if query.limit == 0 {
        return Ok(page);
    }
    let mut last = String::new();
    // One more than the limit tells whether the page is the last one. Where keys roll up, most of
    // a big batch would be thrown away, so batches start small and grow while keys come.
    let all = query.limit.saturating_add(1).min(*BATCH.end());
    let mut batch = if query.delimiter.is_empty() {
        all
    } else {
        all.min(*BATCH.start())
    };
    loop {
        let found = seek(&from, batch)?;
        let at_end = found.len() < batch;
        let mut jump = None;
        let mut rolled_up: Option<String> = None;
        let mut last_place = String::new();
        for entry in found {
            if rolled_up
                .as_deref()
                .is_some_and(|prefix| entry.key().starts_with(prefix))
            {
                continue;
            }
            jump = None;
            rolled_up = None;
            if page.entries.len() + page.prefixes.len() == query.limit {
                page.next = Some(last);
                return Ok(page);
            }
            match common_prefix(query, entry.key()) {
                Some(prefix) => {
                    last = prefix.to_owned();
                    jump = Some(successor_of_prefix(prefix));
                    rolled_up = Some(last.clone());
                    page.prefixes.push(last.clone());
                }
                None => {
                    last.clear();
                    last.push_str(entry.key());
                    last_place.clear();
                    last_place.push_str(entry.place());
                    page.entries.push(entry);
                }
            }
        }
        if at_end {
            return Ok(page);
        }
        from = match jump {
            Some(Some(next)) => next,
            // Nothing can follow a prefix of nothing but the last character.
            Some(None) => return Ok(page),
            None => {
                batch = batch.saturating_mul(4).min(all);
                successor(&last_place)
            }
        };
    }
}

/// Where to begin; `None` if nothing can follow.
fn start(query: &Query<'_>) -> Option<String> {
    if query.after < query.prefix {
        return Some(query.prefix.to_owned());
    }
    if query.after.is_empty() {
        return Some(String::new());
    }
    match common_prefix(query, query.after) {
        Some(prefix) => successor_of_prefix(prefix),
        None => Some(successor(query.after)),
    }
}

/// The common prefix that a key rolls up into.
pub fn common_prefix<'k>(query: &Query<'_>, key: &'k str) -> Option<&'k str> {
    if query.delimiter.is_empty() {
        return None;
    }
    let rest = key.strip_prefix(query.prefix)?;
    let end = query.prefix.len() + rest.find(query.delimiter)? + query.delimiter.len();
    Some(&key[..end])
}

/// The first string after this one.
pub fn successor(key: &str) -> String {
    format!("{key}\0")
}

/// The first string after all that begin with `prefix`; `None` if there is none.
pub fn successor_of_prefix(prefix: &str) -> Option<String> {
    let mut next = prefix.to_owned();
    while let Some(last) = next.pop() {
        // Bytes of UTF-8 sort as its code points do; surrogates are not characters.
        let following = match last {
            char::MAX => continue,
            '\u{d7ff}' => '\u{e000}',
            _ => char::from_u32(last as u32 + 1)?,
        };
        next.push(following);
        return Some(next);
    }
    None
}

/// Percent-encoding for `encoding-type=url`: everything but unreserved characters and slashes.
pub fn url_encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                out.push(char::from(byte));
            }
            _ => {
                out.push('%');
                out.push_str(&objects::digest::hex(&[byte]).to_ascii_uppercase());
            }
        }
    }
    out
}

/// Encodes a continuation token: the last item of the page before.
pub fn encode_token(last: &str) -> String {
    base64_simd::URL_SAFE_NO_PAD.encode_to_string(format!("1{last}"))
}

/// Decodes a continuation token; `None` if it is not one.
pub fn decode_token(token: &str) -> Option<String> {
    let bytes = base64_simd::URL_SAFE_NO_PAD.decode_to_vec(token).ok()?;
    String::from_utf8(bytes)
        .ok()?
        .strip_prefix('1')
        .map(str::to_owned)
}

#[cfg(test)]
mod tests;
