//! A process that wants to lead: takes the Lease, renews it, and gives it back.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Client;
use kube::api::{Api, PostParams};
use wasmspawner_core::names::LabelValue;
use wasmspawner_core::names::labels::INSTANCE_LABEL;

use super::lease::{BLIND_AFTER, DURATION, Seen, Step, epoch, next_step, taken};
use super::{Leadership, Standing, since_boot};
use crate::installation::object_name;
use crate::short_request::{ShortRequestError, in_time};

/// The pause between two renewals.
const RENEW_EVERY: Duration = Duration::from_secs(1);

/// The pause between two looks at the Lease of another. A Lease that was given back is taken within this time.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The time after the last renewal in which changes may be sent. Others take the Lease 8 s after the last renewal at the
/// earliest; the rest is for changes that are under way.
const RENEWED_FOR: Duration = Duration::from_secs(5);

/// A process that wants to lead.
pub struct Candidate {
    leases: Api<Lease>,
    name: String,
    instance: LabelValue,
    identity: String,
    leadership: Leadership,
    /// The Lease as this process has written it last.
    held: Option<Lease>,
}

impl Candidate {
    /// A candidate for leading the installation `instance`, whose Lease is in `namespace`. `client` must not be guarded by
    /// the leadership. `identity` is that of the process, or that of its pod.
    pub fn new(
        client: Client,
        namespace: &str,
        instance: LabelValue,
        identity: String,
        leadership: Leadership,
    ) -> Self {
        let name = object_name("wasmspawner", namespace, &instance);
        Self { leases: Api::namespaced(client, namespace), name, instance, identity, leadership, held: None }
    }

