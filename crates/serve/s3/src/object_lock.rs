//! The operations of Object Lock on buckets and versions, and the lock headers of new versions.
//!
//! [`lock`] decides what is allowed, at the time of the change and while no other change of the key runs. A key with
//! the right to write creates locks and strengthens them. To weaken one, where that is possible at all, it has to
//! administer the bucket too.

use crate::attributes::{LOCK_MODE, LOCK_UNTIL};
use crate::collections::require;
use crate::dates::{micros, timestamp};
use crate::errors::condition_error;
use crate::gateway::Gateway;
use crate::keyring::Key;
use crate::lock::{
    self, BucketLock, DefaultRetention, Kept, Lock, Mode, Period, Read, Refusal, Retention,
    Unreadable,
};
use crate::record::Record;
use crate::rights::{Need, Right};
use crate::versions;
use http::Extensions;
use s3s::dto::*;
use s3s::{S3Error, S3Request, S3Response, S3Result, s3_error};
use std::sync::Arc;
use store::{Attributes, Condition, Store, Transaction};

/// Whether the key of a request administers a bucket.
fn is_admin(extensions: &Extensions, bucket: &str) -> bool {
    let key = extensions.get::<Arc<Key>>();
    let need = Need::One(Right::Admin);
    key.is_some_and(|key| key.rights.allow(need, Some(bucket), None))
}

/// Whether a request bypasses governance: it asks for it, and its key may. The audit log records that, whether or not
/// there is anything to bypass.
pub fn bypasses(extensions: &Extensions, bucket: &str, said: Option<bool>) -> bool {
    let bypasses = said == Some(true) && is_admin(extensions, bucket);
    if bypasses && let Some(record) = extensions.get::<Arc<Record>>() {
        record.does("governance bypassed");
    }
    bypasses
}

/// The lock that the headers of a put, a copy or an upload request.
pub fn asked(
    mode: Option<&str>,
    until: Option<&Timestamp>,
    hold: Option<&str>,
    now: u64,
) -> S3Result<Lock> {
    let retention = match (mode, until) {
        (None, None) => None,
        (Some(mode), Some(until)) => {
            let unknown = |()| s3_error!(InvalidArgument, "Unknown wormMode directive.");
            Some(future(mode.parse().map_err(unknown)?, until, now)?)
        }
        _ => {
            return Err(s3_error!(
                InvalidArgument,
                "x-amz-object-lock-retain-until-date and x-amz-object-lock-mode must both be supplied."
            ));
        }
    };
    let wrong = || {
        s3_error!(
            InvalidArgument,
            "Legal Hold must be either of 'ON' or 'OFF'"
        )
    };
    let hold = hold.map(|hold| lock::parse_hold(hold).ok_or_else(wrong));
    Ok(Lock {
        retention,
        hold: hold.transpose()?,
    })
}

/// Calls [`asked`] with the lock fields of an input.
macro_rules! asked_of {
    ($input:expr, $now:expr) => {{
        let input = &$input;
        $crate::object_lock::asked(
            input.object_lock_mode.as_ref().map(|mode| mode.as_str()),
            input.object_lock_retain_until_date.as_ref(),
            input
                .object_lock_legal_hold_status
                .as_ref()
                .map(|hold| hold.as_str()),
            $now,
        )
    }};
}
pub(crate) use asked_of;

/// Sets the lock fields of a GetObject or HeadObject output. Unreadable values are left out: GetObjectRetention and
/// GetObjectLegalHold report them.
macro_rules! tell_lock {
    ($output:expr, $kept:expr) => {{
        let kept: &$crate::lock::Kept = $kept;
        if let Ok(Some(retention)) = kept.retention {
            $output.object_lock_mode = Some(ObjectLockMode::from_static(retention.mode.word()));
            $output.object_lock_retain_until_date = Some($crate::dates::timestamp(retention.until));
        }
        if let Ok(Some(hold)) = kept.hold {
            let word = $crate::lock::hold_word(hold);
            $output.object_lock_legal_hold_status =
                Some(ObjectLockLegalHoldStatus::from_static(word));
        }
    }};
}
pub(crate) use tell_lock;

/// A retention, which has to end after `now`.
fn future(mode: Mode, until: &Timestamp, now: u64) -> S3Result<Retention> {
    match micros(until) {
        Some(until) if until > now => Ok(Retention::new(mode, until)),
        _ => Err(s3_error!(
            InvalidArgument,
            "The retain until date must be in the future!"
        )),
    }
}

fn malformed(why: &str) -> S3Error {
    s3_error!(MalformedXML, "{why}")
}

