//! Limits on connections, so that clients without a credential cannot block others or exhaust the memory.
//!
//! Every client is a *visitor* at first: the service knows only its address. A request with a valid credential turns
//! the visitor into a *caller*. The service reads the heads of a limited number of visitors at a time, which limits the
//! memory; the others wait unread. A visitor has a few seconds, and one request. Visitors together, callers together,
//! and any single caller are each limited to a part of all connections.

pub(crate) mod server;
pub(crate) mod tls;

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::Extensions;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls;
use wasmspawner_core::config::{HttpConfig, PeerRange};
use wasmspawner_core::names::Username;

use self::tls::Tls;
use wasmspawner_tasks::per_key::PerKey;

/// The limits on visitors of the API whose requests are read at a time: in total, and from one address.
const READING: usize = 1024;
const READING_PER_ADDRESS: u32 = 256;
/// The time that a visitor waits unread.
const WAIT: Duration = Duration::from_secs(30);
/// The time limit for a visitor's TLS handshake and the head of the request.
const HEAD: Duration = Duration::from_secs(10);
/// The time after which a slow visitor loses its place to the next one that waits.
const WHILE_OTHERS_WAIT: Duration = Duration::from_secs(1);
/// The time limit for the service to check a visitor's credential and to answer.
const HANDLING: Duration = Duration::from_secs(30);
/// The time limit for a visitor to read the answer.
const ANSWER: Duration = Duration::from_secs(10);
/// The limit on connections of one user that stay open between requests. A proxy's connections are shared by many users
/// and do not count.
const KEPT_PER_USER: NonZeroU32 = NonZeroU32::new(64).expect("it is not zero");
/// The time for which an address counts as JupyterHub's or an administrator's after their last call, and the limit on
/// the number of such addresses.
const OF_SITE: Duration = Duration::from_mins(10);
const SITE_ADDRESSES: usize = 256;
/// The minimum time between two warnings about addresses with too many connections.
const WARN_EVERY: Duration = Duration::from_mins(1);
/// The limits on connections for probes and metrics: in total, and from one address.
const HEALTH_CONNECTIONS: usize = 512;
const HEALTH_CONNECTIONS_PER_ADDRESS: NonZeroU32 = NonZeroU32::new(32).expect("it is not zero");

/// The rules by which connections are accepted. Clones share the limits.
#[derive(Clone)]
pub struct Connections {
    pub(crate) tls: Option<TlsAcceptor>,
    limits: Arc<Limits>,
}

struct Limits {
    /// The permits for all connections.
    all: Arc<Semaphore>,
    /// The permits for visitors, at most half of all.
    visitors: Arc<Semaphore>,
    /// The permits for connections of callers that stay open, at most three quarters of all.
    callers: Arc<Semaphore>,
    per_user: PerKey<Username>,
    per_address: PerKey<Block>,
    reading: Arc<Semaphore>,
    reading_per_address: PerKey<Block>,
    /// Addresses from which many people connect.
    proxies: Vec<PeerRange>,
    /// Addresses from which JupyterHub or an administrator has called, with the times of the last calls. They are
    /// exempt from limits by address, because JupyterHub requests the labs of all users.
    of_site: Mutex<HashMap<Block, Instant>>,
    /// The time of the last warning about an address.
    warned: Mutex<Option<Instant>>,
}

/// Addresses that count as one. An owner of one IPv6 address has a whole /64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Block(IpAddr);

/// The place of one connection, which is held until it is dropped.
pub(crate) struct Place {
    _all: OwnedSemaphorePermit,
    visitor: OwnedSemaphorePermit,
}

/// A connection that the limit of its address allows.
pub(crate) struct Admitted {
    place: Place,
    of_address: Option<OwnedSemaphorePermit>,
    block: Option<Block>,
}

/// A connection that is being served.
pub(crate) struct Visitor {
    limits: Arc<Limits>,
    phase: watch::Sender<Phase>,
    /// `None` for a proxy.
    block: Option<Block>,
    /// Permits for the whole life of the connection. They are dropped first, so that the next connection finds the
    /// address's place free.
    kept: Mutex<Vec<OwnedSemaphorePermit>>,
    /// Permits for reading. They are released when the answer begins or the visitor becomes a caller.
    reading: Mutex<Vec<OwnedSemaphorePermit>>,
    /// The permit of a visitor. It is released when the visitor becomes a caller whose connection stays open.
    visiting: Mutex<Option<OwnedSemaphorePermit>>,
}

/// The owner of a request's credential.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Who<'a> {
    /// A user, whose limits apply.
    User(&'a Username),
    /// JupyterHub or an administrator, who act for all users.
    Site,
    /// A program of the service in a pod.
    Pod,
}

/// The current use of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The head of a visitor's request is being read.
    Reading,
    /// A visitor's request is being handled.
    Handling,
    /// The answer is being sent to a visitor.
    Answering,
    /// The connection belongs to a caller.
    Called {
        /// True if the connection stays open after the answer.
        stays: bool,
    },
}

