//! Follows claims, targets and classes, and carries out the decisions of the core about them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::pin::pin;
use std::time::Duration;

use futures::{Stream, StreamExt};
use jiff::Timestamp;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wasmspawner_core::custom_resource::environment::{Action, NamespaceState, Reconciled, Target, reconcile};

use super::Environments;
use super::outcome::ActionOutcome;
use crate::k8s::{Causes, CustomChange, KubernetesError, in_background};
use crate::random_token::random_suffix;

/// The pause after the first failure of an action. It doubles with each further failure, up to `MAX_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_mins(1);
/// The time that the watches have to show the state of the API server, before the same action is tried again.
const FOR_WATCHES: Duration = Duration::from_millis(500);
/// The failure reason of a target that waits until the namespace of the previous lab is gone, which takes seconds.
const STILL_BEING_DELETED: &str = "StillBeingDeleted";
/// The interval at which everything is checked even if nothing happens.
const LOOK_EVERY: Duration = Duration::from_mins(1);

/// The object of an action: its kind and name.
type About = (&'static str, String);

/// The kind of an action, and its object. A failed action does not delay other actions on the object.
type Attempt = (std::mem::Discriminant<Action>, About);

/// The actions that are under way, and those that have failed.
#[derive(Default)]
struct Work {
    tasks: JoinSet<(Attempt, ActionOutcome)>,
    busy: HashMap<About, tokio::task::Id>,
    /// The time at which a failed action is tried again, and the number of its failures.
    failed: HashMap<Attempt, (Instant, u32)>,
    /// The uids of targets whose namespaces are known to be gone.
    gone: HashSet<String>,
}

impl Environments {
    /// Follows all kinds and carries out the necessary actions, until `stop`.
    pub async fn run(&self, stop: &CancellationToken) {
        let targets = follow(self.targets.follow(), stop, |change| self.seen.on_target(change));
        let classes = follow(self.classes.follow(), stop, |change| self.seen.on_class(change));
        let claims = follow(self.claims.follow(), stop, |change| self.seen.on_claim(change));
        let environments = follow(self.named.follow(), stop, |change| self.seen.on_environment(change));
        tokio::join!(targets, classes, claims, environments, self.work(stop));
    }

    async fn work(&self, stop: &CancellationToken) {
        let synced = async {
            self.first_sync().await;
            self.clusters.own().store.first_sync().await;
        };
        if stop.run_until_cancelled(synced).await.is_none() {
            return;
        }
        let (mut changes, mut work) = (self.follow(), Work::default());
        let mut namespaces = self.clusters.own().store.follow_namespaces();
        loop {
            changes.borrow_and_update();
            namespaces.borrow_and_update();
            let begun = Instant::now();
            let again = self.start_what_is_due(&mut work);
            // Half of the time is left for other tasks, however many changes there are.
            tokio::time::sleep(begun.elapsed()).await;
            tokio::select! {
                () = stop.cancelled() => return,
                _ = changes.changed() => {}
                _ = namespaces.changed() => {}
                Some(done) = work.tasks.join_next_with_id() => self.finish(&mut work, done),
                () = tokio::time::sleep(again) => {}
            }
        }
    }

    /// Starts the necessary actions that are not under way. Returns the time until the next check.
    fn start_what_is_due(&self, work: &mut Work) -> Duration {
        let namespaces = self.namespaces(&work.gone);
        let now = Timestamp::now();
        let Reconciled { actions, again_at } = self.seen.decide(|world| {
            world.namespaces = namespaces;
            let alive: HashSet<&str> = world.targets.values().map(Target::uid).collect();
            work.gone.retain(|uid| alive.contains(uid.as_str()));
            world.failures.retain(|uid, _| alive.contains(uid.as_str()));
            world.checks.retain(|uid, _| alive.contains(uid.as_str()));
            reconcile(world, now, &mut random_suffix)
        });
        let until = again_at.and_then(|at| Duration::try_from(at.duration_since(now)).ok());
        let mut again = until.unwrap_or(LOOK_EVERY).min(LOOK_EVERY);
        let attempt = |action: &Action| {
            let (kind, name) = action.about();
            (std::mem::discriminant(action), (kind, name.to_owned()))
        };
        // Attempts that are not needed any more, such as the deletion of a target that is gone, are forgotten.
        let needed: HashSet<Attempt> = actions.iter().map(attempt).collect();
        work.failed.retain(|attempt, (at, _)| needed.contains(attempt) || at.elapsed() < MAX_PAUSE);
        for action in actions {
            let attempt = attempt(&action);
            let about = attempt.1.clone();
            if work.busy.contains_key(&about) {
                continue;
            }
            if let Some((at, _)) = work.failed.get(&attempt)
                && let Some(pause) = at.checked_duration_since(Instant::now())
            {
                again = again.min(pause);
                continue;
            }
            let task = self.clone().act(action, attempt);
            let handle = work.tasks.spawn(task);
            work.busy.insert(about, handle.id());
        }
        again + Duration::from_millis(1)
    }

    /// Returns the known namespaces of targets.
    fn namespaces(&self, gone: &HashSet<String>) -> BTreeMap<String, NamespaceState> {
        let mut states: BTreeMap<_, _> = gone.iter().map(|uid| (uid.clone(), NamespaceState::Gone)).collect();
        let others = self.clusters.others_known().into_iter().map(|(_, cluster)| cluster);
        for cluster in others.chain([self.clusters.own().clone()]) {
            for (_, namespace) in cluster.store.namespaces() {
                let Some(target) = namespace.target else { continue };
                let state = if namespace.deleting {
                    NamespaceState::Terminating(namespace.stuck)
                } else {
                    NamespaceState::Present
                };
                states.insert(target, state);
            }
        }
        states
    }

    fn finish(
        &self,
        work: &mut Work,
        done: Result<(tokio::task::Id, (Attempt, ActionOutcome)), tokio::task::JoinError>,
    ) {
        let (attempt, done) = match done {
            Ok((_, done)) => done,
            Err(error) => {
                tracing::error!(%error, "a task of the environments' controller panicked");
                work.busy.retain(|_, id| *id != error.id());
                return;
            }
        };
        let (_, about) = &attempt;
        work.busy.remove(about);
        match done {
            ActionOutcome::Yes => drop(work.failed.remove(&attempt)),
            ActionOutcome::NotYet => drop(work.failed.insert(attempt, (Instant::now() + FOR_WATCHES, 0))),
            ActionOutcome::Gone(uid) => {
                work.failed.remove(&attempt);
                work.gone.insert(uid);
            }
            ActionOutcome::TargetFailed(uid, failure) => {
                if failure.reason == STILL_BEING_DELETED {
                    work.failed.insert(attempt, (Instant::now() + FOR_WATCHES, 0));
                } else {
                    tracing::warn!(target = about.1, reason = failure.reason, "{}", failure.message);
                    note_failure(work, attempt);
                }
                self.seen.change(|world| world.failures.insert(uid, failure));
            }
            ActionOutcome::Failed(error) => {
                tracing::warn!(kind = about.0, name = about.1, error = %Causes(&error), "a change of an environment failed and is tried again");
                note_failure(work, attempt);
            }
        }
    }

    async fn act(self, action: Action, attempt: Attempt) -> (Attempt, ActionOutcome) {
        let work = Box::pin(async {
            match &action {
                Action::Check(target) => self.check(target).await,
                Action::Provision(target) => self.provision(target).await,
                Action::Deprovision(target) => self.deprovision(target).await,
                _ => self.carry_out(&action).await,
            }
        });
        let done = match &action {
            // Nobody waits for a target of a pool.
            Action::CreateTarget(target) | Action::Provision(target) if target.spec.claim_ref.is_none() => {
                in_background(work).await
            }
            // A lab may wait for the target of a claim.
            Action::Check(target) if target.spec.claim_ref.is_none() => in_background(work).await,
            _ => work.await,
        };
        (attempt, done)
    }

    async fn carry_out(&self, action: &Action) -> ActionOutcome {
        match Box::pin(self.write(action)).await {
            Ok(true) => ActionOutcome::Yes,
            Ok(false) => ActionOutcome::NotYet,
            Err(error) => ActionOutcome::Failed(error),
        }
    }

    /// Carries out an action that only writes. Returns false if somebody else has changed or removed the object, or has
    /// made it first.
    async fn write(&self, action: &Action) -> Result<bool, KubernetesError> {
        match action {
            Action::CreateTarget(target) => {
                let created = self.targets.create(target).await?;
                Ok(created.map(|created| self.seen.put_target(created)).is_some())
            }
            Action::WriteClaim(next) => {
                let before = self.seen.with(|world| world.claims.get(next.name()).cloned());
                let Some(before) = before.filter(|before| before.uid() == next.uid()) else {
                    return Ok(false);
                };
                let written = self.claims.replace(&before, next).await?;
                Ok(written.map(|written| self.seen.put_claim(written)).is_some())
            }
            Action::WriteTarget(next) => {
                let before = self.seen.with(|world| world.targets.get(next.name()).cloned());
                let Some(before) = before.filter(|before| before.uid() == next.uid()) else {
                    return Ok(false);
                };
                let written = self.targets.replace(&before, next).await?;
                Ok(written.map(|written| self.seen.put_target(written)).is_some())
            }
            Action::WriteEnvironment(next) => {
                let before = self.seen.with(|world| world.environments.get(next.name()).cloned());
                let Some(before) = before else { return Ok(false) };
                let written = self.named.replace(&before, next).await?;
                Ok(written.map(|written| self.seen.put_environment(written)).is_some())
            }
            Action::DeleteTarget { name, uid } => {
                self.targets.delete(name, uid).await?;
                Ok(false)
            }
            Action::IfClaimIsGone { claim, uid, then } => {
                let found = self.claims.get(claim.as_str()).await?;
                if found.is_some_and(|found| found.uid() == uid) {
                    return Ok(false);
                }
                Box::pin(self.write(then)).await
            }
            // These actions do more than write.
            Action::Check(_) | Action::Provision(_) | Action::Deprovision(_) => Ok(true),
        }
    }
}

fn note_failure(work: &mut Work, attempt: Attempt) {
    let tries = work.failed.get(&attempt).map_or(0, |(_, tries)| *tries);
    let pause = FIRST_PAUSE.saturating_mul(1 << tries.min(10)).min(MAX_PAUSE);
    work.failed.insert(attempt, (Instant::now() + pause, tries + 1));
}

async fn follow<T>(
    changes: impl Stream<Item = CustomChange<T>>,
    stop: &CancellationToken,
    on_change: impl Fn(CustomChange<T>),
) {
    let mut changes = pin!(changes);
    while let Some(change) = stop.run_until_cancelled(changes.next()).await.flatten() {
        on_change(change);
    }
}
