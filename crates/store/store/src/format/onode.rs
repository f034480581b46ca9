//! An onode: size, time, attributes and the maps that hold an object's extents.
//!
//! An object is a run of segments; each shows the extents of one map from `start` on. Most objects have one segment;
//! one assembled of parts has a segment for each, so that completing a multipart upload copies nothing. A map belongs
//! to one object only.

use crate::Attributes;
use codec::{Put, Reader};
use object::Segment;

const VERSION: u8 = 1;
/// Number of the omap of an object without one.
const NO_OMAP: u64 = 0;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Onode {
    pub modified_micros: u64,
    /// Number of the object's omap.
    pub omap: Option<u64>,
    pub segments: Vec<Segment>,
    pub attributes: Attributes,
}

impl Onode {
    /// Bytes in the object.
    pub fn size(&self) -> u64 {
        object::size(&self.segments)
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION, 0, 0, 0];
        out.put_u64(self.modified_micros);
        out.put_u64(self.omap.unwrap_or(NO_OMAP));
        out.put_u32(self.segments.len() as u32);
        for segment in &self.segments {
            out.put_u64(segment.map);
            out.put_u64(segment.start);
            out.put_u64(segment.length);
        }
        encode_attributes(&self.attributes, &mut out);
        out
    }

    pub fn decode(value: &[u8]) -> Option<Self> {
        let mut r = Reader(value);
        if r.take(4)? != [VERSION, 0, 0, 0] {
            return None;
        }
        let modified_micros = r.u64()?;
        let omap = Some(r.u64()?).filter(|number| *number != NO_OMAP);
        let count = r.u32()? as usize;
        if count > r.0.len() / 24 {
            return None;
        }
        let segments = (0..count)
            .map(|_| {
                Some(Segment {
                    map: r.u64()?,
                    start: r.u64()?,
                    length: r.u64()?,
                })
            })
            .collect::<Option<Vec<_>>>()?;
        segments.iter().try_fold(0u64, |sum, s| {
            (s.length > 0).then_some(())?;
            s.start.checked_add(s.length)?;
            sum.checked_add(s.length)
        })?;
        let attributes = decode_attributes(&mut r)?;
        r.end()?;
        Some(Self {
            modified_micros,
            omap,
            segments,
            attributes,
        })
    }
}

/// Count, then for each attribute in order of names: length and bytes of name, of value.
pub(crate) fn encode_attributes(attributes: &Attributes, out: &mut Vec<u8>) {
    out.put_u16(attributes.len() as u16);
    for (name, value) in attributes {
        out.put_u16(name.len() as u16);
        out.extend_from_slice(name.as_bytes());
        out.put_u32(value.len() as u32);
        out.extend_from_slice(value);
    }
}

pub(crate) fn decode_attributes(r: &mut Reader<'_>) -> Option<Attributes> {
    let count = r.u16()?;
    let mut attributes = Attributes::new();
    for _ in 0..count {
        let length = r.u16()?;
        let name = std::str::from_utf8(r.take(usize::from(length))?)
            .ok()?
            .to_owned();
        let length = r.u32()?;
        let value = r.take(usize::try_from(length).ok()?)?.to_vec();
        if attributes
            .last_key_value()
            .is_some_and(|(last, _)| *last >= name)
        {
            return None;
        }
        attributes.insert(name, value);
    }
    Some(attributes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn decoding_inverts_encoding(
            modified_micros: u64,
            omap in proptest::option::of(1u64..),
            segments in proptest::collection::vec((any::<u64>(), 1u32..), 0..5),
            attributes in proptest::collection::btree_map(".{0,9}", proptest::collection::vec(any::<u8>(), 0..20), 0..5),
        ) {
            let segments = segments.into_iter().map(|(map, l)| Segment { map, start: 3, length: l.into() }).collect();
            let onode = Onode { modified_micros, omap, segments, attributes };
            prop_assert_eq!(Onode::decode(&onode.encode()), Some(onode));
        }

        #[test]
        fn any_bytes_decode_or_do_not(mut value in proptest::collection::vec(any::<u8>(), 4..200)) {
            value[..4].copy_from_slice(&[VERSION, 0, 0, 0]);
            if let Some(onode) = Onode::decode(&value) {
                prop_assert_eq!(onode.encode(), value);
            }
        }
    }
}
