//! The listing of a bucket's versions: merges the current ones in the bucket with those in `.versions/BUCKET`.

use crate::attributes::Checksum;
use crate::collections::{require, versions_of};
use crate::dates::timestamp;
use crate::errors::of_store;
use crate::gateway::{Gateway, checksum_names, owner};
use crate::listing::{self, Keyed, Query};
use crate::object::etag_of;
use crate::object_listings::{self, Ask, ask};
use crate::pages::{Encode, page_size};
use crate::versions::{self, Version, is_marker};
use s3s::dto::*;
use s3s::{S3Request, S3Response, S3Result, s3_error};
use store::{ObjectInfo, Store};

/// How many times versions are listed while others become current.
const ATTEMPTS: u32 = 4;

/// A version in a listing.
pub struct Entry {
    /// Its key, as clients write it.
    pub plain: String,
    /// The escaped key, as in places.
    pub key: String,
    /// Its name among all versions of the bucket, in their order.
    pub place: String,
    /// The version.
    pub version: Version,
    /// The store's information on it.
    pub info: ObjectInfo,
    /// Whether it is the newest version of its key.
    pub is_latest: bool,
    /// Whether it is a delete marker.
    pub is_marker: bool,
}

impl Keyed for Entry {
    fn key(&self) -> &str {
        &self.key
    }

    fn place(&self) -> &str {
        &self.place
    }
}

/// A version as an answer contains it.
enum Described {
    /// An object.
    Version(ObjectVersion),
    /// A delete marker.
    Marker(DeleteMarkerEntry),
}

impl Entry {
    /// A current version; `None` for a name that is not text, which S3 cannot show.
    fn current(info: ObjectInfo) -> Option<Self> {
        let key = info.name.text()?.to_owned();
        let version = Version::of(&info.attributes);
        Some(Self {
            key: versions::escape(&key),
            place: versions::name_of(&key, &version),
            plain: key,
            version,
            info,
            is_latest: true,
            is_marker: false,
        })
    }

    /// A version in `.versions/BUCKET`; `None` for a name of another form.
    fn earlier(info: ObjectInfo) -> Option<Self> {
        let place = info.name.text()?.to_owned();
        let (key, version) = versions::parse_name(&place)?;
        Some(Self {
            key: versions::escape(&key),
            place,
            plain: key,
            version,
            is_latest: false,
            is_marker: is_marker(&info),
            info,
        })
    }

    /// The version's entry in the answer.
    fn described(self, encode: &Encode) -> Described {
        let key = Some(encode.text(self.plain));
        let version_id = Some(self.version.id().to_owned());
        let is_latest = Some(self.is_latest);
        let last_modified = Some(timestamp(self.info.modified_micros));
        if self.is_marker {
            return Described::Marker(DeleteMarkerEntry {
                key,
                version_id,
                is_latest,
                last_modified,
                owner: Some(owner()),
            });
        }
        let checksum = Checksum::of(&self.info.attributes);
        let (checksum_algorithm, checksum_type) = checksum_names(checksum.as_ref());
        Described::Version(ObjectVersion {
            key,
            version_id,
            is_latest,
            last_modified,
            checksum_algorithm,
            checksum_type,
            size: i64::try_from(self.info.size).ok(),
            e_tag: Some(ETag::Strong(etag_of(&self.info))),
            storage_class: Some(ObjectVersionStorageClass::from_static(
                ObjectVersionStorageClass::STANDARD,
            )),
            owner: Some(owner()),
            ..Default::default()
        })
    }
}

/// A page of versions.
struct Versions {
    /// The versions on the page.
    entries: Vec<Entry>,
    /// Common prefixes.
    prefixes: Vec<String>,
    /// The last key or prefix if more follow, and its version if it is a key.
    next: Option<(String, Option<String>)>,
}

impl Versions {
    /// All keys and prefixes on the page.
    fn names(&self) -> impl Iterator<Item = &str> {
        let keys = self.entries.iter().map(|entry| &*entry.plain);
        let next = self.next.iter().map(|(key, _)| &**key);
        keys.chain(self.prefixes.iter().map(String::as_str))
            .chain(next)
    }
}

/// The page after a key, or after a version of it.
fn list(store: &Store, ask: &Ask, (key, version): (String, Option<String>)) -> S3Result<Versions> {
    require(store, &ask.bucket)?;
    let prefix = versions::escape(&ask.prefix);
    let delimiter = versions::escape(&ask.delimiter);
    let query = Query {
        prefix: &prefix,
        delimiter: &delimiter,
        after: "",
        limit: ask.limit,
    };
    let Some(from) = start(store, ask, &query, &key, version.as_deref())? else {
        return Ok(Versions {
            entries: Vec::new(),
            prefixes: Vec::new(),
            next: None,
        });
    };
    let seek = |from: &str, n| {
        let place = (&*ask.bucket, &*ask.prefix);
        entries(store, place, from, n, |error| Err(of_store(error)))
    };
    let page = listing::page_from(&query, from, seek)?;
    let plain = |escaped: String| versions::unescape(&escaped);
    let last = page.entries.last();
    let next = page.next.map(|next| {
        let version = last.filter(|last| last.key == next);
        let version = version.map(|last| last.version.id().to_owned());
        (plain(next), version)
    });
    Ok(Versions {
        next,
        prefixes: page.prefixes.into_iter().map(plain).collect(),
        entries: page.entries,
    })
}

