//! The chain of policies in use: which policies are called, in which order, and how their answers are used.

pub(crate) mod answer_json;
pub(crate) mod candidate;
pub(crate) mod event_queue;
pub(crate) mod last_good;
pub(crate) mod link;
pub(crate) mod loaded;
pub(crate) mod loader;
pub(crate) mod reload;
pub(crate) mod stand_in;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use wasmspawner_core::config::OnFailure;
use wasmspawner_core::images::{ImageMenu, WantedImage};
use wasmspawner_core::policy::form::{Form, FormContext};
use wasmspawner_core::policy::{
    self, AuthorizeRequest, Customization, InjectRequest, InjectVerdict, LabEvent, LabRequest, LabServer,
    Options, Subject, TextFile, User, Verdict,
};
use wasmspawner_core::users::quota::{Quota, Usage};
use wasmspawner_core::values::digest::Digest;

use self::event_queue::EventQueue;
use self::link::Link;
use self::loaded::Loaded;
use self::loader::load_chain;
use super::engine::{Engine, EngineOptions};
use super::errors::{CallBlame, CallError, EngineError, LoadError};
use super::policy::Policy;
use crate::contract::hooks::build_pod::BuildPod;
use crate::contract::hooks::form::{ParseForm, RenderForm};
use crate::contract::hooks::images::{OfferImages, Prepull};
use crate::contract::hooks::inject::Inject;
use crate::contract::hooks::lab_files::FilesOfLab;
use crate::contract::hooks::lab_server::ServeLab;
use crate::contract::hooks::quota::LimitUser;
use crate::contract::hooks::{Asked, Question};
use crate::names::hook::Hook;
use crate::names::policy_name::PolicyName;
use crate::reports::loaded_policy::LoadedPolicy;
use crate::source::cache;
use crate::source::spec::PolicySpec;
use crate::source::watched_files::WatchedFiles;
use wasmspawner_registry::inventory::LiveInventory;

/// The pause between two looks whether policies that are missing are loaded.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The answer of one policy of the chain.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyAnswer<T> {
    /// The policy that answered.
    pub policy: PolicyName,
    /// The hook that answered.
    pub hook: Hook,
    /// The answer.
    pub value: T,
}

/// The reason that the chain of policies cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum FailedPolicies {
    /// The engine cannot be set up.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// One of the policies cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// The answers of a policy to `build-pod`, `lab-server` and `lab-files`; `None` for a hook that it does not have.
struct LabAnswers {
    /// The component that answered. It differs from the one in use if that one failed.
    component: Digest,
    customization: Option<Customization>,
    server: Option<LabServer>,
    files: Option<Vec<TextFile>>,
}

/// The loaded chain of policies. Clones share it.
///
/// Every call uses the chain that was loaded when the call began. If a policy fails through its own fault, the call
/// fails. With [`OnFailure::Skip`], a policy that fails to create a form or to customize a pod is skipped with a
/// warning. A policy that limits or denies is never skipped: otherwise, anyone who can make it fail could evade it.
#[derive(Clone)]
pub struct Policies {
    pub(crate) engine: Arc<Engine>,
    pub(crate) live: Arc<ArcSwap<Loaded>>,
    /// The files from which the chain was loaded, or could not be loaded. The lock is held while the chain is replaced.
    pub(crate) files: Arc<Mutex<WatchedFiles>>,
    events: Arc<EventQueue>,
}

impl Policies {
    /// Starts the engine and loads the chain in the given order.
    ///
    /// # Errors
    ///
    /// If one policy cannot be loaded, none is.
    pub async fn load(specs: Vec<PolicySpec>, options: EngineOptions) -> Result<Self, FailedPolicies> {
        let (policies, failed) = Self::open(specs, options).await?;
        failed.map_or(Ok(policies), |error| Err(error.into()))
    }

