//! Encoding of omap rows: for each, u32 length of the key, u32 length of the value (little-endian), key, value.

use codec::{Put, Reader};
use store::{Error, Moment, Omap, Result};

/// Rows read in one call.
const ROWS: usize = 64;

pub fn add(out: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    out.put_u32(key.len() as u32);
    out.put_u32(value.len() as u32);
    out.extend_from_slice(key);
    out.extend_from_slice(value);
}

pub fn decode(bytes: &[u8]) -> Option<Omap> {
    let mut reader = Reader(bytes);
    let mut rows = Omap::new();
    while reader.end().is_none() {
        let (key, value) = (reader.u32()? as usize, reader.u32()? as usize);
        rows.insert(reader.take(key)?.to_vec(), reader.take(value)?.to_vec());
    }
    Some(rows)
}

/// Calls `each` with all rows of an object's omap, encoded, at most 64 at a time.
pub fn for_each<E: From<Error>>(
    moment: &Moment<'_>,
    collection: &str,
    name: &[u8],
    each: &mut dyn FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut from = Vec::new();
    loop {
        let rows = moment.omap(collection, name, &from, ROWS)?;
        let mut bytes = Vec::new();
        for (key, value) in &rows {
            add(&mut bytes, key, value);
        }
        if !rows.is_empty() {
            each(&bytes)?;
        }
        match rows.into_iter().nth(ROWS - 1) {
            // The first key that can follow.
            Some((last, _)) => from = [&last[..], &[0]].concat(),
            None => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rows_survive(rows in proptest::collection::btree_map(any::<Vec<u8>>(), any::<Vec<u8>>(), 0..6), cut: u8) {
            let mut bytes = Vec::new();
            for (key, value) in &rows {
                add(&mut bytes, key, value);
            }
            prop_assert_eq!(decode(&bytes), Some(rows));
            let _ = decode(&bytes[..bytes.len().saturating_sub(cut.into())]);
        }
    }
}
