//! Admits requests: rights, quotas and permits.
//!
//! `s3s` verifies SigV4 signatures; [`head`](crate::head) refuses what `s3s` would accept and this server does not.
//! Here follow the checks whether the [operation](crate::operations) knows all of the request, and whether the key
//! has the [rights](crate::rights) for it and is within its quota; then a request that costs memory waits for one of
//! a limited number of [permits](Permit). Permits are taken after the signature has been verified and before the body
//! is read, so that callers without a key cannot hold any.

use crate::config::{ClientQuotas, Limits};
use crate::errors::{slow_down, wrong_payload_hash};
use crate::gateway::OWNER;
use crate::keyring::{Key, Keyring, unknown_key};
use crate::operations::{self, Cost, Operation};
use crate::record::{Caller, Record, bucket_of};
use http::HeaderMap;
use objects::digest::{Algorithm, parse_hex};
use objects::{Flow, Line, Peer, Permit, Pressure};
use s3s::access::{S3Access, S3AccessContext};
use s3s::dto::CopySource;
use s3s::path::S3Path;
use s3s::{S3Result, s3_error};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

/// Extension of a request without a body.
#[derive(Clone, Copy)]
pub struct NoBody;

/// Admits requests to their operations.
pub struct Gate {
    keys: Keyring,
    quotas: ClientQuotas,
    uploads: Arc<Line>,
    downloads: Arc<Line>,
    documents: Arc<Line>,
    turn_timeout: Duration,
}

impl Gate {
    /// Admits these keys, with as many permits of each kind as `limits` says.
    pub fn new(keys: Keyring, quotas: ClientQuotas, limits: &Limits) -> Self {
        let pressure = Pressure {
            turn_timeout: limits.turn_timeout,
            patience: limits.busy_patience,
            min_bytes_per_second: limits.busy_bytes_per_second,
        };
        Self {
            keys,
            quotas,
            uploads: Line::new(limits.max_uploads, pressure),
            downloads: Line::new(limits.max_downloads, pressure),
            documents: Line::new(limits.max_documents, pressure),
            turn_timeout: limits.turn_timeout,
        }
    }

    /// Waits for a permit if the request needs one.
    async fn turn(
        &self,
        cost: Cost,
        asker: IpAddr,
        flow: Flow,
        peer: Option<Arc<Peer>>,
    ) -> S3Result<Option<Permit>> {
        let line = match cost {
            Cost::Free => return Ok(None),
            Cost::Document => &self.documents,
            Cost::Upload => &self.uploads,
            Cost::Download => &self.downloads,
        };
        // A download's body is not polled while its client reads nothing, so only closing the connection ends it.
        let peer = peer.filter(|_| cost == Cost::Download);
        let permit = line.take(asker, flow, peer).await;
        let slow_down = || s3_error!(SlowDown, "Please reduce your request rate");
        permit.ok_or_else(slow_down).map(Some)
    }

    /// Counts a signed request against its key's quota.
    fn count(&self, key: &str, peer: Option<&Arc<Peer>>, record: Option<&Record>) -> S3Result<()> {
        let admitted = self.quotas.key.admit(key.to_owned(), peer);
        let account = admitted.map_err(|why| slow_down("key", why, peer.map(Arc::as_ref)))?;
        if let (Some(account), Some(record)) = (account, record) {
            record.charge_key(account);
        }
        Ok(())
    }
}

/// Whether a key may carry out the operation on its bucket and on the bucket of a copy's source.
fn check_rights(
    key: &Key,
    operation: &Operation,
    path: &S3Path,
    headers: &HeaderMap,
) -> S3Result<()> {
    // A source that cannot be parsed counts as the bucket "", which only admin keys and grants of `*` may read.
    let source = headers.get("x-amz-copy-source").map(|text| {
        let source = text.to_str().ok().and_then(source_bucket);
        source.unwrap_or_default()
    });
    let is_allowed = (key.rights).allow(operation.need, bucket_of(path), source.as_deref());
    if is_allowed {
        return Ok(());
    }
    Err(s3_error!(
        AccessDenied,
        "Access Denied: the key has no right to this"
    ))
}

