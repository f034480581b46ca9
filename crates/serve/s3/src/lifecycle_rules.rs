//! Lifecycle rules: which objects of a bucket expire, and when.
//!
//! A bucket keeps its rules as S3's XML document. Ages are counted as in Amazon S3: from when an object was put, a
//! version replaced or an upload begun, rounded up to the next midnight (UTC).

use crate::attributes::{LIFECYCLE, TAGS};
use crate::dates::{MICROS_PER_DAY, format_date, micros, timestamp};
use crate::refusals::refuse;
use crate::tags::Tags;
use parking_lot::Mutex;
use s3s::dto::{
    BucketLifecycleConfiguration, ExpirationStatus, LifecycleExpiration, LifecycleRule,
    LifecycleRuleAndOperator, Tag, Timestamp,
};
use s3s::xml::{Deserialize, Deserializer, Serialize, Serializer};
use s3s::{S3Error, S3Result, s3_error};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::{Attributes, CollectionInfo, ObjectInfo, Store};

/// Most rules of a bucket.
const MAX_RULES: usize = 1000;
/// Buckets whose rules are kept in memory; a bucket's document has at most 1 MiB.
const MAX_RECENT: usize = 16;
/// Most characters of a rule's id.
const MAX_ID: usize = 255;
/// Most noncurrent versions that a rule can keep (`NewerNoncurrentVersions`).
const MAX_KEPT: u32 = 100;

/// The enabled rules of a bucket.
#[derive(Default, Debug)]
pub struct Rules(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    id: String,
    filter: Filter,
    /// When a current version expires, and a delete marker that is the only version of its key.
    current: Option<When>,
    /// Whether such delete markers expire at any age.
    lone_markers: bool,
    /// Days after which a replaced version expires, and how many of the newest replaced versions are kept.
    earlier: Option<(u64, u32)>,
    /// Days after its beginning at which an unfinished upload is aborted.
    uploads: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
enum When {
    Days(u64),
    /// Unix time in microseconds.
    At(u64),
}

impl When {
    fn micros(self, modified_micros: u64) -> u64 {
        match self {
            Self::Days(days) => midnight_after(modified_micros, days),
            Self::At(micros) => micros,
        }
    }
}

/// The objects that a rule applies to.
#[derive(Default, Debug)]
struct Filter {
    prefix: String,
    tags: Vec<(String, String)>,
    more_than: Option<u64>,
    less_than: Option<u64>,
}

/// A version or an upload in a bucket, for which rules are evaluated.
pub struct Seen<'a> {
    /// Its key.
    pub key: &'a str,
    /// When it was put or begun, Unix time in microseconds.
    pub modified_micros: u64,
    /// Its kind, as rules distinguish it.
    pub what: What<'a>,
}

/// Kinds of objects that rules distinguish.
pub enum What<'a> {
    /// The current version.
    Current(Object<'a>),
    /// A delete marker that is the only version of its key.
    LoneMarker,
    /// A noncurrent version: the object (`None` for a delete marker), when it was replaced (Unix time in
    /// microseconds), and how many versions were replaced since.
    Earlier(Option<Object<'a>>, u64, usize),
    /// An unfinished upload.
    Upload,
}

/// Properties of an object that filters test, besides its key.
#[derive(Clone, Copy)]
pub struct Object<'a> {
    /// Bytes of data.
    pub size: u64,
    /// The store's attributes, which have the tags.
    pub attributes: &'a Attributes,
}

/// Expiry of an object, and the rule behind it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Fate {
    /// Time of the expiry, Unix time in microseconds.
    pub at_micros: u64,
    /// The rule's id.
    pub rule: String,
}

impl Rules {
    /// The enabled rules of this bucket.
    ///
    /// # Errors
    /// The bucket's document cannot be parsed.
    pub fn of(bucket: &CollectionInfo) -> S3Result<Self> {
        let Some(document) = bucket.attributes.get(LIFECYCLE) else {
            return Ok(Self::default());
        };
        let rules = decode(document)?.rules;
        Ok(Self(rules.iter().filter_map(Rule::of).collect()))
    }

    /// Whether no rule is enabled.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Prefixes of the keys that rules for objects apply to, in order; none is a prefix of another.
    pub fn prefixes(&self) -> Vec<&str> {
        let about_objects =
            |rule: &&Rule| rule.current.is_some() || rule.lone_markers || rule.earlier.is_some();
        let rules = self.0.iter().filter(about_objects);
        let mut prefixes: Vec<&str> = rules.map(|rule| &*rule.filter.prefix).collect();
        prefixes.sort_unstable();
        prefixes.dedup_by(|prefix, before| prefix.starts_with(&**before));
        prefixes
    }

