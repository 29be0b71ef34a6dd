//! One policy: a checked component that can be called.

pub(crate) mod loader;
pub(crate) mod prepared;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use tracing::Instrument;
use wasmspawner_core::config::OnFailure;
use wasmtime::component::{Component, InstancePre, types};

use super::engine::{Engine, Stopwatch};
use super::errors::{CallBlame, CallError, CallErrorKind, LoadErrorKind};
use super::limits::Limits;
use super::signature::Trust;
use super::site_data::LiveData;
use crate::contract::call_state::{CallState, Given};
use crate::contract::guest::{Calling, Ended, Guest};
use crate::contract::hooks::metadata::{Describe, PolicyInfo};
use crate::contract::hooks::{About, Exports, Question, prepare};
use crate::contract::package;
use crate::engine::background::Pace;
use crate::limits::slots::PolicySlots;
use crate::names::hook::Hook;
use crate::names::message::message;
use crate::names::policy_name::PolicyName;
use crate::reports::loaded_policy::{LoadedPolicy, Preparation};
use crate::reports::version_record::Version;
use crate::source::spec::PolicySpec;
use wasmspawner_core::values::digest::Digest;
use wasmspawner_telemetry::trace;

/// One policy of the chain: a checked component that can be called.
pub(crate) struct Policy {
    pub(crate) spec: PolicySpec,
    pub(crate) digest: Digest,
    component: InstancePre<CallState>,
    exports: Arc<Exports>,
    pub(crate) config: Arc<str>,
    data: Arc<LiveData>,
    info: PolicyInfo,
    pub(crate) trust: Trust,
    preparation: Preparation,
    loaded_at: jiff::Timestamp,
    last_error: Mutex<Option<String>>,
    has_failed: AtomicBool,
    pace: Pace,
    slots: PolicySlots,
}

/// A call of a policy, apart from the function itself.
struct Call {
    hook: Hook,
    about: About,
    limits: Limits,
}

impl Policy {
    pub(crate) fn new(
        spec: PolicySpec,
        digest: Digest,
        engine: &Engine,
        component: &Component,
    ) -> Result<Self, LoadErrorKind> {
        let pre = engine
            .linker
            .instantiate_pre(component)
            .map_err(|error| LoadErrorKind::Link(message(format!("{error:#}"))))?;
        let spec = PolicySpec { limits: spec.limits.within_the_engine(), ..spec };
        Ok(Self {
            exports: Arc::new(Exports::find(&pre)?),
            config: spec.config.to_string().into(),
            component: pre,
            spec,
            digest,
            data: Arc::default(),
            info: PolicyInfo::default(),
            trust: Trust::default(),
            preparation: Preparation::default(),
            loaded_at: jiff::Timestamp::now(),
            last_error: Mutex::default(),
            has_failed: AtomicBool::default(),
            pace: Pace::default(),
            slots: engine.slots.for_a_policy(),
        })
    }

    pub(crate) fn set_info(&mut self, info: PolicyInfo) {
        self.info = info;
    }

    pub(crate) fn set_trust(&mut self, trust: Trust) {
        self.trust = trust;
    }

    /// Returns this version in the form for the record.
    pub(crate) fn recorded(&self) -> Version {
        Version {
            component: self.digest,
            config: self.spec.config.clone(),
            data: self.spec.data.clone(),
            key: self.trust.key(),
        }
    }

    /// Marks this version as one that failed before it was loaded this time.
    pub(crate) fn set_failed(&self) {
        self.has_failed.store(true, Ordering::Relaxed);
    }

    /// Returns the same policy with the grants and limits of `now`, to answer if that policy fails.
    pub(crate) fn under(&self, now: &PolicySpec, engine: &Engine) -> Result<Self, LoadErrorKind> {
        let spec = PolicySpec { grants: now.grants.clone(), limits: now.limits, ..self.spec.clone() };
        let policy = Self::new(spec, self.digest, engine, self.component.component())?;
        let (preparation, trust) = (self.preparation.clone(), self.trust.clone());
        Ok(Self { info: self.info.clone(), data: Arc::clone(&self.data), preparation, trust, ..policy })
    }

