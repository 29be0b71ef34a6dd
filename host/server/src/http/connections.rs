//! Limits on connections, so that somebody without a credential keeps nobody else out and fills no memory.
//!
//! Everybody who connects is a *visitor* first, of whom the service knows the address only. A request with a valid
//! credential makes the connection one of a *caller*. Memory is spent on the heads of a limited number of visitors at a
//! time; the others wait unread. A visitor has a few seconds, and one request.

use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Extensions;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls;
use wasmspawner_core::config::{HttpConfig, PeerRange};

use super::tls::Tls;
use crate::per_key::PerKey;

/// Visitors of the API whose requests are read at a time: in all, and of one address.
const READING: usize = 1024;
const READING_PER_ADDRESS: u32 = 256;
/// How long a visitor waits unread.
const WAIT: Duration = Duration::from_secs(30);
/// How long a visitor may take for TLS and the head of the request.
const HEAD: Duration = Duration::from_secs(10);
/// After this time, an unfinished head loses its place to the next who waits.
const HEAD_WHILE_OTHERS_WAIT: Duration = Duration::from_secs(1);
/// How long the answer to a visitor may take.
const ANSWER: Duration = Duration::from_secs(30);
/// How often a warning tells of addresses with too many connections.
const WARN_EVERY: Duration = Duration::from_mins(1);
/// Connections for probes and metrics: in all, and of one address.
const HEALTH_CONNECTIONS: usize = 512;
const HEALTH_CONNECTIONS_PER_ADDRESS: NonZeroU32 = NonZeroU32::new(32).expect("it is not zero");

/// How connections are accepted. Clones share the limits.
#[derive(Clone)]
pub struct Connections {
    pub(super) tls: Option<TlsAcceptor>,
    limits: Arc<Limits>,
}

struct Limits {
    /// Connections at any one time.
    all: Arc<Semaphore>,
    /// Those of visitors. The rest is for callers.
    visitors: Arc<Semaphore>,
    per_address: PerKey<Block>,
    reading: Arc<Semaphore>,
    reading_per_address: PerKey<Block>,
    /// Addresses from which many people connect.
    proxies: Vec<PeerRange>,
    /// The time of the last warning about an address.
    warned: Mutex<Option<Instant>>,
}

/// Addresses that count as one: somebody who has one IPv6 address has a whole /64.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Block(IpAddr);

/// The place of one connection, until it is dropped.
pub(super) struct Place {
    _all: OwnedSemaphorePermit,
    visitor: OwnedSemaphorePermit,
}

/// A connection whose address may have one.
pub(super) struct Admitted {
    place: Place,
    of_address: Option<OwnedSemaphorePermit>,
    block: Option<Block>,
}

/// A connection that is being served.
pub(super) struct Visitor {
    is_caller: AtomicBool,
    head_is_read: AtomicBool,
    /// Given back when the visitor becomes a caller.
    given_back: Mutex<Vec<OwnedSemaphorePermit>>,
    _kept: Vec<OwnedSemaphorePermit>,
}

impl Connections {
    /// Connections to the API. `ingress` are addresses of an ingress that are known from elsewhere in the configuration.
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

    /// Connections to probes and metrics.
    pub fn to_health() -> Self {
        let limits = Limits::new(HEALTH_CONNECTIONS, HEALTH_CONNECTIONS_PER_ADDRESS, Vec::new());
        Self { tls: None, limits: Arc::new(limits) }
    }

    /// Waits for room for one more connection.
    pub(super) async fn place(&self) -> Option<Place> {
        let visitor = Arc::clone(&self.limits.visitors).acquire_owned().await.ok()?;
        let all = Arc::clone(&self.limits.all).acquire_owned().await.ok()?;
        Some(Place { _all: all, visitor })
    }