/// PutObjectLockConfiguration.
pub async fn put_configuration(
    gateway: &Gateway,
    request: S3Request<PutObjectLockConfigurationInput>,
) -> S3Result<S3Response<PutObjectLockConfigurationOutput>> {
    let input = request.input;
    let missing = || s3_error!(MissingRequestBodyError, "Request Body is empty");
    let wanted = input.object_lock_configuration.ok_or_else(missing)?;
    let enabled = wanted.object_lock_enabled.as_ref();
    if enabled.map(ObjectLockEnabled::as_str) != Some(ObjectLockEnabled::ENABLED) {
        return Err(malformed("ObjectLockEnabled is Enabled"));
    }
    let default = wanted.rule.map(default_retention).transpose()?;
    let (bucket, locks) = (input.bucket, gateway.locks.clone());
    gateway
        .call(move |store| locks.set_lock(store, &bucket, BucketLock { default }))
        .await?;
    Ok(S3Response::new(PutObjectLockConfigurationOutput::default()))
}

fn default_retention(rule: ObjectLockRule) -> S3Result<DefaultRetention> {
    let none = || malformed("A rule has a DefaultRetention with Mode and either Days or Years");
    let wanted = rule.default_retention.ok_or_else(none)?;
    let mode = wanted
        .mode
        .and_then(|mode| mode.as_str().parse::<Mode>().ok());
    let mode = mode.ok_or_else(none)?;
    let (count, period) = match (wanted.days, wanted.years) {
        (Some(days), None) => (days, Period::Days as fn(u32) -> Period),
        (None, Some(years)) => (years, Period::Years as fn(u32) -> Period),
        _ => return Err(none()),
    };
    let period = match u32::try_from(count) {
        Ok(count @ 1..) => period(count),
        _ => {
            return Err(s3_error!(
                InvalidArgument,
                "Default retention period must be a positive integer value."
            ));
        }
    };
    if !period.is_valid() {
        return Err(s3_error!(
            InvalidArgument,
            "Default retention period too large."
        ));
    }
    Ok(DefaultRetention { mode, period })
}

/// GetObjectLockConfiguration.
pub async fn get_configuration(
    gateway: &Gateway,
    request: S3Request<GetObjectLockConfigurationInput>,
) -> S3Result<S3Response<GetObjectLockConfigurationOutput>> {
    let bucket = request.input.bucket;
    let info = gateway.call(move |store| require(store, &bucket)).await?;
    let found = BucketLock::of(&info.attributes).map_err(damaged)?;
    let none = || {
        s3_error!(
            ObjectLockConfigurationNotFoundError,
            "Object Lock configuration does not exist for this bucket."
        )
    };
    let rule = |default: DefaultRetention| {
        let count = |count| i32::try_from(count).ok();
        let (days, years) = match default.period {
            Period::Days(days) => (count(days), None),
            Period::Years(years) => (None, count(years)),
        };
        let default = s3s::dto::DefaultRetention {
            days,
            mode: Some(ObjectLockRetentionMode::from_static(default.mode.word())),
            years,
        };
        ObjectLockRule {
            default_retention: Some(default),
        }
    };
    let configuration = ObjectLockConfiguration {
        object_lock_enabled: Some(ObjectLockEnabled::from_static(ObjectLockEnabled::ENABLED)),
        rule: found.ok_or_else(none)?.default.map(rule),
    };
    Ok(S3Response::new(GetObjectLockConfigurationOutput {
        object_lock_configuration: Some(configuration),
    }))
}

/// A version in a request: bucket, key and, unless it is the current one, its id.
type Named = (String, String, Option<String>);

/// PutObjectRetention.
pub async fn put_retention(
    gateway: &Gateway,
    request: S3Request<PutObjectRetentionInput>,
) -> S3Result<S3Response<PutObjectRetentionOutput>> {
    let input = request.input;
    let wanted = input.retention.unwrap_or_default();
    let retention = match (wanted.mode, wanted.retain_until_date) {
        (None, None) => None,
        (Some(mode), Some(until)) => {
            let mode = mode.as_str().parse::<Mode>();
            let mode = mode.map_err(|()| malformed("Mode is GOVERNANCE or COMPLIANCE"))?;
            Some(future(mode, &until, (gateway.clock)())?)
        }
        _ => return Err(malformed("A retention has a Mode and a RetainUntilDate")),
    };
    let bypass = input.bypass_governance_retention;
    let bypass = bypasses(&request.extensions, &input.bucket, bypass);
    let version = (input.bucket, input.key, input.version_id);
    change(gateway, version, move |kept, now| {
        lock::may_change(kept.retention, retention, now, bypass)?;
        let hold = None;
        let removed: &[_] = match retention {
            Some(_) => &[],
            None => &[LOCK_MODE, LOCK_UNTIL],
        };
        Ok((Lock { retention, hold }.encode(), removed))
    })
    .await?;
    Ok(S3Response::new(PutObjectRetentionOutput::default()))
}