    /// Like [`Policies::load`], for a service that has labs to look after. If a policy cannot be loaded, the service
    /// starts without any: every question to them fails with the error of that policy, until a reload succeeds.
    ///
    /// # Errors
    ///
    /// [`EngineError`]. The error of a policy is returned beside the policies.
    pub async fn open(
        specs: Vec<PolicySpec>,
        options: EngineOptions,
    ) -> Result<(Self, Option<LoadError>), EngineError> {
        if let Some(directory) = &options.cache {
            cache::open(directory)?;
        }
        let engine = Arc::new(Engine::new(options)?);
        let files = WatchedFiles::from_policies(&specs);
        let (loaded, failed) = match load_chain(&engine, specs.clone(), None).await {
            Ok(chain) => (Loaded::Chain(chain), None),
            Err(error) => (Loaded::failed(specs, &error), Some(error)),
        };
        let live = Arc::new(ArcSwap::from_pointee(loaded));
        let policies = Self { engine, live, files: Arc::new(Mutex::new(files)), events: Arc::default() };
        policies.forget_documents().await;
        Ok((policies, failed))
    }

    /// Returns the problem of a policy that could not be loaded as it is configured, while a kept version of it, or
    /// nothing, is in its place. Another reload may succeed.
    pub fn problem(&self) -> Option<String> {
        self.live.load().problem()
    }

    /// Returns the reason for which no question can be answered, if a policy could not be loaded since the service
    /// started.
    pub fn missing(&self) -> Option<String> {
        self.live.load().missing()
    }

    /// Returns the policies of the chain, in order.
    pub fn loaded(&self) -> Vec<LoadedPolicy> {
        self.live.load().chain().iter().map(|policy| policy.loaded()).collect()
    }

    /// Returns the images that policies can query.
    pub fn inventory(&self) -> &LiveInventory {
        &self.engine.options.inventory
    }

    /// Returns the configuration of the policy with this name.
    pub fn spec(&self, policy: &PolicyName) -> Option<PolicySpec> {
        self.live
            .load()
            .chain()
            .iter()
            .find(|live| live.name() == policy)
            .map(|live| live.configured().clone())
    }

    /// Returns the spawn form of the last policy that has one, or `None` if no policy has one.
    ///
    /// # Errors
    ///
    /// [`CallError`], which names the policy.
    pub async fn render_form(&self, context: &FormContext) -> Result<Option<PolicyAnswer<Form>>, CallError> {
        self.render_form_again(context, &Options::new()).await
    }

    /// Returns the spawn form like [`Self::render_form`], for a server that was last started with this submission.
    ///
    /// # Errors
    ///
    /// Those of [`Self::render_form`].
    pub async fn render_form_again(
        &self,
        context: &FormContext,
        last_options: &Options,
    ) -> Result<Option<PolicyAnswer<Form>>, CallError> {
        let question = RenderForm { context: context.clone(), last_options: last_options.clone() };
        Ok(self.answers(&question).await?.pop())
    }

    /// Converts a submission of the form to options, with the policy that creates the form. Returns `None` if no policy
    /// has a form.
    ///
    /// # Errors
    ///
    /// [`CallError`], which names the policy. An invalid submission is `Invalid`.
    pub async fn parse_submission(
        &self,
        submission: &Options,
        context: &FormContext,
    ) -> Result<Option<PolicyAnswer<Options>>, CallError> {
        let question = ParseForm { submission: submission.clone(), context: context.clone() };
        Ok(self.answers(&question).await?.pop())
    }

    /// Returns the user's menu of images from the last policy that has one, or `None` if no policy has one.
    ///
    /// # Errors
    ///
    /// [`CallError`], which names the policy. A policy is never skipped, because its menu may be what keeps users from
    /// an image.
    pub async fn image_menu(
        &self,
        context: &FormContext,
    ) -> Result<Option<PolicyAnswer<ImageMenu>>, CallError> {
        let menu = self.answers(&OfferImages(context.clone())).await?.pop();
        Ok(menu.and_then(|PolicyAnswer { policy, hook, value }| {
            Some(PolicyAnswer { policy, hook, value: value? })
        }))
    }

    /// Returns the images that the policies want nodes to have, in the order of the chain.
    ///
    /// # Errors
    ///
    /// [`CallError`], which names the policy.
    pub async fn prepull(&self) -> Result<Vec<WantedImage>, CallError> {
        let wanted = self.answers(&Prepull).await?;
        Ok(wanted.into_iter().flat_map(|answer| answer.value).collect())
    }