    /// Lets a connection from `peer` in, unless its address has too many.
    pub(super) fn admit(&self, place: Place, peer: IpAddr) -> Option<Admitted> {
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
    pub(super) async fn visitor(&self, admitted: Admitted) -> Option<Arc<Visitor>> {
        let Admitted { place: Place { _all: all, visitor }, of_address, block } = admitted;
        let reading = timeout(WAIT, self.limits.may_read(block)).await.ok()??;
        Some(Arc::new(Visitor {
            is_caller: AtomicBool::new(false),
            head_is_read: AtomicBool::new(false),
            given_back: Mutex::new(reading.into_iter().chain([visitor]).collect()),
            _kept: of_address.into_iter().chain([all]).collect(),
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
            per_address: PerKey::new(per_address),
            reading: Arc::new(Semaphore::new(reading)),
            reading_per_address: PerKey::new(reading_per_address),
            proxies,
            warned: Mutex::default(),
        }
    }

    /// The addresses that count as one with `peer`, or `None` for a proxy.
    fn block(&self, peer: IpAddr) -> Option<Block> {
        let is_proxy = self.proxies.iter().any(|range| range.contains(peer));
        (!is_proxy).then(|| Block::from(peer))
    }

    /// Closes the connection of an address that has too many. Warns at times, because it may be an unknown ingress.
    fn refuse(&self, peer: IpAddr) -> Option<Admitted> {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// The address's own turn comes first, so that its connections do not queue in front of those of others.
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
    /// Notes that a request has a valid credential. `extensions` are those of the request.
    pub(super) fn authenticated(extensions: &Extensions) {
        if let Some(visitor) = extensions.get::<Arc<Self>>() {
            visitor.becomes_caller();
        }
    }

    fn becomes_caller(&self) {
        if !self.is_caller.swap(true, Ordering::Relaxed) {
            drop(std::mem::take(&mut *self.permits()));
        }
    }

    /// True once there was a request with a valid credential.
    pub(super) fn is_caller(&self) -> bool {
        self.is_caller.load(Ordering::Relaxed)
    }

    /// Notes that a whole head of a request has been read.
    pub(super) fn head_is_read(&self) {
        self.head_is_read.store(true, Ordering::Relaxed);
    }

    /// Returns when a connection that is still a visitor's has had its time.
    pub(super) async fn time_is_over(&self) {
        let began = Instant::now();
        let mut next = began;
        while next < began + HEAD && !self.head_is_read.load(Ordering::Relaxed) {
            next += HEAD_WHILE_OTHERS_WAIT;
            sleep_until(next).await;
            if !self.head_is_read.load(Ordering::Relaxed) && self.others_wait() {
                return;
            }
        }
        if self.head_is_read.load(Ordering::Relaxed) {
            sleep_until(next + ANSWER).await;
        }
        if self.is_caller() {
            std::future::pending::<()>().await;
        }
    }

    fn others_wait(&self) -> bool {
        self.permits().iter().any(|permit| permit.semaphore().available_permits() == 0)
    }

    fn permits(&self) -> std::sync::MutexGuard<'_, Vec<OwnedSemaphorePermit>> {
        self.given_back.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
impl Visitor {
    /// A visitor from `peer` whose turn it is.
    pub(super) async fn of(connections: &Connections, peer: IpAddr) -> Arc<Self> {
        let place = connections.place().await.unwrap();
        connections.visitor(connections.admit(place, peer).unwrap()).await.unwrap()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use futures::FutureExt as _;
    use serde_json::json;

    use super::*;

    fn connections(http: serde_json::Value) -> Connections {
        let http: HttpConfig = serde_json::from_value(http).unwrap();
        Connections::to_api(&http, &[], None).unwrap()
    }

    fn address(last: u8) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(192, 0, 2, last))
    }

    /// Visitors from `peer`, as many as get in at once.
    fn all_from(connections: &Connections, peer: IpAddr) -> Vec<Admitted> {
        let admitted = || connections.admit(connections.place().now_or_never()??, peer);
        std::iter::from_fn(admitted).collect()
    }

    #[test]
    fn one_address_has_a_fifth_of_the_connections_and_a_proxy_all_that_are_for_visitors() {
        let connections = connections(json!({ "max_connections": 100, "proxies": ["192.0.2.9"] }));
        let from_one = all_from(&connections, address(1));
        assert_eq!(from_one.len(), 20);
        assert_eq!(all_from(&connections, address(2)).len(), 20);
        drop(from_one);
        assert_eq!(all_from(&connections, address(9)).len(), 50);
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one_address() {
        let connections = connections(json!({ "max_connections": 100 }));
        let held = all_from(&connections, "2001:db8::1".parse().unwrap());
        assert_eq!(held.len(), 20);
        assert!(all_from(&connections, "2001:db8::ffff:1".parse().unwrap()).is_empty());
        assert_eq!(all_from(&connections, "2001:db8:0:1::1".parse().unwrap()).len(), 20);
        assert!(Block::from(address(1)) == Block::from("::ffff:192.0.2.1".parse::<IpAddr>().unwrap()));
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_shown_a_credential_leaves_the_place_to_others() {
        let connections = connections(json!({ "max_connections": 4 }));
        let mut callers = Vec::new();
        for last in 1..=4 {
            let visitor = Visitor::of(&connections, address(last)).await;
            visitor.head_is_read();
            visitor.becomes_caller();
            callers.push(visitor);
        }
        assert!(connections.place().now_or_never().is_none(), "all four connections are in use");
        assert!(timeout(Duration::from_hours(1), callers[0].time_is_over()).await.is_err());
        callers.pop();
        assert!(connections.place().now_or_never().is_some());
    }

    /// Columns: the places for visitors, after how long the head is complete, and how long the connection lives.
    #[tokio::test(start_paused = true)]
    async fn a_visitor_has_little_time_and_less_while_others_wait() {
        for (max_connections, head_after, lives) in
            [(16, None, 10), (2, None, 1), (16, Some(9), 10 + 30), (2, Some(0), 30), (2, Some(1), 1)]
        {
            let connections = connections(json!({ "max_connections": max_connections }));
            let visitor = Visitor::of(&connections, address(1)).await;
            let began = Instant::now();
            let head = async {
                match head_after {
                    Some(0) => visitor.head_is_read(),
                    Some(seconds) => {
                        sleep_until(began + Duration::from_secs(seconds) + Duration::from_millis(1)).await;
                        visitor.head_is_read();
                    }
                    None => {}
                }
            };
            tokio::join!(head, visitor.time_is_over());
            let expected = Duration::from_secs(lives);
            assert_eq!(began.elapsed(), expected, "{max_connections} {head_after:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_a_turn_gets_it_when_another_one_ends() {
        let connections = connections(json!({ "max_connections": 8, "max_connections_per_address": 8 }));
        let first = Visitor::of(&connections, address(1)).await;
        let next = Visitor::of(&connections, address(1));
        let mut next = std::pin::pin!(next);
        assert!(next.as_mut().now_or_never().is_none(), "one of four places is for one address");
        Visitor::of(&connections, address(2)).await;
        drop(first);
        next.await;
    }
}