    /// Waits until this process leads.
    pub async fn acquire(&mut self) {
        let (mut seen, mut told, mut answered) = (None, Told::Nothing, since_boot());
        loop {
            let sent = since_boot();
            match self.try_to_take(&mut seen, sent).await {
                Ok(Some(lease)) => {
                    self.leadership.begin(epoch(&lease));
                    self.leadership.extend(sent + RENEWED_FOR);
                    tracing::info!(lease = self.name, epoch = epoch(&lease), "this process leads");
                    self.held = Some(lease);
                    return;
                }
                Ok(None) => {
                    answered = since_boot();
                    self.leadership.stand(Standing::StandsBy);
                    if told.changes_to(Told::StandsBy) {
                        tracing::info!(lease = self.name, "another process leads; this one stands by");
                    }
                }
                Err(error) => {
                    if since_boot().saturating_sub(answered) > BLIND_AFTER {
                        self.leadership.stand(Standing::Unknown);
                    }
                    if told.changes_to(Told::Problem(error.to_string())) {
                        tracing::error!(lease = self.name, %error, "the Lease cannot be taken, so this process changes nothing; does its account have the permission for leases in deploy/permissions?");
                    }
                }
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Renews the Lease until another process has taken it. While the API server does not answer, nothing is changed; if
    /// nobody has taken the Lease meanwhile, this process goes on where it was.
    pub async fn keep(&mut self) {
        let mut told = Told::Nothing;
        loop {
            tokio::select! {
                () = tokio::time::sleep(RENEW_EVERY) => {}
                () = self.leadership.lost() => return,
            }
            let sent = since_boot();
            match self.renew().await {
                Ok(true) => {
                    self.leadership.extend(sent + RENEWED_FOR);
                    if told.changes_to(Told::Nothing) {
                        tracing::info!(lease = self.name, "the Lease is renewed again");
                    }
                }
                Ok(false) => return self.leadership.lose("another process has taken the Lease"),
                Err(error) => {
                    if told.changes_to(Told::Problem(error.to_string())) {
                        tracing::warn!(lease = self.name, %error, "the Lease cannot be renewed now");
                    }
                }
            }
        }
    }

    /// Waits until another process holds the Lease, but not for long: whoever stands by looks every 500 ms. Returns true if
    /// one does.
    pub async fn wait_for_successor(&self) -> bool {
        let succeeded = async {
            loop {
                let holder = self.get().await.ok().flatten().and_then(|lease| lease.spec?.holder_identity);
                if holder.is_some_and(|holder| holder != self.identity && !holder.is_empty()) {
                    return;
                }
                tokio::time::sleep(LOOK_EVERY / 2).await;
            }
        };
        tokio::time::timeout(3 * LOOK_EVERY, succeeded).await.is_ok()
    }

    /// Gives the Lease back, so that others need not wait until it has ended. Changes nothing afterwards.
    pub async fn release(&mut self) {
        self.leadership.end().await;
        let Some(mut lease) = self.held.take() else { return };
        let given_back = async {
            // An answer may have been lost, so that the Lease is another than this process knows.
            while won(self.replace(&without_holder(lease)).await)?.is_none() {
                match self.get().await? {
                    Some(found) if self.is_holder(&found) => lease = found,
                    _ => break,
                }
            }
            Ok::<_, ShortRequestError>(())
        };
        if let Err(error) = in_time(given_back).await {
            tracing::warn!(%error, "the Lease of the service cannot be given back; others take it when it has ended");
        }
    }

    fn is_holder(&self, lease: &Lease) -> bool {
        let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref());
        holder == Some(self.identity.as_str())
    }

    /// Takes the Lease if it can be taken now.
    async fn try_to_take(
        &self,
        seen: &mut Option<Seen>,
        asked: Duration,
    ) -> Result<Option<Lease>, ShortRequestError> {
        let found = self.get().await?;
        if next_step(found.as_ref(), &self.identity, seen, asked, since_boot()) == Step::Wait {
            return Ok(None);
        }
        let Some(mut lease) = found else { return won(self.create(&self.fresh(1)).await) };
        lease.spec = Some(self.spec(epoch(&lease) + 1));
        won(self.replace(&lease).await)
    }

    /// Renews the Lease. Returns false if it is another's.
    async fn renew(&mut self) -> Result<bool, ShortRequestError> {
        while let Some(mut lease) = self.held.clone() {
            // Greater than before if a number in the records was.
            let (before, now) = (epoch(&lease), self.leadership.epoch());
            if let Some(spec) = &mut lease.spec {
                spec.renew_time = Some(MicroTime(Timestamp::now()));
                spec.lease_transitions = i32::try_from(now).ok();
                spec.lease_duration_seconds = i32::try_from(DURATION.as_secs()).ok();
            }
            if let Some(renewed) = won(self.replace(&lease).await)? {
                self.held = Some(renewed);
                return Ok(true);
            }
            // Another has written it, or the answer to an earlier attempt was lost, or somebody has deleted it.
            let found = match self.get().await? {
                Some(found) => found,
                None => match won(self.create(&self.fresh(now)).await)? {
                    Some(created) => created,
                    None => continue,
                },
            };
            if !self.is_holder(&found) || ![before, now].contains(&epoch(&found)) {
                self.held = None;
                return Ok(false);
            }
            self.held = Some(found);
        }
        Ok(false)
    }

    async fn get(&self) -> Result<Option<Lease>, ShortRequestError> {
        in_time(self.leases.get_opt(&self.name)).await
    }

    async fn create(&self, lease: &Lease) -> Result<Lease, ShortRequestError> {
        in_time(self.leases.create(&PostParams::default(), lease)).await
    }

    async fn replace(&self, lease: &Lease) -> Result<Lease, ShortRequestError> {
        in_time(self.leases.replace(&self.name, &PostParams::default(), lease)).await
    }

    /// Returns a new Lease, for when there is none.
    fn fresh(&self, epoch: u64) -> Lease {
        let metadata = ObjectMeta {
            name: Some(self.name.clone()),
            labels: Some(BTreeMap::from([(INSTANCE_LABEL.to_owned(), self.instance.to_string())])),
            ..ObjectMeta::default()
        };
        Lease { metadata, spec: Some(self.spec(epoch)) }
    }

    fn spec(&self, epoch: u64) -> LeaseSpec {
        taken(&self.identity, epoch, Timestamp::now())
    }
}

fn without_holder(mut lease: Lease) -> Lease {
    if let Some(spec) = &mut lease.spec {
        spec.holder_identity = None;
        spec.lease_duration_seconds = Some(1);
    }
    lease
}

/// The state that the log tells already.
#[derive(PartialEq, Eq)]
enum Told {
    Nothing,
    StandsBy,
    Problem(String),
}

impl Told {
    /// Returns true if this is something else than before.
    fn changes_to(&mut self, next: Self) -> bool {
        let changed = *self != next;
        *self = next;
        changed
    }
}

/// Returns `None` if somebody else has written or deleted the Lease meanwhile.
fn won(answer: Result<Lease, ShortRequestError>) -> Result<Option<Lease>, ShortRequestError> {
    match answer {
        Err(error) if error.is_overtaken() => Ok(None),
        answer => Ok(Some(answer?)),
    }
}
