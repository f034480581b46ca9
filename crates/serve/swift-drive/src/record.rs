//! Attributes of policies, files and suffixes in the store: encoded and decoded.

use std::fmt;
use store::Attributes;
use swift_files::{FragmentHashes, Policy, Wanted};

/// Attributes of a collection of files: format and kind of its policy.
const FORMAT: &str = "format";
const KIND: &str = "kind";
const VERSION: &[u8] = b"1";
/// Attribute of a file: the caller's metadata.
pub(crate) const METADATA: &str = "metadata";
/// Attribute of a suffix: its hashes. Missing if it has to be hashed again.
const HASHES: &str = "hashes";
/// Attribute of a suffix with hashes, and of the collection of suffixes: the store's revision ([`store::Store::revision`])
/// in which the hashes were made, or in which all suffixes were looked for.
const REVISION: &str = "revision";
/// Attribute of the collection of suffixes while they are looked for: the store's revision and, behind it, the name before
/// which all suffixes of that revision are there.
const REVISED_UNTIL: &str = "revised-until";
/// Stands for files that belong to no fragment.
const WHOLE: &str = "-";

/// Kind of a storage policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PolicyKind {
    /// Each replica is a whole object.
    Replication,
    /// Each drive has fragments of objects.
    ErasureCoding,
}

impl PolicyKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Replication => "replication",
            Self::ErasureCoding => "erasure coding",
        }
    }

    /// For a choice of files without a wanted fragment.
    pub(crate) fn policy(self) -> Policy<'static> {
        self.wanting(Wanted::default())
    }

    /// For a choice of files with a wanted fragment, if there are fragments.
    pub(crate) const fn wanting(self, wanted: Wanted<'_>) -> Policy<'_> {
        match self {
            Self::Replication => Policy::Replication,
            Self::ErasureCoding => Policy::ErasureCoding(wanted),
        }
    }

    /// The attributes of a policy's collection of files.
    pub(crate) fn attributes(self) -> Attributes {
        let kind = self.name().as_bytes().to_vec();
        Attributes::from([(FORMAT.into(), VERSION.into()), (KIND.into(), kind)])
    }

    /// The kind in a collection's attributes; in words, if this version does not know it.
    pub(crate) fn of(attributes: &Attributes) -> Result<Self, String> {
        let both = [Self::Replication, Self::ErasureCoding].into_iter();
        let mut kinds = both.filter(|kind| kind.attributes() == *attributes);
        kinds.next().ok_or_else(|| {
            let text = |name| {
                attributes
                    .get(name)
                    .map_or("nothing".into(), |value| String::from_utf8_lossy(value))
            };
            format!("of format {}, kind {}", text(FORMAT), text(KIND))
        })
    }
}

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The attributes of the collection of suffixes, if all suffixes of this revision are in it.
pub(crate) fn revised(revision: &[u8]) -> Attributes {
    Attributes::from([(REVISION.into(), revision.into())])
}

/// The attributes of the collection of suffixes, if all suffixes of this revision whose files have names before `until` are
/// in it.
pub(crate) fn revised_until(revision: &[u8], until: &[u8]) -> Attributes {
    Attributes::from([(REVISED_UNTIL.into(), [revision, until].concat())])
}

/// `until` of [`revised_until`]; empty if the attributes are of another revision.
pub(crate) fn looked_until(attributes: &Attributes, revision: &[u8]) -> Vec<u8> {
    let value = attributes.get(REVISED_UNTIL);
    let until = value.and_then(|value| value.strip_prefix(revision));
    until.unwrap_or_default().to_vec()
}

/// Whether attributes are of this revision.
pub(crate) fn is_of(attributes: &Attributes, revision: &[u8]) -> bool {
    attributes.get(REVISION).map(Vec::as_slice) == Some(revision)
}

/// The attributes of a suffix with these hashes.
pub(crate) fn hashed(hashes: &FragmentHashes, revision: &[u8]) -> Attributes {
    let each = hashes.iter().map(|(of, hash)| {
        let of = of.map_or_else(|| WHOLE.to_owned(), |index| index.to_string());
        format!("{of}={}", hash.as_str())
    });
    let text = each.collect::<Vec<_>>().join(" ");
    let mut attributes = revised(revision);
    attributes.insert(HASHES.into(), text.into_bytes());
    attributes
}

/// The hashes of a suffix; `None` if there are none, if they cannot be read, or if they are of another revision: it has to
/// be hashed again.
pub(crate) fn hashes(attributes: &Attributes, revision: &[u8]) -> Option<FragmentHashes> {
    if !is_of(attributes, revision) {
        return None;
    }
    let text = std::str::from_utf8(attributes.get(HASHES)?).ok()?;
    let each = text.split_ascii_whitespace().map(|each| {
        let (of, hash) = each.split_once('=')?;
        let of = if of == WHOLE {
            None
        } else {
            Some(of.parse().ok()?)
        };
        Some((of, hash.parse().ok()?))
    });
    each.collect()
}
