//! Keys of the database: one byte for the namespace, then big-endian numbers or a name.

use object::BlobId;
use zone::{ZoneAddress, ZoneId};

/// `C`: collection name → [`super::record::CollectionRecord`].
pub(crate) const COLLECTION: u8 = b'C';
/// `O`: collection number, object name → onode.
pub(crate) const ONODE: u8 = b'O';
/// `H`: family, hash, object name → onode of an object in a collection by hash.
pub(crate) const HASHED_ONODE: u8 = b'H';
/// Both namespaces with onodes.
pub(crate) const ONODES: [u8; 2] = [ONODE, HASHED_ONODE];
/// `X`: map number, offset after the extent's last byte → extent.
pub(crate) const EXTENT: u8 = b'X';
/// `B`: number → shared blob.
pub(crate) const BLOB: u8 = b'B';
/// `G`: zone, offset → the blob with a fragment that begins there (the cleaning index).
pub(crate) const CLEANING: u8 = b'G';
/// `Z`: zone → bytes written, bytes dead (the freelist), by merge.
pub(crate) const FREELIST: u8 = b'Z';
/// `M`: number of an omap, key → value.
pub(crate) const OMAP: u8 = b'M';
/// `T`: number of a map or an omap whose rows are still to be purged.
pub(crate) const DOOMED: u8 = b'T';

/// `Y`: zone → where segment summaries are in it.
pub(crate) const SUMMARIES: u8 = b'Y';

/// `D`: zone, offset → what is wrong with bytes of an object there.
pub(crate) const DAMAGE: u8 = b'D';

/// `S…`: facts about the store as a whole; this key has the store's own record.
pub(crate) const SUPER_FORMAT: &[u8] = b"Sformat";
/// Key of the lowest number that was never given to a map or a shared blob.
pub(crate) const SUPER_NEXT_NUMBER: &[u8] = b"Snext_number";
/// Key of the lowest collection number that was never used.
pub(crate) const SUPER_NEXT_COLLECTION: &[u8] = b"Snext_collection";

/// Key of the number of bytes in inline extents, by merge.
pub(crate) const SUPER_INLINE: &[u8] = b"Sinline_bytes";
/// Key of the scrub's last passes and position.
pub(crate) const SUPER_SCRUB: &[u8] = b"Sscrub";
/// Key of the time when a user stopped the scrub; absent once it was requested again.
pub(crate) const SUPER_SCRUB_STOPPED: &[u8] = b"Sscrub_stopped";
/// Key of the batch up to which segment summaries have copies of all rows.
pub(crate) const SUPER_SUMMARIES: &[u8] = b"Ssummaries";
/// Rows that wait for a segment summary ([`super::waiting`]).
pub(crate) const SUPER_WAITING: &[u8] = b"Swaiting";
/// Key of the stage of a salvage in place; absent once that has ended.
pub(crate) const SUPER_SALVAGE: &[u8] = b"Ssalvage";
/// Key of the zones that are out of use because they cannot be read.
pub(crate) const SUPER_RETIRED: &[u8] = b"Sretired";
/// Key of the time when objects were last changed by others than the programs that keep them.
pub(crate) const SUPER_REVISED: &[u8] = b"Srevised";
/// First byte of the keys of facts about the store.
pub(crate) const SUPER: u8 = b'S';

fn key(namespace: u8, fields: &[&[u8]]) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + fields.iter().map(|f| f.len()).sum::<usize>());
    key.push(namespace);
    for field in fields {
        key.extend_from_slice(field);
    }
    key
}

pub(crate) fn collection(name: &str) -> Vec<u8> {
    key(COLLECTION, &[name.as_bytes()])
}

pub(crate) fn onode(collection: u32, name: &[u8]) -> Vec<u8> {
    key(ONODE, &[&collection.to_be_bytes(), name])
}

pub(crate) fn hashed_onode(family: u32, hash: u32, name: &[u8]) -> Vec<u8> {
    let (family, hash) = (family.to_be_bytes(), hash.to_be_bytes());
    key(HASHED_ONODE, &[&family, &hash, name])
}

pub(crate) fn extent(map: u64, end: u64) -> Vec<u8> {
    key(EXTENT, &[&map.to_be_bytes(), &end.to_be_bytes()])
}

/// The first bytes of the keys of all extents of a map.
pub(crate) fn map(map: u64) -> Vec<u8> {
    key(EXTENT, &[&map.to_be_bytes()])
}

pub(crate) fn blob(id: BlobId) -> Vec<u8> {
    key(BLOB, &[&id.0.to_be_bytes()])
}

fn place(namespace: u8, at: ZoneAddress) -> Vec<u8> {
    key(
        namespace,
        &[&at.zone.0.to_be_bytes(), &at.offset.to_be_bytes()],
    )
}

pub(crate) fn cleaning(at: ZoneAddress) -> Vec<u8> {
    place(CLEANING, at)
}

pub(crate) fn damage(at: ZoneAddress) -> Vec<u8> {
    place(DAMAGE, at)
}

pub(crate) fn freelist(zone: ZoneId) -> Vec<u8> {
    key(FREELIST, &[&zone.0.to_be_bytes()])
}

pub(crate) fn summaries(zone: ZoneId) -> Vec<u8> {
    key(SUMMARIES, &[&zone.0.to_be_bytes()])
}

