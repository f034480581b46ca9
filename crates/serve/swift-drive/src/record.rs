//! What is written of policies and suffixes, and read again.

use std::collections::BTreeMap;
use std::fmt;
use store::Attributes;
use swift_files::{Digest, Policy, Wanted};

/// Of a collection of files: the format, and what kind of policy it is.
const FORMAT: &str = "format";
const KIND: &str = "kind";
const VERSION: &[u8] = b"1";
/// Of a file: the caller's.
pub(crate) const METADATA: &str = "metadata";
/// Of a suffix, unless it has to be hashed again.
const HASHES: &str = "hashes";
/// Stands for what is no fragment's.
const WHOLE: &str = "-";

/// What kind of policy it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PolicyKind {
    /// Whole objects.
    Replication,
    /// Fragments.
    ErasureCoding,
}

impl PolicyKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Replication => "replication",
            Self::ErasureCoding => "erasure coding",
        }
    }

    /// Without asking for a fragment.
    pub(crate) fn policy(self) -> Policy<'static> {
        self.wanting(Wanted::default())
    }

    /// Asking for a fragment, where there are fragments.
    pub(crate) const fn wanting(self, wanted: Wanted<'_>) -> Policy<'_> {
        match self {
            Self::Replication => Policy::Replication,
            Self::ErasureCoding => Policy::ErasureCoding(wanted),
        }
    }

    /// Of a collection of files.
    pub(crate) fn attributes(self) -> Attributes {
        let kind = self.name().as_bytes().to_vec();
        Attributes::from([(FORMAT.into(), VERSION.into()), (KIND.into(), kind)])
    }

    /// That of a collection of files; what it says instead if this version knows no such.
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

/// Of a suffix with these hashes.
pub(crate) fn hashed(hashes: &BTreeMap<Option<u32>, Digest>) -> Attributes {
    let each = hashes.iter().map(|(of, hash)| {
        let of = of.map_or_else(|| WHOLE.to_owned(), |index| index.to_string());
        format!("{of}={hash}")
    });
    let text = each.collect::<Vec<_>>().join(" ");
    Attributes::from([(HASHES.into(), text.into_bytes())])
}

/// The hashes of a suffix; `None`: it has to be hashed again, as what cannot be read has.
pub(crate) fn hashes(attributes: &Attributes) -> Option<BTreeMap<Option<u32>, Digest>> {
    let text = std::str::from_utf8(attributes.get(HASHES)?).ok()?;
    let each = text.split_ascii_whitespace().map(|each| {
        let (of, hash) = each.split_once('=')?;
        let of = if of == WHOLE {
            None
        } else {
            Some(of.parse().ok()?)
        };
        Some((of, hash.to_owned()))
    });
    each.collect()
}
