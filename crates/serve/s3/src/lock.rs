//! Object Lock: decides whether a version may be removed or replaced, and whether its lock may be weakened. Pure:
//! attributes, the time and the caller's rights in, a verdict out.
//!
//! A retention lasts until its date, a legal hold until it is taken off. An attribute that cannot be read, because of
//! damage or because a newer program wrote it, counts as a lock that no caller may weaken.

use crate::attributes::{LEGAL_HOLD, LOCK_MODE, LOCK_UNTIL, OBJECT_LOCK};
use crate::dates::{LAST_MICROS, MICROS_PER_DAY, format_time, micros, parse_time, timestamp};
use s3s::dto::Timestamp;
use s3s::{S3Error, s3_error};
use std::fmt;
use std::str::FromStr;
use store::Attributes;
use time::{Date, Month, OffsetDateTime};

/// Dates are kept in whole milliseconds, the precision of S3.
const MILLI_MICROS: u64 = 1000;
/// The longest default retention, as in S3.
const MAX_DAYS: u32 = 36_500;
const MAX_YEARS: u32 = 100;
/// Attribute value of a bucket's lock without a default retention.
const ENABLED: &str = "enabled";

/// Mode of a retention: which callers may weaken it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Callers with the right to bypass governance may weaken it.
    Governance,
    /// No caller may weaken it.
    Compliance,
}

impl Mode {
    /// Name in S3 and in attributes.
    pub fn word(self) -> &'static str {
        match self {
            Self::Governance => "GOVERNANCE",
            Self::Compliance => "COMPLIANCE",
        }
    }
}

impl FromStr for Mode {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut all = [Self::Governance, Self::Compliance].into_iter();
        all.find(|mode| mode.word() == text).ok_or(())
    }
}

/// Retention of a version: until its end the version cannot be removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retention {
    /// Which callers may shorten it.
    pub mode: Mode,
    /// End of the retention: Unix time in microseconds, in whole milliseconds.
    pub until: u64,
}

impl Retention {
    /// A retention until `until`, rounded up to whole milliseconds.
    pub fn new(mode: Mode, until: u64) -> Self {
        let until = until.min(LAST_MICROS).next_multiple_of(MILLI_MICROS);
        Self { mode, until }
    }

    fn lasts(&self, now: u64) -> bool {
        now < self.until
    }
}

impl fmt::Display for Retention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let until = format_time(&timestamp(self.until)).unwrap_or_default();
        write!(f, "{} retention until {until}", self.mode.word())
    }
}

/// Lock of a version: as requested by a client, or as granted.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Lock {
    /// Its retention.
    pub retention: Option<Retention>,
    /// `Some(true)` for a legal hold, `Some(false)` for one taken off or refused, `None` if never set.
    pub hold: Option<bool>,
}

impl Lock {
    /// The attributes of a version with this lock.
    pub fn encode(&self) -> Attributes {
        let mut out = Attributes::new();
        if let Some(retention) = &self.retention
            && let Some(until) = format_time(&timestamp(retention.until))
        {
            let mode = retention.mode.word();
            out.insert(LOCK_MODE.to_owned(), mode.into());
            out.insert(LOCK_UNTIL.to_owned(), until.into());
        }
        if let Some(hold) = self.hold {
            out.insert(LEGAL_HOLD.to_owned(), hold_word(hold).into());
        }
        out
    }
}

/// A legal hold as S3 and attributes name it.
pub fn hold_word(hold: bool) -> &'static str {
    if hold { "ON" } else { "OFF" }
}

/// Parses the word of a legal hold.
pub fn parse_hold(text: &str) -> Option<bool> {
    [true, false]
        .into_iter()
        .find(|hold| hold_word(*hold) == text)
}

/// An attribute with a value that this program does not know.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the attribute {0} cannot be read, which counts as locked")]
pub struct Unreadable(pub &'static str);

/// Value of an attribute, if it can be read.
pub type Read<T> = Result<T, Unreadable>;

/// Lock of a version as read from its attributes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kept {
    /// Its retention.
    pub retention: Read<Option<Retention>>,
    /// Its legal hold.
    pub hold: Read<Option<bool>>,
}