    /// The earliest expiry by any rule.
    pub fn fate(&self, seen: &Seen<'_>) -> Option<Fate> {
        let rules = self.0.iter();
        let fates = rules.filter_map(|rule| Some((rule.fate(seen)?, rule)));
        let (at_micros, rule) = fates.min_by_key(|(at, _)| *at)?;
        Some(Fate {
            at_micros,
            rule: rule.id.clone(),
        })
    }
}

/// Parsed rules by bucket, so that not every answer has to parse the document.
#[derive(Clone, Default)]
pub struct Recent(Arc<Mutex<BTreeMap<String, Known>>>);

/// A document and its parsed rules.
type Known = (Vec<u8>, Arc<Rules>);

impl Recent {
    /// Value of `x-amz-expiration` for an object just written. It only informs, so that a race does no harm.
    pub fn header_of(&self, store: &Store, bucket: &str, key: &str) -> Option<String> {
        let bucket = store.collection(bucket).ok()??;
        if !bucket.attributes.contains_key(LIFECYCLE) {
            return None;
        }
        let info = store.stat(&bucket.name, key).ok()??;
        self.fate(&bucket, key, &info)?.header()
    }

    /// When a current version expires. With rules that cannot be read, nothing expires.
    pub fn fate(&self, bucket: &CollectionInfo, key: &str, info: &ObjectInfo) -> Option<Fate> {
        let document = bucket.attributes.get(LIFECYCLE)?;
        let known = self.0.lock().get(&bucket.name).cloned();
        let rules = match known.filter(|(known, _)| known == document) {
            Some((_, rules)) => rules,
            None => {
                let rules = Arc::new(Rules::of(bucket).ok()?);
                let mut recent = self.0.lock();
                if recent.len() >= MAX_RECENT {
                    recent.clear();
                }
                recent.insert(bucket.name.clone(), (document.clone(), rules.clone()));
                rules
            }
        };
        rules.fate(&Seen {
            key,
            modified_micros: info.modified_micros,
            what: What::Current(Object {
                size: info.size,
                attributes: &info.attributes,
            }),
        })
    }
}

impl Fate {
    /// Value of the header `x-amz-expiration`.
    pub fn header(&self) -> Option<String> {
        let date = format_date(&timestamp(self.at_micros))?;
        let id = form_urlencoded::byte_serialize(self.rule.as_bytes());
        let id: String = id.collect();
        Some(format!("expiry-date=\"{date}\", rule-id=\"{id}\""))
    }
}

impl Rule {
    /// `None` for a rule that is not enabled or has values that cannot be used.
    fn of(rule: &LifecycleRule) -> Option<Self> {
        if rule.status.as_str() != ExpirationStatus::ENABLED {
            return None;
        }
        let mut current = None;
        let mut lone_markers = false;
        if let Some(expiration) = &rule.expiration {
            current = match (&expiration.days, &expiration.date) {
                (Some(days), _) => Some(When::Days(u64::try_from(*days).ok()?)),
                // Earlier programs kept the hours of a date's offset and left out the offset. The midnight (UTC) that the
                // client sent is at most a day away; a day late does less harm than an hour early.
                (None, Some(date)) => Some(When::At(midnight_after(moment(date), 0))),
                (None, None) => None,
            };
            lone_markers = expiration.expired_object_delete_marker == Some(true);
        }
        let earlier = match &rule.noncurrent_version_expiration {
            Some(expiration) => Some((
                u64::try_from(expiration.noncurrent_days?).ok()?,
                u32::try_from(expiration.newer_noncurrent_versions.unwrap_or(0)).ok()?,
            )),
            None => None,
        };
        let uploads = match &rule.abort_incomplete_multipart_upload {
            Some(abort) => Some(u64::try_from(abort.days_after_initiation?).ok()?),
            None => None,
        };
        Some(Self {
            id: rule.id.clone().unwrap_or_default(),
            filter: Filter::of(rule)?,
            current,
            lone_markers,
            earlier,
            uploads,
        })
    }

    fn fate(&self, seen: &Seen<'_>) -> Option<u64> {
        let object = match seen.what {
            What::Current(object) => Some(object),
            What::Earlier(object, ..) => object,
            What::LoneMarker | What::Upload => None,
        };
        if !self.filter.takes(seen.key, object) {
            return None;
        }
        match seen.what {
            What::Current(_) => Some(self.current?.micros(seen.modified_micros)),
            What::LoneMarker if self.lone_markers => Some(seen.modified_micros),
            What::LoneMarker => Some(self.current?.micros(seen.modified_micros)),
            What::Earlier(_, since_micros, newer) => {
                let (days, kept) = self.earlier?;
                (newer >= kept as usize).then(|| midnight_after(since_micros, days))
            }
            What::Upload => Some(midnight_after(seen.modified_micros, self.uploads?)),
        }
    }
}