impl Connections {
    /// Creates the limits on connections to the API. `ingress` are addresses of an ingress from another part of the
    /// configuration.
    pub fn to_api(
        http: &HttpConfig,
        ingress: &[PeerRange],
        tls: Option<&Tls>,
    ) -> Result<Self, rustls::Error> {
        let tls = tls.map(Tls::acceptor).transpose()?;
        let proxies = http.proxies.iter().chain(ingress).copied().collect();
        let limits = Limits::new(http.max_connections, http.connections_per_address(), proxies);
        Ok(Self { tls, limits: Arc::new(limits) })
    }

    /// Creates the limits on connections to probes and metrics.
    pub fn to_health() -> Self {
        let limits = Limits::new(HEALTH_CONNECTIONS, HEALTH_CONNECTIONS_PER_ADDRESS, Vec::new());
        Self { tls: None, limits: Arc::new(limits) }
    }

    /// Waits for room for one more connection.
    pub(crate) async fn place(&self) -> Option<Place> {
        let visitor = Arc::clone(&self.limits.visitors).acquire_owned().await.ok()?;
        let all = Arc::clone(&self.limits.all).acquire_owned().await.ok()?;
        Some(Place { _all: all, visitor })
    }

    /// Admits a connection from `peer`, unless its address has too many.
    pub(crate) fn admit(&self, place: Place, peer: IpAddr) -> Option<Admitted> {
        let block = self.limits.block(peer);
        let of_address = match &block {
            Some(block) => match self.limits.per_address.try_take(block) {
                Some(permit) => Some(permit),
                None => return self.limits.refuse(peer),
            },
            None => None,
        };
        Some(Admitted { place, of_address, block })
    }

    /// Waits until the connection may be read.
    pub(crate) async fn visitor(&self, admitted: Admitted) -> Option<Arc<Visitor>> {
        let Admitted { place: Place { _all: all, visitor }, of_address, block } = admitted;
        let reading = timeout(WAIT, self.limits.may_read(block)).await.ok()??;
        Some(Arc::new(Visitor {
            limits: Arc::clone(&self.limits),
            phase: watch::Sender::new(Phase::Reading),
            block,
            reading: Mutex::new(reading),
            visiting: Mutex::new(Some(visitor)),
            kept: Mutex::new(of_address.into_iter().chain([all]).collect()),
        }))
    }
}

impl Limits {
    fn new(all: usize, per_address: NonZeroU32, proxies: Vec<PeerRange>) -> Self {
        let all = all.clamp(1, Semaphore::MAX_PERMITS);
        let visitors = all.div_ceil(2);
        let reading = visitors.min(READING);
        let share = u32::try_from(reading.div_ceil(4)).unwrap_or(READING_PER_ADDRESS);
        let reading_per_address = NonZeroU32::new(share.min(READING_PER_ADDRESS)).unwrap_or(NonZeroU32::MIN);
        Self {
            all: Arc::new(Semaphore::new(all)),
            visitors: Arc::new(Semaphore::new(visitors)),
            callers: Arc::new(Semaphore::new(all.saturating_sub(visitors / 2).max(1))),
            per_user: PerKey::new(KEPT_PER_USER),
            per_address: PerKey::new(per_address),
            reading: Arc::new(Semaphore::new(reading)),
            reading_per_address: PerKey::new(reading_per_address),
            proxies,
            of_site: Mutex::default(),
            warned: Mutex::default(),
        }
    }

    /// Returns the addresses that count as one with `peer`; `None` if limits by address do not apply.
    fn block(&self, peer: IpAddr) -> Option<Block> {
        let is_proxy = self.proxies.iter().any(|range| range.contains(peer));
        Some(Block::from(peer)).filter(|block| !is_proxy && !self.is_of_site(*block))
    }

    fn is_of_site(&self, block: Block) -> bool {
        lock(&self.of_site).get(&block).is_some_and(|last| last.elapsed() < OF_SITE)
    }

    /// Records that JupyterHub or an administrator has called from an address.
    fn note_site(&self, block: Block) {
        let mut of_site = lock(&self.of_site);
        if of_site.len() >= SITE_ADDRESSES {
            of_site.retain(|_, last| last.elapsed() < OF_SITE);
        }
        if of_site.len() < SITE_ADDRESSES || of_site.contains_key(&block) {
            of_site.insert(block, Instant::now());
        }
    }

    /// Closes the connection of an address that has too many. Warns from time to time, because the address may be that
    /// of an unknown ingress.
    fn refuse(&self, peer: IpAddr) -> Option<Admitted> {
        let mut warned = lock(&self.warned);
        if warned.is_none_or(|last| last.elapsed() > WARN_EVERY) {
            *warned = Some(Instant::now());
            tracing::warn!(
                %peer,
                "http.max_connections_per_address: this address has that many connections, so further ones are closed; if \
                 it is an ingress or another proxy, add it to http.proxies"
            );
        }
        None
    }