/// The place where the page begins; `None` if nothing can follow.
fn start(
    store: &Store,
    ask: &Ask,
    query: &Query<'_>,
    key: &str,
    version: Option<&str>,
) -> S3Result<Option<String>> {
    let escaped = versions::escape(key);
    if key.is_empty() || *escaped < *query.prefix {
        return Ok(Some(query.prefix.to_owned()));
    }
    if let Some(prefix) = listing::common_prefix(query, &escaped) {
        return Ok(listing::successor_of_prefix(prefix));
    }
    let place = match version {
        Some(id) => versions::place(store, &ask.bucket, key, id)?,
        None => None,
    };
    // [`versions::END`] sorts before this, so all versions of the key do.
    Ok(Some(match (place, version) {
        (Some(place), _) => listing::successor(&place),
        // It is gone, and nothing says where among the versions it was: better list some twice than leave some out.
        (None, Some(versions::NULL)) => escaped,
        (None, _) => escaped + "\0\u{1}",
    }))
}

/// At most `limit` versions from the place `from` on that S3 can show; fewer only at the end. Versions with damaged
/// records are left out if `damaged` is `Ok` for their errors.
pub fn entries(
    store: &Store,
    (bucket, prefix): (&str, &str),
    from: &str,
    limit: usize,
    damaged: impl Fn(store::Error) -> S3Result<()>,
) -> S3Result<Vec<Entry>> {
    let beside = versions_of(bucket);
    // The first key that can have a version at or after `from`.
    let key = from.split(versions::END).next().unwrap_or_default();
    let key = versions::unescape(key);
    let is_behind = |entry: &Entry| *entry.place >= *from;
    let current = || {
        let entry = |info| Entry::current(info).filter(is_behind);
        object_listings::entries(store, (bucket, prefix), &key, limit, entry, &damaged)
    };
    let earlier = || {
        if store.collection(&beside).map_err(of_store)?.is_none() {
            return Ok(None);
        }
        let prefix = versions::escape(prefix);
        let (place, entry) = ((&*beside, &*prefix), Entry::earlier);
        object_listings::entries(store, place, from, limit, entry, &damaged).map(Some)
    };
    let mut found = merge(current, earlier)?;
    find_latest(&mut found, from);
    found.truncate(limit);
    Ok(found)
}

/// Without a current version, the newest of the others is a key's latest, if the page from the place `from` on includes it.
fn find_latest(found: &mut [Entry], from: &str) {
    for versions in found.chunk_by_mut(|a, b| a.key == b.key) {
        if !versions.iter().any(|entry| entry.is_latest)
            && let Some(first) = versions.first_mut()
        {
            first.is_latest = *from <= *versions::stem(&first.plain);
        }
    }
}

/// Lists current versions and, if the bucket keeps any, earlier ones, in their order.
///
/// A version that becomes current between the two listings, because the one before it was deleted, is in neither. So
/// the current ones are listed again, and all of them once more if others are current by then.
fn merge(
    current: impl Fn() -> S3Result<Vec<Entry>>,
    earlier: impl Fn() -> S3Result<Option<Vec<Entry>>>,
) -> S3Result<Vec<Entry>> {
    let which = |entry: &Entry| (entry.place.clone(), entry.info.modified_micros);
    let mut found = current()?;
    for attempt in 1.. {
        let Some(beside) = earlier()? else {
            break;
        };
        let after = current()?;
        let is_same = found.iter().map(which).eq(after.iter().map(which));
        if is_same || attempt == ATTEMPTS {
            found.extend(beside.into_iter().chain(after));
            break;
        }
        found = after;
    }
    found.sort_by(|a, b| a.place.cmp(&b.place));
    // A version may be in several listings: the last one counts.
    found.dedup_by(|later, before| {
        let is_same = later.place == before.place;
        if is_same {
            std::mem::swap(later, before);
        }
        is_same
    });
    Ok(found)
}

/// ListObjectVersions.
pub async fn list_versions(
    gateway: &Gateway,
    request: S3Request<ListObjectVersionsInput>,
) -> S3Result<S3Response<ListObjectVersionsOutput>> {
    let input = request.input;
    let marker = input.key_marker.unwrap_or_default();
    let version_marker = input
        .version_id_marker
        .filter(|version| !version.is_empty());
    if version_marker.is_some() && marker.is_empty() {
        return Err(s3_error!(
            InvalidArgument,
            "A version-id marker cannot be specified without a key marker."
        ));
    }
    let ask = ask!(input);
    let behind = (marker.clone(), version_marker.clone());
    let find = move |store: &Store| list(store, &ask, behind).map(|page| (page, ask));
    let (page, ask) = gateway.call(find).await?;
    let encode =
        ask.encode.for_names(
            page.names()
                .chain([&*ask.prefix, &*ask.delimiter, &*marker]),
        );
    let (mut versions, mut markers) = (Vec::new(), Vec::new());
    for entry in page.entries {
        match entry.described(&encode) {
            Described::Version(version) => versions.push(version),
            Described::Marker(marker) => markers.push(marker),
        }
    }
    let delimiter = Some(ask.delimiter).filter(|delimiter| !delimiter.is_empty());
    let (next_key, next_version) = page.next.unzip();
    Ok(S3Response::new(ListObjectVersionsOutput {
        name: Some(ask.bucket),
        prefix: Some(encode.text(ask.prefix)),
        key_marker: Some(encode.text(marker)),
        version_id_marker: Some(version_marker.unwrap_or_default()),
        max_keys: i32::try_from(ask.limit).ok(),
        is_truncated: Some(next_key.is_some()),
        versions: Some(versions),
        delete_markers: Some(markers),
        common_prefixes: Some(encode.prefixes(page.prefixes)),
        delimiter: encode.option(delimiter),
        next_key_marker: encode.option(next_key),
        next_version_id_marker: next_version.flatten(),
        encoding_type: encode.kind(),
        ..Default::default()
    }))
}

#[cfg(test)]
mod tests;
