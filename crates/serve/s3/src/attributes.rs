//! S3's properties of an object besides its bytes, as attributes in the store.
//!
//! The names and encodings are part of the stored format: `docs/s3.md` has the table. Decoding is
//! total: attributes come from the drive and may have been written by other programs.

use crate::digest::{base64, from_name};
use crate::tags::Tags;
use objects::digest::Algorithm;
use std::collections::BTreeMap;
use store::Attributes;

/// Attribute of a collection: its purpose for S3.
pub const KIND: &str = "kind";
/// A bucket's [`KIND`].
pub const KIND_BUCKET: &[u8] = b"bucket";
/// The [`KIND`] of a collection that holds the unfinished uploads of a bucket.
pub const KIND_UPLOADS: &[u8] = b"uploads";
/// The [`KIND`] of a collection that holds the earlier versions of a bucket's objects.
pub const KIND_VERSIONS: &[u8] = b"versions";
/// Attribute: the entity tag, without quotes.
pub const ETAG: &str = "etag";
/// Attribute: the tags that a client gave an object.
pub const TAGS: &str = "tags";

/// Attribute of a bucket: its versioning state.
pub const VERSIONING: &str = "versioning";
/// Value of [`VERSIONING`]: the bucket keeps versions.
pub const VERSIONING_ENABLED: &[u8] = b"enabled";
/// Value of [`VERSIONING`]: the bucket kept versions before.
pub const VERSIONING_SUSPENDED: &[u8] = b"suspended";
/// Attribute of a bucket: its lifecycle rules, as S3's XML document.
pub const LIFECYCLE: &str = "lifecycle";
/// Attribute of an object: its [version](crate::versions::Version).
pub const VERSION: &str = "version";

/// Attribute of a bucket whose versions can be locked: `enabled`, or the default retention, such as `COMPLIANCE 30 days`
/// or `GOVERNANCE 7 years`.
pub const OBJECT_LOCK: &str = "object-lock";
/// Attribute of a version, or of an upload for its future version: mode of the retention, `GOVERNANCE` or
/// `COMPLIANCE`.
pub const LOCK_MODE: &str = "lock-mode";
/// Attribute: end of the retention, RFC 3339 in UTC with milliseconds, such as `2026-11-28T18:00:00.000Z`.
pub const LOCK_UNTIL: &str = "lock-until";
/// Attribute: legal hold, `ON`, or `OFF` if one was taken off or refused.
pub const LEGAL_HOLD: &str = "legal-hold";

const CONTENT_TYPE: &str = "content-type";
const CONTENT_ENCODING: &str = "content-encoding";
const CONTENT_DISPOSITION: &str = "content-disposition";
const CONTENT_LANGUAGE: &str = "content-language";
const CACHE_CONTROL: &str = "cache-control";
const EXPIRES: &str = "expires";
const METADATA: &str = "meta:";
const CHECKSUM: &str = "checksum";
const PARTS: &str = "parts";
const PART_CHECKSUMS: &str = "part-checksums";
const UPLOAD: &str = "upload";

/// Most bytes of the lists of part sizes and of part checksums; a longer list is not kept.
const MAX_PARTS_BYTES: usize = 4096;

/// Content headers of an object.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Content {
    /// `Content-Type`.
    pub kind: Option<String>,
    /// `Content-Encoding`.
    pub encoding: Option<String>,
    /// `Content-Disposition`.
    pub disposition: Option<String>,
    /// `Content-Language`.
    pub language: Option<String>,
    /// `Cache-Control`.
    pub cache_control: Option<String>,
    /// `Expires`, an HTTP date.
    pub expires: Option<String>,
}

/// A checksum of an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checksum {
    /// By which algorithm.
    pub algorithm: Algorithm,
    /// Base64, followed by `-N` if it is the checksum of N parts' checksums.
    pub text: String,
}

