use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wasmspawner_core::images::{
    Ending, Inventory, Needs, NodeImages, Pull, PullHistory, PullPod, WantedImage, plan,
};

use super::problems::Problems;
use super::report::{LivePrepulls, PrepullReport};
use super::settings::Settings;
use crate::Context;
use crate::config_part::ConfigPart;
use wasmspawner_kubernetes::k8s::{Causes, Created, KubernetesError, PullPodChange, PullPods, StatusReason};
use wasmspawner_registry::inventory::Change;
use wasmspawner_telemetry::{Prepull, PrepullCounts};

/// The time between two rounds when nothing has changed. Policies are asked again in each such round.
const ROUND: Duration = Duration::from_secs(30);
/// The shortest time between two rounds, because often many nodes change at once.
const MIN_PAUSE: Duration = Duration::from_secs(1);

/// A task that lets nodes pull images in advance. One task does all of it, so nothing is pulled twice.
pub struct Prepuller {
    context: Arc<Context>,
    pods: PullPods,
    owner: Option<OwnerReference>,
    reports: LivePrepulls,
    /// The pods, by name.
    known: BTreeMap<String, PullPod>,
    history: PullHistory,
    /// The images that the policies wanted when they last gave an answer.
    wanted: Option<Vec<WantedImage>>,
    /// The time at which the policies are asked again.
    ask_at: Instant,
    problems: Problems,
}

impl Prepuller {
    /// Creates a prepuller that has pulled nothing yet. Its pods are deleted with `owner`, the service's own pod.
    pub fn new(
        context: Arc<Context>,
        pods: PullPods,
        owner: Option<OwnerReference>,
        reports: LivePrepulls,
    ) -> Self {
        Self {
            context,
            pods,
            owner,
            reports,
            known: BTreeMap::new(),
            history: PullHistory::default(),
            wanted: None,
            ask_at: Instant::now(),
            problems: Problems::default(),
        }
    }

    /// Pulls the wanted images until `stop`. Pulls that are under way then go on, and the next process finds them, as
    /// long as the owner is there.
    pub async fn run(mut self, stop: CancellationToken) {
        let owner = self.owner.clone();
        let config = self.context.config.follow();
        let mut configured = ConfigPart::new(config, |config| Settings::from_config(config, owner.as_ref()));
        while !stop.is_cancelled() {
            let settings = configured.current();
            let working = async {
                match &settings {
                    Some(settings) => self.pull(settings).await,
                    None => self.remove_all().await,
                }
            };
            configured.while_it_is(&settings, &stop, Box::pin(working)).await;
        }
    }

    /// Removes the remains of former pulls, because nothing is to be pulled any more.
    async fn remove_all(&mut self) {
        self.reports.replace(None);
        self.context.metrics.set_prepulls(PrepullCounts::default());
        self.known.clear();
        loop {
            match self.pods.list().await {
                Ok(pods) if pods.is_empty() => return,
                Ok(pods) => {
                    for pod in pods {
                        if let Err(error) = self.pods.delete(&pod).await {
                            tracing::warn!(pod = pod.name, error = %Causes(&error), "a pod that pulls an image cannot be deleted; it ends by itself");
                        }
                    }
                }
                // A service that never pulls has no permission to see such pods.
                Err(KubernetesError::Refused { reason: StatusReason::Forbidden, .. }) => return,
                Err(error) => {
                    tracing::debug!(error = %Causes(&error), "the pods that pull images cannot be listed");
                }
            }
            tokio::time::sleep(ROUND).await;
        }
    }