/// The bucket of a copy's source. The operation takes a `+` for a space, of which no bucket's name has one.
fn source_bucket(header: &str) -> Option<String> {
    match CopySource::parse(header).ok()? {
        CopySource::Bucket { bucket, .. } => Some(bucket.into()),
        _ => None,
    }
}

/// Without a body, the hash that was signed has to be that of no bytes.
fn check_hash_of_nothing(headers: &HeaderMap) -> S3Result<()> {
    let signed = headers
        .get("x-amz-content-sha256")
        .and_then(|value| parse_hex::<32>(value.to_str().ok()?));
    match signed {
        Some(hash) if hash[..] != Algorithm::Sha256.of(b"") => Err(wrong_payload_hash()),
        _ => Ok(()),
    }
}

#[async_trait::async_trait]
impl S3Access for Gate {
    async fn check(&self, context: &mut S3AccessContext<'_>) -> S3Result<()> {
        let Some(credentials) = context.credentials() else {
            return Err(s3_error!(
                AccessDenied,
                "Access Denied: requests must be signed"
            ));
        };
        let name = credentials.access_key.clone();
        let record = context.extensions_mut().get::<Arc<Record>>().cloned();
        if let Some(record) = &record {
            let operation = operations::by_name(context.s3_op().name());
            record.identify(Caller::new(&name, operation, context.s3_path()));
        }
        let peer = context.extensions_mut().get::<Arc<Peer>>().cloned();
        let asker = peer
            .as_ref()
            .map_or(Ipv4Addr::UNSPECIFIED.into(), |peer| peer.asker());
        if let Some(peer) = &peer
            && !peer.admit(self.turn_timeout).await
        {
            return Err(s3_error!(SlowDown, "Too many clients are connected"));
        }
        let operation = operations::admit(
            context.s3_op().name(),
            context.method(),
            context.s3_path(),
            context.uri().query().unwrap_or_default(),
            context.headers(),
            OWNER,
        )?;
        // The key may have been revoked while the signature was verified.
        let key = self.keys.key(&name).ok_or_else(unknown_key)?;
        check_rights(&key, operation, context.s3_path(), context.headers())?;
        self.count(&name, peer.as_ref(), record.as_deref())?;
        context.extensions_mut().insert(key);
        if context.extensions_mut().get::<NoBody>().is_some() {
            check_hash_of_nothing(context.headers())?;
        }
        let flow = context.extensions_mut().get::<Flow>().cloned();
        let flow = flow.unwrap_or_default();
        if let Some(permit) = self.turn(operation.cost, asker, flow, peer).await? {
            if let (Cost::Document, Some(record)) = (operation.cost, &record) {
                record.keep(permit.clone());
            }
            context.extensions_mut().insert(permit);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn turns_of_a_kind_run_out() {
        let limits = Limits {
            max_uploads: 1,
            ..Limits::default()
        };
        let gate = Gate::new(Keyring::new([]), ClientQuotas::default(), &limits);
        let turn = |cost| gate.turn(cost, Ipv4Addr::LOCALHOST.into(), Flow::default(), None);
        let _held = turn(Cost::Upload).await.unwrap();
        let error = turn(Cost::Upload).await.err().unwrap();
        assert_eq!(error.code().as_str(), "SlowDown");
        assert!(turn(Cost::Download).await.unwrap().is_some());
        assert!(turn(Cost::Free).await.unwrap().is_none());
    }

    #[test]
    fn a_copy_is_from_where_it_is_read() {
        for (header, bucket) in [
            ("from/key", Some("from")),
            ("/from/a/b", Some("from")),
            ("from/k%2fey?versionId=null", Some("from")),
            ("from", None),
            ("", None),
            (
                "arn:aws:s3:us-west-2:123456789012:accesspoint/from/object/key",
                None,
            ),
        ] {
            assert_eq!(source_bucket(header).as_deref(), bucket, "{header}");
        }
    }
}