impl Checksum {
    /// A checksum of all bytes, from its binary value.
    pub fn full(algorithm: Algorithm, value: &[u8]) -> Self {
        Self {
            algorithm,
            text: base64(value),
        }
    }

    /// The checksum in these attributes.
    pub fn of(attributes: &Attributes) -> Option<Self> {
        let text = std::str::from_utf8(attributes.get(CHECKSUM)?).ok()?;
        let (name, value) = text.split_once(':')?;
        Some(Self {
            algorithm: from_name(name)?,
            text: value.to_owned(),
        })
    }

    /// Whether it is a checksum of parts' checksums and not of bytes.
    pub fn is_composite(&self) -> bool {
        self.text.contains('-')
    }
}

/// Sizes of the parts of a multipart object, run-length coded.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct PartSizes(Vec<(u64, u32)>);

impl PartSizes {
    /// Sizes in the order of the parts.
    pub fn new(sizes: impl IntoIterator<Item = u64>) -> Self {
        let mut runs: Vec<(u64, u32)> = Vec::new();
        for size in sizes {
            match runs.last_mut() {
                Some((last, count)) if *last == size => *count += 1,
                _ => runs.push((size, 1)),
            }
        }
        Self(runs)
    }

    /// Number of parts.
    pub fn count(&self) -> u32 {
        self.0
            .iter()
            .fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// First byte and length of part `number` (from 1).
    pub fn locate(&self, number: u32) -> Option<(u64, u64)> {
        let mut before = number.checked_sub(1)?;
        let mut offset = 0u64;
        for (size, count) in &self.0 {
            if before < *count {
                return Some((offset.checked_add(size.checked_mul(before.into())?)?, *size));
            }
            before -= count;
            offset = offset.checked_add(size.checked_mul((*count).into())?)?;
        }
        None
    }

    fn encode(&self) -> String {
        let runs: Vec<String> = self
            .0
            .iter()
            .map(|(size, n)| format!("{size}x{n}"))
            .collect();
        runs.join(",")
    }

    fn decode(text: &str) -> Option<Self> {
        let run = |run: &str| {
            let (size, count) = run.split_once('x')?;
            Some((size.parse().ok()?, count.parse().ok()?))
        };
        text.split(',')
            .map(run)
            .collect::<Option<Vec<_>>>()
            .map(Self)
    }
}

/// All of an object's attributes that S3 knows.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct ObjectAttributes {
    /// Entity tag without quotes; empty if the object was not stored through S3.
    pub etag: String,
    /// Content headers.
    pub content: Content,
    /// User metadata, names in lower case.
    pub metadata: BTreeMap<String, String>,
    /// Tags that a client gave it.
    pub tags: Tags,
    /// The checksum the client chose.
    pub checksum: Option<Checksum>,
    /// Part sizes if it was uploaded in parts.
    pub parts: Option<PartSizes>,
    /// The parts' checksums in base64, in order; empty if they are not kept.
    pub part_checksums: Vec<String>,
    /// Id of the upload that it was made of, so that completing an upload twice succeeds twice.
    pub upload: Option<String>,
}

impl ObjectAttributes {
    /// Encodes the attributes for the store.
    pub fn encode(&self) -> Attributes {
        let mut out = Attributes::new();
        let mut set = |name: &str, value: Option<&str>| {
            if let Some(value) = value {
                out.insert(name.to_owned(), value.as_bytes().to_vec());
            }
        };
        set(ETAG, Some(&self.etag));
        set(CONTENT_TYPE, self.content.kind.as_deref());
        set(CONTENT_ENCODING, self.content.encoding.as_deref());
        set(CONTENT_DISPOSITION, self.content.disposition.as_deref());
        set(CONTENT_LANGUAGE, self.content.language.as_deref());
        set(CACHE_CONTROL, self.content.cache_control.as_deref());
        set(EXPIRES, self.content.expires.as_deref());
        set(UPLOAD, self.upload.as_deref());
        set(TAGS, self.tags.encode().as_deref());
        if let Some(Checksum { algorithm, text }) = &self.checksum {
            set(CHECKSUM, Some(&format!("{}:{text}", algorithm.name())));
        }
        let parts = self.parts.as_ref().map(PartSizes::encode);
        set(
            PARTS,
            parts
                .as_deref()
                .filter(|text| text.len() <= MAX_PARTS_BYTES),
        );
        let checksums = self.part_checksums.join(",");
        set(
            PART_CHECKSUMS,
            Some(checksums.as_str())
                .filter(|text| !text.is_empty() && text.len() <= MAX_PARTS_BYTES),
        );
        for (name, value) in &self.metadata {
            set(&format!("{METADATA}{name}"), Some(value));
        }
        out
    }