    /// Pulls the wanted images when something has changed, and every 30 seconds. Never ends.
    async fn pull(&mut self, settings: &Settings) {
        self.ask_at = Instant::now();
        self.problems.unknown = Some("it has just begun");
        self.report(&Needs::default());
        let mut inventory = self.context.policies.inventory().changes();
        let mut pods = std::pin::pin!(self.pods.follow());
        self.wait_for_list(pods.as_mut()).await;
        loop {
            Box::pin(self.round(settings)).await;
            let (earliest, latest) = (Instant::now() + MIN_PAUSE, Instant::now() + ROUND);
            tokio::select! {
                Some(change) = pods.next() => self.note(change),
                change = inventory.next() => if change == Change::Registries { self.ask_at = Instant::now() },
                () = tokio::time::sleep_until(latest) => {}
            }
            let mut due = std::pin::pin!(tokio::time::sleep_until(earliest));
            loop {
                tokio::select! {
                    Some(change) = pods.next() => self.note(change),
                    () = &mut due => break,
                }
            }
        }
    }

    /// Waits until all pods were listed once. Before that, unknown pods may exist.
    async fn wait_for_list(&mut self, mut pods: impl Stream<Item = PullPodChange> + Unpin) {
        while let Some(change) = pods.next().await {
            let listed = matches!(change, PullPodChange::All(_));
            self.note(change);
            if listed {
                return;
            }
            self.report(&Needs::default());
        }
    }

    fn note(&mut self, change: PullPodChange) {
        self.problems.watch = None;
        match change {
            PullPodChange::All(pods) => {
                self.known = pods.into_iter().map(|pod| (pod.name.clone(), pod)).collect();
            }
            PullPodChange::Changed(mut pod) => {
                // The observed state may be older than the deletion.
                let before = self.known.get(&pod.name);
                pod.is_being_deleted |=
                    before.is_some_and(|before| before.uid == pod.uid && before.is_being_deleted);
                self.known.insert(pod.name.clone(), *pod);
            }
            PullPodChange::Gone(name) => drop(self.known.remove(&name)),
            PullPodChange::Failed(error) => self.problems.watch = Some(error),
        }
    }

    /// Does one round of work. Does nothing while nodes or registries are not known.
    async fn round(&mut self, settings: &Settings) {
        let before = self.problems.message();
        let needs = match self.knowledge() {
            Ok((registries, nodes)) => {
                self.problems.unknown = None;
                self.ask_policies().await;
                let (wanted, now) = (self.all_wanted(settings), Timestamp::now());
                let needs = Needs::from_wanted(&wanted, &registries, &nodes, &self.history, now);
                self.history.observe(needs.images(), &nodes, now);
                self.problems.requests = self.act(settings, &needs.missing, &nodes).await.err();
                needs
            }
            Err(unknown) => {
                self.problems.unknown = Some(unknown);
                Needs::default()
            }
        };
        match (before, self.problems.message()) {
            (None, Some(problem)) => {
                tracing::warn!(problem, "images cannot be pulled in advance; it is tried again");
            }
            (Some(_), None) => tracing::info!("images can be pulled in advance again"),
            _ => {}
        }
        self.report(&needs);
    }

