use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wasmspawner_core::images::{
    Ending, NeededImage, Needs, NodeImages, Pull, PullHistory, PullPod, WantedImage, plan,
};

use super::report::{LivePrepulls, PrepullReport};
use super::settings::Settings;
use crate::k8s::{Causes, PullPodChange, PullPods};
use crate::spawner::Context;
use crate::telemetry::Prepull;

/// How often there is a round when nothing has changed. Policies are asked again then.
const ROUND: Duration = Duration::from_secs(30);
/// The shortest time between two rounds.
const SHORTEST: Duration = Duration::from_secs(1);

/// Lets nodes pull images in advance. One task does all of it, so nothing is pulled twice.
pub struct Prepuller {
    context: Arc<Context>,
    pods: PullPods,
    owner: Option<OwnerReference>,
    reports: LivePrepulls,
    /// The pods, by name.
    known: BTreeMap<String, PullPod>,
    history: PullHistory,
    /// What the policies wanted when they could say it the last time.
    wanted: Option<Vec<WantedImage>>,
    /// When they are asked again.
    ask_at: Instant,
    /// Why the policies could not say what they want.
    unanswered: Option<String>,
    problem: Option<String>,
}

impl Prepuller {
    /// Nothing is pulled yet. The pods go with `owner`, the service's own pod.
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
            unanswered: None,
            problem: None,
        }
    }

    /// Pulls what is wanted, until `stop`. What is being pulled then goes on, and the next start finds it.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut config = self.context.config.follow();
        let owner = self.owner.clone();
        let settings_of = |config: &_| Settings::of(config, owner.as_ref());
        while !stop.is_cancelled() {
            let settings = settings_of(&config.borrow_and_update());
            let changed = config.wait_for(|config| settings_of(config) != settings);
            let working = async {
                match &settings {
                    Some(settings) => self.follow(settings).await,
                    None => self.remove_all().await,
                }
                std::future::pending::<()>().await;
            };
            tokio::select! {
                _ = changed => {}
                () = working => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// Removes what is being pulled, because nothing is to be pulled any more.
    async fn remove_all(&mut self) {
        self.reports.replace(None);
        self.context.metrics.set_prepulls(0, 0, 0);
        for (_, pod) in std::mem::take(&mut self.known) {
            if let Err(error) = self.pods.delete(&pod).await {
                tracing::warn!(pod = pod.name, error = %Causes(&error), "a pod that pulls an image cannot be deleted; it ends by itself");
            }
        }
    }

    /// Goes round again and again: when something has changed, and every 30 seconds. Never ends.
    async fn follow(&mut self, settings: &Settings) {
        self.ask_at = Instant::now();
        let mut inventory = self.context.policies.inventory().changes();
        let mut pods = std::pin::pin!(self.pods.follow());
        self.wait_for_list(pods.as_mut()).await;
        loop {
            self.round(settings).await;
            let (earliest, latest) = (Instant::now() + SHORTEST, Instant::now() + ROUND);
            tokio::select! {
                Some(change) = pods.next() => self.note(change),
                () = inventory.next() => self.ask_at = Instant::now(),
                () = tokio::time::sleep_until(latest) => {}
            }
            // Changes come in crowds.
            let mut due = std::pin::pin!(tokio::time::sleep_until(earliest));
            loop {
                tokio::select! {
                    Some(change) = pods.next() => self.note(change),
                    () = &mut due => break,
                }
            }
        }
    }

    /// Waits until all pods were listed once. Before that, a pod that is not known may exist.
    async fn wait_for_list(&mut self, mut pods: impl Stream<Item = PullPodChange> + Unpin) {
        while let Some(change) = pods.next().await {
            let listed = matches!(change, PullPodChange::All(_));
            self.note(change);
            if listed {
                return;
            }
            self.report(&[]);
        }
    }

    fn note(&mut self, change: PullPodChange) {
        match change {
            PullPodChange::All(pods) => {
                self.known = pods.into_iter().map(|pod| (pod.name.clone(), pod)).collect();
            }
            PullPodChange::Changed(pod) => drop(self.known.insert(pod.name.clone(), pod)),
            PullPodChange::Gone(name) => drop(self.known.remove(&name)),
            PullPodChange::Failed(error) => {
                tracing::warn!(%error, "the pods that pull images cannot be watched, and it is tried again; `images.prepull` needs the permissions of deploy/permissions/prepull.yaml");
                self.problem = Some(format!("the pods that pull images cannot be watched: {error}"));
            }
        }
    }

    /// Does what is to be done now. Without knowledge of nodes, or of what is wanted, nothing is.
    async fn round(&mut self, settings: &Settings) {
        let inventory = self.context.policies.inventory().clone();
        let (registries, nodes) = (inventory.registries(), inventory.listed_nodes());
        let Some(nodes) = nodes.filter(|_| !registries.is_incomplete()) else { return self.report(&[]) };
        let mut problem = self.ask_policies().await;
        let needs = Needs::of(&self.all_wanted(settings), &registries, &nodes);
        self.history.observe(&needs.images, &nodes, Timestamp::now());
        if let Err(error) = self.act(settings, &needs.missing, &nodes).await {
            problem = Some(error);
        }
        if let Some(problem) = problem.as_ref().filter(|problem| self.problem.as_ref() != Some(problem)) {
            tracing::warn!(problem, "images cannot be pulled in advance; it is tried again");
        }
        self.problem = problem;
        self.context.metrics.set_prepulls(
            self.known.len(),
            needs.missing.len(),
            self.history.failures_of_now().count(),
        );
        self.report(&needs.images);
    }

    /// Asks the policies what is wanted. If they cannot say, it is what they have said before.
    async fn ask_policies(&mut self) -> Option<String> {
        if Instant::now() < self.ask_at {
            return self.unanswered.clone();
        }
        self.ask_at = Instant::now() + ROUND;
        self.unanswered = match self.context.policies.prepull().await {
            Ok(wanted) => {
                self.wanted = Some(wanted);
                None
            }
            Err(error) => Some(format!("the policies cannot say which images nodes are to have: {error}")),
        };
        self.unanswered.clone()
    }

    /// What the policies want, and then what the configuration wants. If nobody wants anything, it is the lab's image.
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

    /// Removes pods and creates pods. The first failure ends the round.
    async fn act(&mut self, settings: &Settings, missing: &[Pull], nodes: &NodeImages) -> Result<(), String> {
        let pods: Vec<PullPod> = self.known.values().cloned().collect();
        let plan = plan(missing, &pods, &self.history, nodes, &settings.limits, Timestamp::now());
        for (pod, ending) in plan.remove {
            self.pods.delete(&pod).await.map_err(|error| Causes(&error).to_string())?;
            self.known.remove(&pod.name);
            self.ended(pod, ending);
        }
        for pull in plan.begin {
            match self.pods.create(&settings.by.pod(&pull)).await {
                Ok(Some(pod)) => drop(self.known.insert(pod.name.clone(), pod)),
                Ok(None) => {
                    let reason = "somebody else has a pod of the name that the service uses";
                    self.history.failed(pull, reason.to_owned(), Timestamp::now());
                }
                Err(error) => {
                    let reason = Causes(&error).to_string();
                    self.history.failed(pull, reason.clone(), Timestamp::now());
                    return Err(reason);
                }
            }
        }
        Ok(())
    }

    fn ended(&mut self, pod: PullPod, ending: Ending) {
        let now = Timestamp::now();
        let took = Duration::try_from(now.duration_since(pod.since)).unwrap_or_default();
        let Pull { node, image } = &pod.pull;
        let outcome = match &ending {
            Ending::Pulled => {
                tracing::info!(%node, %image, ?took, "a node has pulled an image in advance");
                Prepull::Pulled
            }
            Ending::Failed(reason) => {
                tracing::warn!(%node, %image, reason, "a node cannot pull an image in advance; it is tried again");
                Prepull::Failed
            }
            Ending::NotNeeded => Prepull::NotNeeded,
        };
        self.context.metrics.prepulled(outcome, took);
        match ending {
            Ending::Pulled => self.history.pulled(pod.pull, now),
            Ending::Failed(reason) => self.history.failed(pod.pull, reason, now),
            Ending::NotNeeded => {}
        }
    }

    fn report(&self, images: &[NeededImage]) {
        self.reports.replace(Some(PrepullReport {
            images: images.to_vec(),
            running: self.known.values().cloned().collect(),
            failed: self.history.failures_of_now().collect(),
            problem: self.problem.clone(),
        }));
    }
}