    /// Decodes attributes of the store; values that cannot be read are left out.
    pub fn decode(attributes: &Attributes) -> Self {
        let get = |name: &str| {
            let bytes = attributes.get(name)?;
            String::from_utf8(bytes.clone()).ok()
        };
        let checksum = Checksum::of(attributes);
        let metadata = attributes
            .iter()
            .filter_map(|(name, value)| {
                let name = name.strip_prefix(METADATA)?;
                Some((name.to_owned(), String::from_utf8(value.clone()).ok()?))
            })
            .collect();
        Self {
            etag: get(ETAG).unwrap_or_default(),
            content: Content {
                kind: get(CONTENT_TYPE),
                encoding: get(CONTENT_ENCODING),
                disposition: get(CONTENT_DISPOSITION),
                language: get(CONTENT_LANGUAGE),
                cache_control: get(CACHE_CONTROL),
                expires: get(EXPIRES),
            },
            metadata,
            tags: get(TAGS)
                .map(|text| Tags::decode(&text))
                .unwrap_or_default(),
            checksum,
            parts: get(PARTS).and_then(|text| PartSizes::decode(&text)),
            part_checksums: get(PART_CHECKSUMS)
                .map(|text| text.split(',').map(str::to_owned).collect())
                .unwrap_or_default(),
            upload: get(UPLOAD),
        }
    }
}

impl ObjectAttributes {
    /// The checksum of part `number` (from 1), if it is known which bytes the part has.
    pub fn part_checksum(&self, number: u32) -> Option<Checksum> {
        self.parts.as_ref()?;
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        Some(Checksum {
            algorithm: self.checksum.as_ref()?.algorithm,
            text: self.part_checksums.get(index)?.clone(),
        })
    }
}