    fn knowledge(&self) -> Result<(Arc<Inventory>, Arc<NodeImages>), &'static str> {
        let inventory = self.context.policies.inventory();
        let (registries, nodes) = (inventory.registries(), inventory.listed_nodes());
        let nodes = nodes.ok_or(
            "the nodes are not known yet (`images.nodes` needs the permissions of deploy/permissions/nodes.yaml)",
        )?;
        if registries.is_unread() {
            return Err("the registries of `images.repositories` have not answered yet");
        }
        Ok((registries, nodes))
    }

    /// Asks the policies which images they want. If they cannot answer, their previous answer stays.
    async fn ask_policies(&mut self) {
        if Instant::now() < self.ask_at {
            return;
        }
        self.ask_at = Instant::now() + ROUND;
        match self.context.policies.prepull().await {
            Ok(wanted) => (self.wanted, self.problems.policies) = (Some(wanted), None),
            Err(error) => self.problems.policies = Some(error.to_string()),
        }
    }

    /// Returns the images that the policies want, followed by those that the configuration wants. If nobody wants
    /// anything, returns the lab's image.
    fn all_wanted(&self, settings: &Settings) -> Vec<WantedImage> {
        let of_policies = self.wanted.iter().flatten();
        let mut wanted: Vec<_> = of_policies.chain(&settings.images).cloned().collect();
        if wanted.is_empty() && self.wanted.is_some() {
            let lab_image = settings.lab_image.clone();
            wanted
                .extend(lab_image.map(|reference| WantedImage { reference, node_selector: BTreeMap::new() }));
        }
        wanted
    }

    /// Removes pods and creates pods. A refused request does not hold up the others; the error is the last refusal. If
    /// the API server is away, or slow, the rest waits for the next round.
    async fn act(&mut self, settings: &Settings, missing: &[Pull], nodes: &NodeImages) -> Result<(), String> {
        let pods: Vec<PullPod> = self.known.values().cloned().collect();
        let plan = plan(missing, &pods, &self.history, nodes, &settings.limits, Timestamp::now());
        let (mut refused, latest) = (Ok(()), Instant::now() + ROUND);
        for (pod, ending) in plan.remove {
            match self.pods.delete(&pod).await {
                Ok(()) => self.ended(pod, ending),
                Err(error) if is_refusal(&error) => refused = Err(Causes(&error).to_string()),
                Err(error) => return Err(Causes(&error).to_string()),
            }
        }
        for pull in plan.begin {
            if Instant::now() > latest {
                break;
            }
            let reason = match self.pods.create(&settings.template.pod(&pull)).await {
                Ok(Created::Own(pod)) => {
                    self.known.insert(pod.name.clone(), *pod);
                    continue;
                }
                Ok(Created::Foreign) => {
                    "somebody else has a pod of the name that the service uses".to_owned()
                }
                Ok(Created::Changed) => {
                    "the cluster has changed the pod so that it is not recognized, and it was \
                                         deleted; see its admission webhooks"
                        .to_owned()
                }
                Err(error) if is_refusal(&error) => Causes(&error).to_string(),
                Err(error) => return Err(Causes(&error).to_string()),
            };
            refused = Err(reason.clone());
            self.failed(pull, reason);
        }
        refused
    }

    /// Notes that a pod is deleted. The pod remains known until the watch says that it is gone.
    fn ended(&mut self, pod: PullPod, ending: Ending) {
        if let Some(known) = self.known.get_mut(&pod.name) {
            known.is_being_deleted = true;
        }
        let now = Timestamp::now();
        let took = Duration::try_from(now.duration_since(pod.since)).unwrap_or_default();
        let metrics = &self.context.metrics;
        match ending {
            Ending::Pulled => {
                let Pull { node, image } = &pod.pull;
                tracing::info!(%node, %image, ?took, "a node has pulled an image in advance");
                metrics.prepulled(Prepull::Pulled, took);
                self.history.pulled(pod.pull, now);
            }
            Ending::Failed(reason) => {
                metrics.prepulled(Prepull::Failed, took);
                self.failed(pod.pull, reason);
            }
            Ending::NotNeeded => metrics.prepulled(Prepull::NotNeeded, took),
        }
    }

    fn failed(&mut self, pull: Pull, reason: String) {
        let Pull { node, image } = &pull;
        if self.history.attempts(&pull) == 0 {
            tracing::warn!(%node, %image, reason, "a node cannot pull an image in advance; it is tried again");
        } else {
            tracing::debug!(%node, %image, reason, "a node cannot pull an image in advance again");
        }
        self.history.failed(pull, reason, Timestamp::now());
    }

    fn report(&self, needs: &Needs) {
        let mut failed: Vec<_> = self.history.failures().collect();
        failed.sort_by_key(|failed| std::cmp::Reverse(failed.at));
        self.context.metrics.set_prepulls(PrepullCounts {
            running: self.known.len(),
            missing: needs.missing.len(),
            failing: failed.len(),
        });
        self.reports.replace(Some(PrepullReport {
            images: needs.images.clone(),
            running: self.known.values().cloned().collect(),
            failed,
            problem: self.problems.message(),
        }));
    }
}

/// True if the API server has answered, and would answer the same again.
fn is_refusal(error: &KubernetesError) -> bool {
    !matches!(error, KubernetesError::Unavailable(_) | KubernetesError::Cancelled)
}
