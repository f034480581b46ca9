//! The S3 server of a store: assembles the layers and serves them at an address.

use crate::auth::Gate;
use crate::config::{Config, Limits};
use crate::errors::MAX_SKEW;
use crate::expiry;
use crate::front::Front;
use crate::gateway::Gateway;
use crate::hosts::Hosts;
use crate::lifecycle_rules::Recent;
use crate::multipart;
use crate::versions::Locks;
use objects::{Blocking, Bounds, Listener, ServeError, Tls};
use s3s::config::{S3Config, StaticConfigProvider};
use s3s::service::S3ServiceBuilder;
use status::Status;
use std::net::SocketAddr;
use std::sync::Arc;
use store::Store;

/// A server that has its address and does not answer yet.
pub struct Server {
    listener: Listener,
    limits: Limits,
    tls: Option<Tls>,
    front: Arc<Front>,
    gateway: Gateway,
    status: Option<Arc<Status>>,
}

impl Server {
    /// Binds the address; nothing is answered before [`run`](Self::run).
    pub fn bind(config: Config, store: Store) -> Result<Self, ServeError> {
        Ok(Self::new(Listener::bind(config.address)?, config, store))
    }

    /// A server of `store` on a bound address; the address in `config` is ignored.
    pub fn new(listener: Listener, config: Config, store: Store) -> Self {
        let limits = config.limits;
        let gateway = Gateway {
            store,
            blocking: Blocking::new(limits.max_blocking),
            region: config.region,
            scheme: if config.tls.is_some() {
                "https"
            } else {
                "http"
            },
            locks: Locks::new(config.random.clone(), config.clock.clone()),
            random: config.random,
            clock: config.clock,
            rules: Recent::default(),
            rules_changed: Arc::default(),
        };
        let mut service = S3ServiceBuilder::new(gateway.clone());
        let hosts = Hosts::new(config.domain.as_deref());
        service.set_host(hosts.clone());
        service.set_auth(config.keys.clone());
        let quotas = config.quotas;
        service.set_access(Gate::new(config.keys, quotas.clone(), &limits));
        let mut bounds = S3Config::default();
        bounds.xml_max_body_size = limits.max_document_bytes;
        bounds.presigned_url_max_skew_time_secs = MAX_SKEW.as_secs() as u32;
        service.set_config(Arc::new(StaticConfigProvider::new(Arc::new(bounds))));
        let mut run = [0; 4];
        (gateway.random)(&mut run);
        let front = Arc::new(Front::new(
            service.build(),
            &gateway,
            &limits,
            hosts,
            quotas,
            run,
            config.status.clone(),
        ));
        Self {
            listener,
            limits,
            tls: config.tls,
            front,
            gateway,
            status: config.status,
        }
    }

    /// Status of the drive, if [`Config::status`] is set.
    pub fn status(&self) -> Option<Arc<Status>> {
        self.status.clone()
    }

    /// The address it listens on, with the real port even if 0 was requested.
    pub fn local_addr(&self) -> SocketAddr {
        self.listener.local_addr()
    }

    /// Serves until `shutdown` completes, then finishes running requests within [`Limits::shutdown_timeout`]. Needs a
    /// tokio runtime with I/O and time. When this returns, no store call is running.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), ServeError> {
        let Self {
            listener,
            limits,
            tls,
            front,
            gateway,
            status,
        } = self;
        if let Err(error) = gateway.call(multipart::sweep).await {
            tracing::warn!(%error, "buckets could not be completed, or parts of ended uploads not be swept away");
        }
        let bounds = Bounds {
            max_clients: limits.max_connections,
            max_strangers: limits.max_strangers,
            max_header_bytes: limits.max_header_bytes,
            header_timeout: limits.header_timeout,
            idle_timeout: limits.idle_timeout,
            shutdown_timeout: limits.shutdown_timeout,
        };
        let answer = move |request, unread| {
            let front = front.clone();
            async move { front.handle(request, unread).await }
        };
        let expiry = tokio::spawn(expiry::run(gateway.clone()));
        let served = objects::serve(listener, bounds, tls, answer, shutdown).await;
        expiry.abort();
        gateway.blocking.idle().await;
        if let Some(status) = status {
            status.idle().await;
        }
        served
    }
}
