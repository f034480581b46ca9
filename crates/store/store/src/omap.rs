//! Omaps: ordered keys and values of an object, in the database. An omap has a number of its own, so that
//! all of it goes by one row, whatever its size.

use crate::Result;
use crate::format::key;
use crate::rows::corrupt;
use kv::View;

/// At most `limit` rows of omap `number` from key `from` on, those below `to` if there is one.
pub(crate) fn scan(
    kv: &dyn View,
    number: u64,
    from: &[u8],
    to: Option<&[u8]>,
    limit: usize,
) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let lower = key::omap(number, from);
    let upper = match to {
        Some(to) => Some(key::omap(number, to)),
        None => key::after_prefix(&key::omap(number, &[])),
    };
    if upper.as_ref().is_some_and(|upper| *upper <= lower) {
        return Ok(Vec::new());
    }
    kv.scan(&lower, upper.as_deref())
        .take(limit)
        .map(|row| {
            let (key, value) = row?;
            let (_, name) = key::parse_omap(&key)
                .ok_or_else(|| corrupt(&key, "no key of an omap", key.len()))?;
            Ok((name.to_vec(), value))
        })
        .collect()
}

/// The first keys of an omap from one on, as many as both limits let be and one at least, and whether that is all of them.
pub(crate) fn keys(
    kv: &dyn View,
    number: u64,
    from: &[u8],
    (limit, bytes): (usize, usize),
) -> Result<(Vec<Vec<u8>>, bool)> {
    let lower = key::omap(number, from);
    let upper = key::after_prefix(&key::omap(number, &[]));
    let (mut keys, mut length) = (Vec::new(), 0);
    for row in kv.scan(&lower, upper.as_deref()) {
        if keys.len() >= limit || length >= bytes {
            return Ok((keys, false));
        }
        let (key, _) = row?;
        let (_, name) =
            key::parse_omap(&key).ok_or_else(|| corrupt(&key, "no key of an omap", key.len()))?;
        length += name.len();
        keys.push(name.to_vec());
    }
    Ok((keys, true))
}