impl Filter {
    /// `None` for conditions that no object can meet.
    fn of(rule: &LifecycleRule) -> Option<Self> {
        let size = |bytes: Option<i64>| bytes.map(u64::try_from).transpose().ok();
        let tag = |tag: &Tag| Some((tag.key.clone()?, tag.value.clone()?));
        let Some(filter) = &rule.filter else {
            return Some(Self {
                prefix: rule.prefix.clone().unwrap_or_default(),
                ..Self::default()
            });
        };
        // Without `And`, the filter's own fields are the conditions.
        let all = filter.and.clone().unwrap_or(LifecycleRuleAndOperator {
            prefix: filter.prefix.clone(),
            tags: filter.tag.clone().map(|tag| vec![tag]),
            object_size_greater_than: filter.object_size_greater_than,
            object_size_less_than: filter.object_size_less_than,
        });
        Some(Self {
            prefix: all.prefix.unwrap_or_default(),
            tags: all.tags.iter().flatten().map(tag).collect::<Option<_>>()?,
            more_than: size(all.object_size_greater_than)?,
            less_than: size(all.object_size_less_than)?,
        })
    }

    fn is_about_objects(&self) -> bool {
        !self.tags.is_empty() || self.more_than.is_some() || self.less_than.is_some()
    }

    fn takes(&self, key: &str, object: Option<Object<'_>>) -> bool {
        key.starts_with(&self.prefix)
            && match object {
                Some(object) => {
                    self.more_than.is_none_or(|bytes| object.size > bytes)
                        && self.less_than.is_none_or(|bytes| object.size < bytes)
                        && self.has_tags(object.attributes)
                }
                None => !self.is_about_objects(),
            }
    }

    fn has_tags(&self, attributes: &Attributes) -> bool {
        if self.tags.is_empty() {
            return true;
        }
        let kept = attributes.get(TAGS).map(Vec::as_slice).unwrap_or_default();
        let kept = Tags::decode(std::str::from_utf8(kept).unwrap_or_default());
        let has = |(key, value): &(String, String)| kept.iter().any(|tag| tag == (key, value));
        self.tags.iter().all(has)
    }
}

/// The first midnight (UTC) at or after `micros`, and `days` days later.
fn midnight_after(micros: u64, days: u64) -> u64 {
    let day = micros.div_ceil(MICROS_PER_DAY).saturating_add(days);
    day.saturating_mul(MICROS_PER_DAY)
}

/// Checks the rules that a client sends. Rules without an id get one from `new_id`.
///
/// # Errors
/// The rules are invalid, or use what this server does not implement.
pub fn admit(
    mut rules: BucketLifecycleConfiguration,
    mut new_id: impl FnMut() -> String,
) -> S3Result<BucketLifecycleConfiguration> {
    if rules.rules.is_empty() || rules.rules.len() > MAX_RULES {
        return Err(s3_error!(
            MalformedXML,
            "A bucket has between 1 and {MAX_RULES} lifecycle rules"
        ));
    }
    let mut ids = BTreeSet::new();
    for rule in &mut rules.rules {
        let id = rule.id.take().filter(|id| !id.is_empty());
        let id = id.unwrap_or_else(&mut new_id);
        if id.chars().count() > MAX_ID {
            return Err(invalid(&format!(
                "The ID of a rule has at most {MAX_ID} characters"
            )));
        }
        if !ids.insert(id.clone()) {
            return Err(invalid(
                "Rule ID must be unique. Found same ID for more than one rule",
            ));
        }
        rule.id = Some(id);
        check(rule)?;
        if let Some(expiration) = &mut rule.expiration {
            // In UTC: the document has no other offset.
            let date = expiration.date.as_ref().and_then(micros);
            expiration.date = date.map(timestamp).or(expiration.date.take());
        }
    }
    Ok(rules)
}

fn invalid(why: &str) -> S3Error {
    s3_error!(InvalidArgument, "{why}")
}