pub(crate) fn omap(number: u64, name: &[u8]) -> Vec<u8> {
    key(OMAP, &[&number.to_be_bytes(), name])
}

pub(crate) fn doomed(map: u64) -> Vec<u8> {
    key(DOOMED, &[&map.to_be_bytes()])
}

/// The first key after all keys that begin with `prefix`; `None` if there is no such key.
pub(crate) fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|b| *b != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

/// The part of an onode's key before the object's name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Holder {
    /// The number of a collection by name.
    Collection(u32),
    /// The family of collections by hash, and the object's hash.
    Hash { family: u32, hash: u32 },
}

/// Where the object belongs, and its name.
pub(crate) fn parse_onode(key: &[u8]) -> Option<(Holder, &[u8])> {
    let (namespace, rest) = key.split_first()?;
    let (number, rest) = rest.split_first_chunk::<4>()?;
    let number = u32::from_be_bytes(*number);
    match *namespace {
        ONODE => Some((Holder::Collection(number), rest)),
        HASHED_ONODE => {
            let (hash, name) = rest.split_first_chunk::<4>()?;
            let (family, hash) = (number, u32::from_be_bytes(*hash));
            Some((Holder::Hash { family, hash }, name))
        }
        _ => None,
    }
}

fn two<const A: usize, const B: usize>(key: &[u8], namespace: u8) -> Option<([u8; A], [u8; B])> {
    let (a, b) = key.strip_prefix(&[namespace])?.split_first_chunk::<A>()?;
    Some((*a, b.try_into().ok()?))
}

/// Number of the omap and key in it.
pub(crate) fn parse_omap(key: &[u8]) -> Option<(u64, &[u8])> {
    let (number, name) = key.strip_prefix(&[OMAP])?.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*number), name))
}

/// Map and end of the extent.
pub(crate) fn parse_extent(key: &[u8]) -> Option<(u64, u64)> {
    let (map, end) = two::<8, 8>(key, EXTENT)?;
    Some((u64::from_be_bytes(map), u64::from_be_bytes(end)))
}

pub(crate) fn parse_blob(key: &[u8]) -> Option<BlobId> {
    let id: [u8; 8] = key.strip_prefix(&[BLOB])?.try_into().ok()?;
    Some(BlobId(u64::from_be_bytes(id)))
}

fn parse_place(key: &[u8], namespace: u8) -> Option<ZoneAddress> {
    let (zone, offset) = two::<4, 8>(key, namespace)?;
    Some(ZoneAddress::new(
        ZoneId(u32::from_be_bytes(zone)),
        u64::from_be_bytes(offset),
    ))
}

pub(crate) fn parse_cleaning(key: &[u8]) -> Option<ZoneAddress> {
    parse_place(key, CLEANING)
}

pub(crate) fn parse_damage(key: &[u8]) -> Option<ZoneAddress> {
    parse_place(key, DAMAGE)
}

fn parse_zone(key: &[u8], namespace: u8) -> Option<ZoneId> {
    let zone: [u8; 4] = key.strip_prefix(&[namespace])?.try_into().ok()?;
    Some(ZoneId(u32::from_be_bytes(zone)))
}

pub(crate) fn parse_freelist(key: &[u8]) -> Option<ZoneId> {
    parse_zone(key, FREELIST)
}

pub(crate) fn parse_summaries(key: &[u8]) -> Option<ZoneId> {
    parse_zone(key, SUMMARIES)
}

pub(crate) fn parse_doomed(key: &[u8]) -> Option<u64> {
    let map: [u8; 8] = key.strip_prefix(&[DOOMED])?.try_into().ok()?;
    Some(u64::from_be_bytes(map))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_as_their_numbers_do() {
        assert!(extent(1, 300) < extent(2, 0));
        assert!(extent(2, 255) < extent(2, 256));
        let at = |zone, offset| ZoneAddress::new(ZoneId(zone), offset);
        assert!(cleaning(at(3, u64::MAX)) < cleaning(at(4, 0)));
    }

    #[test]
    fn parsing_inverts_making() {
        assert_eq!(parse_extent(&extent(7, 9)), Some((7, 9)));
        assert_eq!(parse_blob(&blob(BlobId(6))), Some(BlobId(6)));
        let at = ZoneAddress::new(ZoneId(7), 9);
        assert_eq!(parse_cleaning(&cleaning(at)), Some(at));
        assert_eq!(parse_damage(&damage(at)), Some(at));
        assert_eq!(parse_freelist(&freelist(ZoneId(4))), Some(ZoneId(4)));
        assert_eq!(parse_summaries(&summaries(ZoneId(4))), Some(ZoneId(4)));
        assert_eq!(parse_omap(&omap(5, b"\xff")), Some((5, &b"\xff"[..])));
        let by_name = (Holder::Collection(3), &b"\xff"[..]);
        assert_eq!(parse_onode(&onode(3, b"\xff")), Some(by_name));
        let (family, hash) = (3, 4);
        let by_hash = (Holder::Hash { family, hash }, &b"a"[..]);
        assert_eq!(parse_onode(&hashed_onode(3, 4, b"a")), Some(by_hash));
        assert_eq!(parse_doomed(&doomed(3)), Some(3));
    }

    #[test]
    fn the_end_of_a_prefix_skips_saturated_bytes() {
        assert_eq!(after_prefix(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(after_prefix(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!(after_prefix(b"\xff"), None);
    }
}