impl Kept {
    /// Lock of a version with these attributes.
    pub fn of(attributes: &Attributes) -> Self {
        Self {
            retention: retention_of(attributes),
            hold: match attributes.get(LEGAL_HOLD) {
                None => Ok(None),
                Some(_) => match text(attributes, LEGAL_HOLD).and_then(parse_hold) {
                    Some(hold) => Ok(Some(hold)),
                    None => Err(Unreadable(LEGAL_HOLD)),
                },
            },
        }
    }

    /// The whole lock, if both parts can be read.
    pub fn read(&self) -> Read<Lock> {
        Ok(Lock {
            retention: self.retention?,
            hold: self.hold?,
        })
    }
}

fn text<'a>(attributes: &'a Attributes, name: &str) -> Option<&'a str> {
    std::str::from_utf8(attributes.get(name)?).ok()
}

/// A mode without a date, or a date without a mode, is unreadable.
fn retention_of(attributes: &Attributes) -> Read<Option<Retention>> {
    if [LOCK_MODE, LOCK_UNTIL]
        .iter()
        .all(|name| !attributes.contains_key(*name))
    {
        return Ok(None);
    }
    let mode = text(attributes, LOCK_MODE).and_then(|mode| mode.parse().ok());
    let until = text(attributes, LOCK_UNTIL).and_then(parse_until);
    Ok(Some(Retention::new(
        mode.ok_or(Unreadable(LOCK_MODE))?,
        until.ok_or(Unreadable(LOCK_UNTIL))?,
    )))
}

fn parse_until(text: &str) -> Option<u64> {
    micros(&parse_time(text)?)
}

/// Retention of new versions in a bucket, unless a request gives its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DefaultRetention {
    /// Which callers may shorten it.
    pub mode: Mode,
    /// Duration of the retention.
    pub period: Period,
}

/// Duration of a default retention, from the creation of a version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Period {
    /// Days of 24 hours.
    Days(u32),
    /// Calendar years.
    Years(u32),
}

impl Period {
    fn longest(self) -> u32 {
        match self {
            Self::Days(_) => MAX_DAYS,
            Self::Years(_) => MAX_YEARS,
        }
    }

    fn count(self) -> u32 {
        match self {
            Self::Days(count) | Self::Years(count) => count,
        }
    }

    /// Whether S3 has such a period: at least one, and at most 100 years.
    pub fn is_valid(self) -> bool {
        (1..=self.longest()).contains(&self.count())
    }

    /// End of a period that begins at `now`, both Unix time in microseconds.
    fn end(self, now: u64) -> u64 {
        match self {
            Self::Days(days) => now.saturating_add(MICROS_PER_DAY.saturating_mul(days.into())),
            // A date beyond the calendar is replaced by the last possible one.
            Self::Years(years) => years_later(now, years).unwrap_or(LAST_MICROS),
        }
    }
}

/// The same day and time `years` later; 1 March if that year has no 29 February.
fn years_later(now: u64, years: u32) -> Option<u64> {
    let date = OffsetDateTime::from(timestamp(now));
    let year = date.year().checked_add(i32::try_from(years).ok()?)?;
    let later = date.replace_year(year).or_else(|_| {
        Date::from_calendar_date(year, Month::March, 1).map(|day| date.replace_date(day))
    });
    micros(&Timestamp::from(later.ok()?))
}

/// Object Lock of a bucket.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct BucketLock {
    /// Retention of new versions for which none is requested.
    pub default: Option<DefaultRetention>,
}

impl BucketLock {
    /// Lock of a bucket with these attributes; `None` if it has none.
    pub fn of(attributes: &Attributes) -> Read<Option<Self>> {
        if !attributes.contains_key(OBJECT_LOCK) {
            return Ok(None);
        }
        let parsed = text(attributes, OBJECT_LOCK).and_then(Self::parse);
        parsed.map(Some).ok_or(Unreadable(OBJECT_LOCK))
    }