fn check(rule: &LifecycleRule) -> S3Result<()> {
    let transitions = rule.transitions.is_some() || rule.noncurrent_version_transitions.is_some();
    refuse(&[(transitions, "Moving objects to another storage class")])?;
    if !matches!(
        rule.status.as_str(),
        ExpirationStatus::ENABLED | ExpirationStatus::DISABLED
    ) {
        return Err(s3_error!(
            MalformedXML,
            "The status of a rule is Enabled or Disabled"
        ));
    }
    check_filter(rule)?;
    let filter = Filter::of(rule).ok_or_else(|| invalid("A size in a filter is no size"))?;
    let (expiration, earlier, uploads) = (
        &rule.expiration,
        &rule.noncurrent_version_expiration,
        &rule.abort_incomplete_multipart_upload,
    );
    if expiration.is_none() && earlier.is_none() && uploads.is_none() {
        return Err(s3_error!(
            InvalidRequest,
            "At least one action needs to be specified in a rule"
        ));
    }
    if let Some(expiration) = expiration {
        check_expiration(expiration, &filter)?;
    }
    if let Some(earlier) = earlier {
        check_days("NoncurrentVersionExpiration", earlier.noncurrent_days)?;
        let kept = earlier.newer_noncurrent_versions;
        if kept.is_some_and(|kept| !(1..=MAX_KEPT).contains(&u32::try_from(kept).unwrap_or(0))) {
            return Err(invalid(&format!(
                "NewerNoncurrentVersions is between 1 and {MAX_KEPT}"
            )));
        }
    }
    if let Some(uploads) = uploads {
        check_days(
            "AbortIncompleteMultipartUpload",
            uploads.days_after_initiation,
        )?;
        if filter.is_about_objects() {
            return Err(s3_error!(
                InvalidRequest,
                "AbortIncompleteMultipartUpload cannot be specified with tags or sizes: an upload has none"
            ));
        }
    }
    Ok(())
}

fn check_expiration(expiration: &LifecycleExpiration, filter: &Filter) -> S3Result<()> {
    let said = [
        expiration.days.is_some(),
        expiration.date.is_some(),
        expiration.expired_object_delete_marker.is_some(),
    ];
    if said.iter().filter(|said| **said).count() != 1 {
        return Err(s3_error!(
            MalformedXML,
            "An expiration has one of Days, Date and ExpiredObjectDeleteMarker"
        ));
    }
    if expiration.days.is_some() {
        check_days("Expiration", expiration.days)?;
    }
    if let Some(date) = &expiration.date
        && !moment(date).is_multiple_of(MICROS_PER_DAY)
    {
        return Err(invalid("'Date' must be at midnight GMT"));
    }
    if expiration.expired_object_delete_marker.is_some() && filter.is_about_objects() {
        return Err(s3_error!(
            InvalidRequest,
            "ExpiredObjectDeleteMarker cannot be specified with tags or sizes: a delete marker has none"
        ));
    }
    Ok(())
}

fn check_days(action: &str, days: Option<i32>) -> S3Result<()> {
    match days {
        Some(1..) => Ok(()),
        Some(_) => Err(invalid(&format!(
            "The days of {action} must be a positive integer"
        ))),
        None => Err(s3_error!(MalformedXML, "{action} has no days")),
    }
}

/// A rule has a filter with one condition, a filter with several inside `And`, or a prefix of its own (older
/// clients).
fn check_filter(rule: &LifecycleRule) -> S3Result<()> {
    let malformed = |why: &str| Err(s3_error!(MalformedXML, "{why}"));
    let filter = match (&rule.filter, &rule.prefix) {
        (None, Some(_)) => return Ok(()),
        (Some(filter), None) => filter,
        _ => return malformed("A rule has either a filter or a prefix"),
    };
    let said = [
        filter.and.is_some(),
        filter.prefix.is_some(),
        filter.tag.is_some(),
        filter.object_size_greater_than.is_some(),
        filter.object_size_less_than.is_some(),
    ];
    if said.iter().filter(|said| **said).count() > 1 {
        return malformed("A filter that says several things says them within And");
    }
    let tags = filter.and.as_ref().and_then(|and| and.tags.as_ref());
    let tags = tags.into_iter().flatten().chain(&filter.tag);
    let mut pairs = Vec::new();
    for tag in tags {
        let (Some(key), Some(value)) = (&tag.key, &tag.value) else {
            return malformed("A tag has a key and a value");
        };
        pairs.push((key.clone(), value.clone()));
    }
    Tags::new(pairs).map(|_| ())
}

/// Unix time in microseconds; 0, which has passed as well, for dates before 1970.
fn moment(date: &Timestamp) -> u64 {
    micros(date).unwrap_or(0)
}

/// Serialises rules into the document that a bucket keeps.
pub fn encode(rules: &BucketLifecycleConfiguration) -> S3Result<Vec<u8>> {
    let mut document = Vec::new();
    let written = rules.serialize(&mut Serializer::new(&mut document));
    written.map_err(|error| s3_error!(error, InternalError))?;
    Ok(document)
}

/// Parses a bucket's document.
///
/// # Errors
/// The document cannot be parsed.
pub fn decode(document: &[u8]) -> S3Result<BucketLifecycleConfiguration> {
    let read = BucketLifecycleConfiguration::deserialize(&mut Deserializer::new(document));
    read.map_err(|_| {
        s3_error!(
            InternalError,
            "What the bucket keeps as lifecycle rules is damaged: nothing expires until they are put again"
        )
    })
}