    /// Waits for the permits to read a request. The address's own permit is acquired first, so that its connections do
    /// not queue in front of those of others.
    async fn may_read(&self, block: Option<Block>) -> Option<Vec<OwnedSemaphorePermit>> {
        let mut permits = Vec::with_capacity(2);
        if let Some(block) = block {
            permits.push(self.reading_per_address.take(&block).await?);
        }
        permits.push(Arc::clone(&self.reading).acquire_owned().await.ok()?);
        Some(permits)
    }
}

impl From<IpAddr> for Block {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(address) => Self(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into()),
            address @ IpAddr::V4(_) => Self(address),
        }
    }
}

impl Visitor {
    /// Records that a request has a valid credential, and its owner. `extensions` are those of the request.
    pub(crate) fn authenticated(extensions: &Extensions, who: Who<'_>) {
        if let Some(visitor) = extensions.get::<Arc<Self>>() {
            visitor.becomes_caller(who);
        }
    }

    /// Returns the addresses with which the sender of a request shares limits; `None` if limits by address do not
    /// apply.
    pub(crate) fn share(extensions: &Extensions) -> Option<Block> {
        extensions.get::<Arc<Self>>()?.limited_block()
    }

    fn limited_block(&self) -> Option<Block> {
        self.block.filter(|block| !self.limits.is_of_site(*block))
    }

    fn becomes_caller(&self, who: Who<'_>) {
        let user = match who {
            Who::User(user) => Some(user),
            Who::Pod => None,
            Who::Site => {
                self.block.into_iter().for_each(|block| self.limits.note_site(block));
                None
            }
        };
        if matches!(*self.phase.borrow(), Phase::Called { stays: true }) {
            return;
        }
        let place = self.place_of_caller(user);
        let stays = place.is_some();
        lock(&self.kept).extend(place.into_iter().flatten());
        lock(&self.reading).clear();
        if stays {
            lock(&self.visiting).take();
        }
        self.phase.send_replace(Phase::Called { stays });
    }

    /// Acquires the permits for a connection that stays open; `None` if there are too many.
    fn place_of_caller(&self, user: Option<&Username>) -> Option<Vec<OwnedSemaphorePermit>> {
        let of_user = match user.filter(|_| self.limited_block().is_some()) {
            Some(user) => Some(self.limits.per_user.try_take(user)?),
            None => None,
        };
        let of_all = Arc::clone(&self.limits.callers).try_acquire_owned().ok()?;
        Some(of_user.into_iter().chain([of_all]).collect())
    }

    /// Records that the whole head of a request has been read.
    pub(crate) fn request_begins(&self) {
        self.phase.send_if_modified(|phase| {
            let is_first = *phase == Phase::Reading;
            if is_first {
                *phase = Phase::Handling;
            }
            is_first
        });
    }

    /// Records that the answer to a request begins. Returns true if the connection stays open after it.
    pub(crate) fn answer_begins(&self) -> bool {
        let phase = *self.phase.borrow();
        match phase {
            Phase::Called { stays } => stays,
            Phase::Reading | Phase::Handling | Phase::Answering => {
                lock(&self.reading).clear();
                self.phase.send_replace(Phase::Answering);
                false
            }
        }
    }

    /// Waits until the visitor has used up the time for the current phase, or until another visitor needs its place.
    /// Never completes for a caller.
    pub(crate) async fn time_is_over(&self) {
        let mut phases = self.phase.subscribe();
        loop {
            let (phase, began) = (*phases.borrow_and_update(), Instant::now());
            let limit = match phase {
                Phase::Reading => HEAD,
                Phase::Handling => HANDLING,
                Phase::Answering => ANSWER,
                Phase::Called { .. } => std::future::pending().await,
            };
            let mut next = began;
            let over = async {
                while next < began + limit {
                    next += WHILE_OTHERS_WAIT;
                    sleep_until(next).await;
                    if phase != Phase::Handling && self.others_wait() {
                        return;
                    }
                }
            };
            tokio::select! {
                _ = phases.changed() => {}
                () = over => return,
            }
        }
    }

    /// True if no place is left of a kind that this visitor occupies.
    fn others_wait(&self) -> bool {
        let is_last = |permit: &OwnedSemaphorePermit| permit.semaphore().available_permits() == 0;
        lock(&self.reading).iter().any(is_last) || lock(&self.visiting).iter().any(is_last)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
impl Visitor {
    /// Returns a visitor from `peer` whose request may be read.
    pub(crate) async fn from_peer(connections: &Connections, peer: IpAddr) -> Arc<Self> {
        let place = connections.place().await.unwrap();
        connections.visitor(connections.admit(place, peer).unwrap()).await.unwrap()
    }
}

#[cfg(test)]
mod tests;