    fn parse(text: &str) -> Option<Self> {
        if text == ENABLED {
            return Some(Self::default());
        }
        let mut words = text.split(' ');
        let (mode, count, unit) = (words.next()?, words.next()?, words.next()?);
        let count = count.parse().ok()?;
        let period = match unit {
            "days" => Period::Days(count),
            "years" => Period::Years(count),
            _ => return None,
        };
        let mode = mode.parse().ok()?;
        let is_one = period.is_valid() && words.next().is_none();
        is_one.then_some(Self {
            default: Some(DefaultRetention { mode, period }),
        })
    }

    /// The attribute's value.
    pub fn encode(&self) -> String {
        let Some(DefaultRetention { mode, period }) = self.default else {
            return ENABLED.to_owned();
        };
        let unit = match period {
            Period::Days(_) => "days",
            Period::Years(_) => "years",
        };
        format!("{} {} {unit}", mode.word(), period.count())
    }
}

/// Why a lock does not allow a change, or cannot be granted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// A retention that has not ended.
    #[error("{0}")]
    Retained(Retention),
    /// A legal hold.
    #[error("a legal hold")]
    Held,
    /// A lock that cannot be read.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// The bucket has no Object Lock.
    #[error("Bucket is missing Object Lock Configuration")]
    NoBucketLock,
}

/// S3 tells clients only that there is a lock.
impl From<Refusal> for S3Error {
    fn from(why: Refusal) -> Self {
        match why {
            Refusal::Retained(_) | Refusal::Held => s3_error!(
                AccessDenied,
                "Access Denied because object protected by object lock."
            ),
            Refusal::Unreadable(unreadable) => s3_error!(
                AccessDenied,
                "Access Denied because object protected by object lock: {unreadable}"
            ),
            Refusal::NoBucketLock => s3_error!(InvalidRequest, "{why}"),
        }
    }
}

/// Whether a version may be removed or replaced. `bypass`: the caller may bypass governance, and asks for it.
pub fn may_delete(lock: &Kept, now: u64, bypass: bool) -> Result<(), Refusal> {
    if lock.hold?.unwrap_or_default() {
        return Err(Refusal::Held);
    }
    match lock.retention? {
        Some(retention) if retention.lasts(now) && !(bypass && is_governance(&retention)) => {
            Err(Refusal::Retained(retention))
        }
        _ => Ok(()),
    }
}

fn is_governance(retention: &Retention) -> bool {
    retention.mode == Mode::Governance
}

/// Whether a retention may be changed to `new`. While it lasts, it may be extended in the same mode; with `bypass`,
/// governance may be changed to anything.
pub fn may_change(
    old: Read<Option<Retention>>,
    new: Option<Retention>,
    now: u64,
    bypass: bool,
) -> Result<(), Refusal> {
    let Some(old) = old?.filter(|old| old.lasts(now)) else {
        return Ok(());
    };
    let is_longer = new.is_some_and(|new| new.mode == old.mode && new.until >= old.until);
    if is_longer || bypass && is_governance(&old) {
        return Ok(());
    }
    Err(Refusal::Retained(old))
}

/// Whether a legal hold may be put on (`new`) or taken off. Only administrators of the bucket may take one off. One that
/// cannot be read is not replaced either: what is put on can be taken off.
pub fn may_hold(old: Read<Option<bool>>, new: bool, is_admin: bool) -> Result<(), Refusal> {
    match old? {
        Some(true) if !new && !is_admin => Err(Refusal::Held),
        _ => Ok(()),
    }
}

/// The lock of a new version: the requested one, with the bucket's default retention if none was requested.
pub fn grant(bucket: Read<Option<BucketLock>>, asked: Lock, now: u64) -> Result<Lock, Refusal> {
    let default = match bucket {
        Ok(None) if asked == Lock::default() => return Ok(asked),
        Ok(None) => return Err(Refusal::NoBucketLock),
        Ok(Some(bucket)) => bucket.default,
        // The bucket has a lock, and with a requested retention its default is not needed.
        Err(_) if asked.retention.is_some() => None,
        Err(unreadable) => return Err(unreadable.into()),
    };
    let default = default.map(|default| Retention::new(default.mode, default.period.end(now)));
    Ok(Lock {
        retention: asked.retention.or(default),
        ..asked
    })
}

#[cfg(test)]
mod tests;