    /// Returns the limits of all policies that set limits. For each limit, the smallest value applies.
    ///
    /// # Errors
    ///
    /// [`CallError`], which names the policy.
    pub async fn limits(
        &self,
        user: &User,
        usage: Usage,
        subject: &Subject,
    ) -> Result<Vec<PolicyAnswer<Quota>>, CallError> {
        self.answers(&LimitUser { user: user.clone(), usage, subject: subject.clone() }).await
    }

    /// Returns the verdicts of the policies, up to the first denial. The action is allowed if all policies allow it.
    ///
    /// # Errors
    ///
    /// [`CallError`], which names the policy.
    pub async fn authorize(
        &self,
        request: &AuthorizeRequest,
    ) -> Result<Vec<PolicyAnswer<Verdict>>, CallError> {
        self.answers(request).await
    }

    /// Returns the verdicts on putting a lab into a workload, up to the first denial. Empty if no policy decides about
    /// that.
    ///
    /// # Errors
    ///
    /// [`CallError`], which names the policy.
    pub async fn inject(
        &self,
        request: &InjectRequest,
        subject: &Subject,
    ) -> Result<Vec<PolicyAnswer<InjectVerdict>>, CallError> {
        self.answers(&Inject { request: request.clone(), subject: subject.clone() }).await
    }