/// GetObjectRetention.
pub async fn get_retention(
    gateway: &Gateway,
    request: S3Request<GetObjectRetentionInput>,
) -> S3Result<S3Response<GetObjectRetentionOutput>> {
    let input = request.input;
    let version = (input.bucket, input.key, input.version_id);
    let found = look(gateway, version, |kept| kept.retention).await?;
    Ok(S3Response::new(GetObjectRetentionOutput {
        retention: Some(ObjectLockRetention {
            mode: Some(ObjectLockRetentionMode::from_static(found.mode.word())),
            retain_until_date: Some(timestamp(found.until)),
        }),
    }))
}

/// PutObjectLegalHold.
pub async fn put_legal_hold(
    gateway: &Gateway,
    request: S3Request<PutObjectLegalHoldInput>,
) -> S3Result<S3Response<PutObjectLegalHoldOutput>> {
    let input = request.input;
    let status = input.legal_hold.and_then(|hold| hold.status);
    let hold = status.and_then(|status| lock::parse_hold(status.as_str()));
    let hold = hold.ok_or_else(|| malformed("Status is ON or OFF"))?;
    let is_admin = is_admin(&request.extensions, &input.bucket);
    let version = (input.bucket, input.key, input.version_id);
    change(gateway, version, move |kept, _| {
        lock::may_hold(kept.hold, hold, is_admin)?;
        let (retention, hold) = (None, Some(hold));
        let removed: &[_] = &[];
        Ok((Lock { retention, hold }.encode(), removed))
    })
    .await?;
    Ok(S3Response::new(PutObjectLegalHoldOutput::default()))
}

/// GetObjectLegalHold.
pub async fn get_legal_hold(
    gateway: &Gateway,
    request: S3Request<GetObjectLegalHoldInput>,
) -> S3Result<S3Response<GetObjectLegalHoldOutput>> {
    let input = request.input;
    let version = (input.bucket, input.key, input.version_id);
    let hold = look(gateway, version, |kept| kept.hold).await?;
    let status = ObjectLockLegalHoldStatus::from_static(lock::hold_word(hold));
    Ok(S3Response::new(GetObjectLegalHoldOutput {
        legal_hold: Some(ObjectLockLegalHold {
            status: Some(status),
        }),
    }))
}

/// Error for a lock attribute that cannot be read.
fn damaged(unreadable: Unreadable) -> S3Error {
    tracing::error!(%unreadable, "object lock");
    s3_error!(InternalError, "{unreadable}")
}

/// One part of a version's lock.
async fn look<T: Send + 'static>(
    gateway: &Gateway,
    (bucket, key, version): Named,
    of: fn(&Kept) -> Read<Option<T>>,
) -> S3Result<T> {
    let find = move |store: &Store| {
        let found = versions::stat(store, &bucket, &key, version.as_deref())?;
        if BucketLock::of(&require(store, &bucket)?.attributes) == Ok(None) {
            return Err(Refusal::NoBucketLock.into());
        }
        of(&Kept::of(&found.found.attributes)).map_err(damaged)
    };
    let none = || {
        s3_error!(
            NoSuchObjectLockConfiguration,
            "The specified object does not have a ObjectLock configuration."
        )
    };
    gateway.call(find).await?.ok_or_else(none)
}

/// Attributes to set, and names of attributes to remove.
type Changed = (Attributes, &'static [&'static str]);

/// Changes lock attributes of a version if `judge` allows it at that time. The version's data and modification time
/// stay.
async fn change(
    gateway: &Gateway,
    (bucket, key, version): Named,
    judge: impl FnOnce(&Kept, u64) -> Result<Changed, Refusal> + Send + 'static,
) -> S3Result<()> {
    let locks = gateway.locks.clone();
    let change = move |store: &Store| {
        let change = locks.change(store, &bucket, &key)?;
        let found = versions::stat(store, &bucket, &key, version.as_deref())?;
        change.require_lock()?;
        let (set, remove) = judge(&Kept::of(&found.found.attributes), change.now)?;
        let mut transaction = Transaction::new();
        transaction
            .require(&found.collection, &found.name, Condition::Present)
            .update_attributes(&found.collection, &found.name, set, remove);
        let done = store.commit(transaction);
        done.map_err(|error| condition_error(store, &bucket, &key, &[Condition::Present], error))
    };
    gateway.call(change).await
}
