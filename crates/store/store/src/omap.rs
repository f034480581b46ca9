//! Omaps: ordered keys and values of an object, in the database. An omap has a number of its own, so that it is removed
//! by writing one row, whatever its size.

use crate::Result;
use crate::format::key;
use crate::rows::corrupt;
use kv::View;

/// A key and a value of an omap.
type Row = (Vec<u8>, Vec<u8>);

/// Rows of omap `number` from key `from` on, up to `to` (exclusive) if given.
pub(crate) fn rows<'a>(
    kv: &'a dyn View,
    number: u64,
    from: &[u8],
    to: Option<&[u8]>,
) -> impl Iterator<Item = Result<Row>> + 'a {
    let lower = key::omap(number, from);
    let upper = match to {
        Some(to) => Some(key::omap(number, to)),
        None => key::after_prefix(&key::omap(number, &[])),
    };
    let is_empty = upper.as_ref().is_some_and(|upper| *upper <= lower);
    let rows = (!is_empty).then(|| kv.scan(&lower, upper.as_deref()));
    rows.into_iter().flatten().map(|row| {
        let (key, value) = row?;
        let (_, name) =
            key::parse_omap(&key).ok_or_else(|| corrupt(&key, "no key of an omap", key.len()))?;
        Ok((name.to_vec(), value))
    })
}

/// The first keys of an omap from `from` on, within limits of number and bytes but at least one, and whether these are
/// all.
pub(crate) fn keys(
    kv: &dyn View,
    number: u64,
    from: &[u8],
    (limit, bytes): (usize, usize),
) -> Result<(Vec<Vec<u8>>, bool)> {
    let (mut keys, mut length) = (Vec::new(), 0);
    for row in rows(kv, number, from, None) {
        if keys.len() >= limit || length >= bytes {
            return Ok((keys, false));
        }
        let (key, _) = row?;
        length += key.len();
        keys.push(key);
    }
    Ok((keys, true))
}