    /// Delivers an event to the policies, one after the other.
    ///
    /// # Errors
    ///
    /// [`CallError`] of the last policy that failed. The other policies have received the event all the same.
    pub async fn on_event(&self, event: &LabEvent) -> Result<Vec<PolicyAnswer<()>>, CallError> {
        let (mut answers, mut failed) = (Vec::new(), None);
        for policy in self.live.load_full().chain() {
            match policy_answer::<LabEvent>(policy, policy.answer(&self.engine, event).await) {
                Ok(answer) => answers.extend(answer),
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(answers), Err)
    }

    /// Queues an event for the policies, without waiting for its delivery. If the queue is full, the event is lost.
    pub fn tell(&self, event: LabEvent) {
        let live = self.live.load();
        // Policies that are missing now may want to hear of it later.
        if live.missing().is_some() || live.chain().iter().any(|policy| policy.answers::<LabEvent>()) {
            self.events.add(event);
        }
    }

    /// Delivers the queued events to the policies, until `shutdown`.
    pub async fn deliver_events(&self, shutdown: CancellationToken) {
        while let Some(Some(event)) = shutdown.run_until_cancelled(self.events.next()).await {
            let loaded = async {
                while self.missing().is_some() {
                    tokio::time::sleep(LOOK_EVERY).await;
                }
            };
            if shutdown.run_until_cancelled(loaded).await.is_none() {
                return;
            }
            if let Err(error) = self.on_event(&event).await {
                tracing::warn!(policy = %error.policy, %error, "a policy failed when it heard of an event");
            }
        }
    }

    /// Returns the policies' requests for the pod, and how its program is reached, in the order of the chain.
    ///
    /// # Errors
    ///
    /// [`CallError`], which names the policy.
    pub async fn customize(&self, request: &LabRequest) -> Result<Vec<policy::ChainAnswer>, CallError> {
        let mut answers = Vec::new();
        let request = Arc::new(request.clone());
        for policy in self.live.load_full().to_ask::<BuildPod>()? {
            let Some(given) = unless_skipped(policy, self.lab_answers(policy, &request).await)? else {
                continue;
            };
            answers.push(policy::ChainAnswer {
                author: policy::Author::Policy(policy.name().clone().into()),
                component: Some(given.component),
                grants: policy.spec.grants.clone(),
                customization: given.customization.unwrap_or_default(),
                server: given.server.unwrap_or_default(),
                files: given.files.unwrap_or_default(),
            });
        }
        Ok(answers)
    }

    /// Returns the answers of one policy to the hooks about a lab's pod, or `None` if it has none of them. If one of the
    /// hooks fails, the policy has failed: part of its requests may be worse than none.
    async fn lab_answers(
        &self,
        link: &Link,
        request: &Arc<LabRequest>,
    ) -> Option<Result<LabAnswers, CallError>> {
        let build_pod = BuildPod(Arc::clone(request));
        let serve_lab = ServeLab(Arc::clone(request));
        let files_of_lab = FilesOfLab(Arc::clone(request));
        let is_lab = request.subject.child.is_none();
        let answer = link.ask(&self.engine, async |policy| {
            let customization = policy.ask(&self.engine, &build_pod).await.transpose();
            let server = policy.ask(&self.engine, &serve_lab).await.transpose();
            let files = if is_lab { policy.ask(&self.engine, &files_of_lab).await } else { None };
            match (customization, server, files.transpose()) {
                (Ok(None), Ok(None), Ok(None)) => None,
                (Ok(customization), Ok(server), Ok(files)) => {
                    Some(Ok(LabAnswers { component: policy.digest, customization, server, files }))
                }
                (Err(error), _, _) | (_, Err(error), _) | (_, _, Err(error)) => Some(Err(error)),
            }
        });
        let answer = answer.await;
        let asked = answer.as_ref();
        self.compare(link, asked, &build_pod, |given| given.customization.as_ref());
        self.compare(link, asked, &serve_lab, |given| given.server.as_ref());
        if is_lab {
            self.compare(link, asked, &files_of_lab, |given| given.files.as_ref());
        }
        answer
    }

    /// Compares one of a policy's answers about a lab with that of its candidate. If the policy failed at another hook, there
    /// is nothing to compare, because this one may not have been asked.
    fn compare<Q: Question>(
        &self,
        link: &Link,
        answer: Option<&Result<LabAnswers, CallError>>,
        question: &Q,
        given: impl FnOnce(&LabAnswers) -> Option<&Q::Answer>,
    ) {
        let answer = match answer {
            Some(Err(error)) if error.hook != Q::HOOK => return,
            Some(answer) => answer.as_ref().map(given).transpose(),
            None => None,
        };
        link.compare(&self.engine, answer, question);
    }

    /// Asks the policies of the chain, and collects their answers, up to the last one that the question wants.
    async fn answers<Q: Question>(&self, question: &Q) -> Result<Vec<PolicyAnswer<Q::Answer>>, CallError> {
        let loaded = self.live.load_full();
        let mut answers = Vec::new();
        for link in asked::<Q>(loaded.to_ask::<Q>()?) {
            let mut answer = link.answer(&self.engine, question).await;
            if Q::SKIPPABLE {
                answer = unless_skipped(link, answer)?.map(Ok);
            }
            let Some(answer) = policy_answer::<Q>(link, answer)? else { continue };
            let is_last = Q::is_last(&answer.value);
            answers.push(answer);
            if is_last {
                break;
            }
        }
        Ok(answers)
    }
}

/// Returns the policies that are asked this question, in order.
fn asked<Q: Question>(chain: &[Arc<Link>]) -> Vec<&Arc<Link>> {
    match Q::ASKED {
        Asked::All => chain.iter().collect(),
        Asked::LastFirst => chain.iter().rev().collect(),
        Asked::Last => chain.iter().rev().find(|policy| policy.answers::<Q>()).into_iter().collect(),
    }
}

/// Converts the answer of one policy to that of the chain. Returns `None` if the policy does not have the hook.
fn policy_answer<Q: Question>(
    policy: &Policy,
    answer: Option<Result<Q::Answer, CallError>>,
) -> Result<Option<PolicyAnswer<Q::Answer>>, CallError> {
    let answer = answer.transpose()?;
    Ok(answer.map(|value| PolicyAnswer { policy: policy.name().clone(), hook: Q::HOOK, value }))
}

/// Returns the answer, or `None` if the policy does not have the hook, or has failed and is skipped.
fn unless_skipped<T>(policy: &Policy, answer: Option<Result<T, CallError>>) -> Result<Option<T>, CallError> {
    match answer.transpose() {
        Err(error)
            if policy.spec.on_failure == OnFailure::Skip && error.kind.blame() == CallBlame::Policy =>
        {
            tracing::warn!(policy = %policy.name(), %error, "the policy failed and is skipped");
            Ok(None)
        }
        answer => answer,
    }
}