/// A content encoding without `aws-chunked`, which belongs to the transfer and not to the object. Other values stay
/// as sent.
pub fn stored_encoding(header: Option<String>) -> Option<String> {
    let header = header?;
    let is_transport = |token: &&str| token.trim().eq_ignore_ascii_case("aws-chunked");
    if !header.split(',').any(|token| is_transport(&token)) {
        return Some(header);
    }
    let kept: Vec<&str> = header.split(',').filter(|t| !is_transport(t)).collect();
    Some(kept.join(",").trim().to_owned()).filter(|kept| !kept.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text() -> impl Strategy<Value = Option<String>> {
        prop::option::of("[ -~é]{0,20}")
    }

    prop_compose! {
        fn object()(
            etag in "[0-9a-f]{32}(-[0-9]{1,5})?",
            fields in prop::collection::vec(text(), 7),
            metadata in prop::collection::btree_map("[a-z0-9-]{1,10}", "\\PC{0,20}", 0..4),
            tags in prop::collection::btree_map("[a-z +=é]{1,9}", "[A-Z:/ ]{0,9}", 0..4),
            checksum in prop::option::of((0usize..5, "[A-Za-z0-9+/]{6}==(-[1-9])?")),
            sizes in prop::option::of(prop::collection::vec(1u64..4, 1..9)),
            part_checksums in prop::collection::vec("[A-Za-z0-9+/]{6}==", 0..9),
        ) -> ObjectAttributes {
            let field = |n: usize| fields[n].clone();
            ObjectAttributes {
                etag,
                content: Content {
                    kind: field(0), encoding: field(1), disposition: field(2),
                    language: field(3), cache_control: field(4), expires: field(5),
                },
                metadata,
                tags: Tags::new(tags.into_iter().collect()).unwrap(),
                checksum: checksum.map(|(n, text)| Checksum { algorithm: crate::digest::CHECKSUMS[n], text }),
                parts: sizes.map(PartSizes::new),
                part_checksums,
                upload: field(6),
            }
        }
    }

    /// Sizes that are too long to be kept: then a read of part 1 is one of the whole object, which is not what the kept
    /// checksum of the part is of.
    #[test]
    fn a_part_without_a_size_has_no_checksum() {
        let of = |parts: u64| {
            let sizes: Vec<u64> = (0..parts).map(|number| (5 << 20) + number % 2).collect();
            ObjectAttributes {
                checksum: Some(Checksum {
                    algorithm: crate::digest::CHECKSUMS[0],
                    text: "AAAAAA==-420".to_owned(),
                }),
                parts: Some(PartSizes::new(sizes)),
                part_checksums: vec!["AAAAAA==".to_owned(); parts as usize],
                ..ObjectAttributes::default()
            }
        };
        let known = |parts| {
            let decoded = ObjectAttributes::decode(&of(parts).encode());
            assert!(!decoded.part_checksums.is_empty());
            (decoded.parts.is_some(), decoded.part_checksum(1).is_some())
        };
        assert_eq!(known(100), (true, true));
        // Each size takes more room than a checksum.
        assert_eq!(known(440), (false, false));
    }

    proptest! {
        #[test]
        fn what_is_kept_comes_back(object in object()) {
            prop_assert_eq!(ObjectAttributes::decode(&object.encode()), object);
        }

        #[test]
        fn anything_decodes(attributes in prop::collection::btree_map(
            "(etag|tags|checksum|parts|part-checksums|meta:x|expires|upload|other)", prop::collection::vec(any::<u8>(), 0..30), 0..7)) {
            ObjectAttributes::decode(&attributes);
        }

        #[test]
        fn parts_are_found(sizes in prop::collection::vec(0u64..5, 1..20)) {
            let parts = PartSizes::new(sizes.iter().copied());
            prop_assert_eq!(parts.count() as usize, sizes.len());
            let mut offset = 0;
            for (index, size) in sizes.iter().enumerate() {
                prop_assert_eq!(parts.locate(index as u32 + 1), Some((offset, *size)));
                offset += size;
            }
            prop_assert_eq!(parts.locate(0), None);
            prop_assert_eq!(parts.locate(sizes.len() as u32 + 1), None);
        }
    }

    #[test]
    fn overflowing_parts_are_no_place() {
        let parts = PartSizes::decode("18446744073709551615x4294967295,5x1").unwrap();
        assert_eq!(parts.locate(2), Some((u64::MAX, u64::MAX)));
        assert_eq!(parts.locate(3), None);
        assert_eq!(parts.count(), u32::MAX);
    }

    #[test]
    fn too_many_different_parts_are_not_kept() {
        let object = ObjectAttributes {
            parts: Some(PartSizes::new(0..2000)),
            ..Default::default()
        };
        assert_eq!(ObjectAttributes::decode(&object.encode()).parts, None);
    }

    #[test]
    fn transport_encoding_is_not_stored() {
        let stored = |text: &str| stored_encoding(Some(text.to_owned()));
        assert_eq!(stored("aws-chunked"), None);
        assert_eq!(stored("gzip, AWS-chunked"), Some("gzip".into()));
        assert_eq!(stored("aws-chunked,gzip,br"), Some("gzip,br".into()));
        for unchanged in ["gzip, br", "gzip,br", "GZip ,  br", "", "gzip,"] {
            assert_eq!(stored(unchanged), Some(unchanged.into()));
        }
        assert_eq!(stored_encoding(None), None);
    }
}