    /// Returns true for the same component with the same configuration.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.recorded().is_like(&other.recorded())
    }

    /// Returns true once a call has failed through the policy's own fault.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Returns the same policy with another component.
    pub(crate) fn with(&self, engine: &Engine, component: &Component) -> Result<Self, LoadErrorKind> {
        let policy = Self::new(self.spec.clone(), self.digest, engine, component)?;
        Ok(Self { info: self.info.clone(), data: self.data.clone(), ..policy })
    }

    pub(crate) fn set_data(&mut self, data: LiveData) {
        self.data = Arc::new(data);
    }

    /// Reads the documents with the policy's data that are due.
    pub(crate) async fn refresh_data(&self, engine: &Engine) {
        self.data.refresh(self.name().as_str(), &engine.documents).await;
    }

    pub(crate) fn can_be_prepared(&self) -> bool {
        self.exports.has_prepare()
    }

    pub(crate) fn set_preparation(&mut self, preparation: Preparation) {
        self.preparation = preparation;
    }

    pub(crate) fn name(&self) -> &PolicyName {
        &self.spec.name
    }

    pub(crate) fn note_error(&self, error: String) {
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    pub(crate) fn loaded(&self) -> LoadedPolicy {
        LoadedPolicy {
            name: self.name().clone(),
            title: self.info.title.clone(),
            version: self.info.version.clone(),
            description: self.info.description.clone(),
            source: self.spec.source.to_string(),
            digest: self.digest,
            signed_by: self.trust.key_name().map(str::to_owned),
            wit_version: package::name(),
            hooks: self.exports.names(),
            grants: self.spec.grants.given(),
            preparation: self.preparation.clone(),
            loaded_at: self.loaded_at,
            last_error: self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            data: self.data.report(),
            last_good: None,
            candidate: None,
        }
    }

    /// Loads every exported hook into one instance, which checks the types of the hooks.
    pub(crate) async fn check_types(&self, engine: &Engine) -> Result<(), CallError> {
        let call = Call { hook: Describe::HOOK, about: About::default(), limits: self.spec.limits };
        self.on_fresh_instance(engine, call, self.exports.check_types(), Ok).await
    }

    /// Returns the type of the component, with its imported and exported interfaces.
    pub(crate) fn component_type(&self) -> types::Component {
        self.component.component().component_type()
    }

    /// True if the policy can be asked this question.
    pub(crate) fn answers<Q: Question>(&self) -> bool {
        Q::interface(&self.exports).is_some()
    }

    /// Asks the policy. Returns `None` if the policy does not have the hook. The check of the answer is a part of the
    /// call.
    pub(crate) async fn ask<Q: Question>(
        &self,
        engine: &Engine,
        question: &Q,
    ) -> Option<Result<Q::Answer, CallError>> {
        let run = question.call(Q::interface(&self.exports)?);
        let call = Call { hook: Q::HOOK, about: question.about(), limits: Q::limits(self.spec.limits) };
        Some(
            self.on_fresh_instance(engine, call, run, |answer| {
                Q::check(answer, &self.spec.name, &self.spec.grants)
            })
            .await,
        )
    }

    /// Like [`Policy::ask`], with the error outside.
    pub(crate) async fn asked<Q: Question>(
        &self,
        engine: &Engine,
        question: &Q,
    ) -> Result<Option<Q::Answer>, CallError> {
        self.ask(engine, question).await.transpose()
    }

    /// Runs `prepare`, and then calls `read` with the instance. Returns `None` if the policy does not have the hook.
    pub(crate) async fn prepare<'a, T: Send + 'a>(
        &self,
        engine: &Engine,
        read: impl FnOnce(Guest, wasmtime::Result<()>) -> BoxFuture<'a, Ended<T>> + Send + 'a,
    ) -> Option<Result<T, CallError>> {
        let run = self.exports.prepare()?;
        let call = |guest| -> BoxFuture<'a, Ended<T>> {
            Box::pin(async move {
                let (guest, ran) = run(guest).await;
                read(guest, ran).await
            })
        };
        let make = |state, limits| engine.call_here(&self.component, &self.slots, state, limits, call);
        let limits = prepare::limits(self.spec.limits);
        Some(self.watched(engine, Call { hook: prepare::HOOK, about: About::default(), limits }, make).await)
    }

    async fn on_fresh_instance<T: Send + 'static>(
        &self,
        engine: &Engine,
        call: Call,
        run: Calling<T>,
        check: impl FnOnce(T) -> Result<T, CallErrorKind>,
    ) -> Result<T, CallError> {
        let make = async |state, limits| {
            engine.call(&self.component, &self.slots, state, limits, &self.pace, run).await.and_then(check)
        };
        self.watched(engine, call, make).await
    }

    /// Makes a call with `make`. Measures and traces it, and keeps its error if it fails.
    async fn watched<T>(
        &self,
        engine: &Engine,
        call: Call,
        make: impl AsyncFnOnce(CallState, Limits) -> Result<T, CallErrorKind>,
    ) -> Result<T, CallError> {
        let stopwatch = Stopwatch::start();
        let Call { hook, about: About { lab, subject }, limits } = call;
        let inventory = engine.options.inventory.clone();
        let given = Given { config: self.config.clone(), data: self.data.now(), lab, subject, inventory };
        let state = CallState::new(self.name().clone(), given, &limits);
        let span = trace::policy_call(self.name().as_str(), hook.name());
        let answer = make(state, limits).instrument(span.clone()).await;
        trace::policy_answered(&span, answer.as_ref().err().map_or("ok", CallErrorKind::name));
        stopwatch.stop(engine, self.name(), hook, &answer);
        answer.map_err(|kind| self.failed(hook, kind))
    }

    fn failed(&self, hook: Hook, kind: CallErrorKind) -> CallError {
        let error = CallError { policy: self.name().clone(), hook, kind };
        if error.kind.blame() == CallBlame::Policy {
            self.note_error(error.to_string());
        }
        error
    }

    /// Marks this version as failed through its own fault. Only calls for users count, not test calls.
    pub(crate) fn note_failure(&self, engine: &Engine) {
        if !self.has_failed.swap(true, Ordering::Relaxed)
            && self.spec.on_failure == OnFailure::LastGood
            && let Some(records) = engine.versions.clone()
        {
            records.note_failure_soon(self.name().clone(), self.recorded());
        }
    }
}
