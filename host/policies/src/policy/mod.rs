//! One policy: a checked component that can be called.

pub(crate) mod checked_answer;
pub(crate) mod loader;
pub(crate) mod prepared;
pub(crate) mod question;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use tracing::Instrument;
use wasmspawner_core::config::OnFailure;
use wasmspawner_core::images::{ImageMenu, WantedImage};
use wasmspawner_core::policy::form::{Form, FormContext};
use wasmspawner_core::policy::{
    AuthorizeRequest, Customization, InjectRequest, InjectVerdict, LabEvent, LabRequest, LabServer, Options,
    Subject, User, Verdict,
};
use wasmspawner_core::users::quota::{Quota, Usage};
use wasmtime::component::{Component, InstancePre, types};

use super::engine::{Engine, Stopwatch};
use super::errors::{CallBlame, CallError, CallErrorKind, LoadErrorKind};
use super::limits::Limits;
use super::signature::Trust;
use super::site_data::LiveData;
use crate::contract::call::Call;
use crate::contract::call_state::{CallState, Given};
use crate::contract::hook_table::{Calling, Ended, Guest, HookTable, PolicyInfo};
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
    hooks: Arc<HookTable>,
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
            hooks: Arc::new(package::hooks_of(&pre)?),
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
        self.hooks.prepare.is_some()
    }

    pub(crate) fn set_preparation(&mut self, preparation: Preparation) {
        self.preparation = preparation;
    }

    pub(crate) fn name(&self) -> &PolicyName {
        &self.spec.name
    }

    pub(crate) fn takes_config(&self) -> bool {
        self.hooks.config.is_some()
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
            wit_version: format!("wasmspawner:policy@{}", package::VERSION),
            hooks: self.hooks.names(),
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
        self.on_fresh_instance(engine, Hook::Describe, self.hooks.check_types()).await
    }

    pub(crate) async fn describe(&self, engine: &Engine) -> Result<PolicyInfo, CallError> {
        self.on_fresh_instance(engine, Hook::Describe, self.hooks.metadata.describe()).await
    }

    pub(crate) async fn config_schema(&self, engine: &Engine) -> Result<String, CallError> {
        self.on_fresh_instance(engine, Hook::Describe, self.hooks.metadata.config_schema()).await
    }

    /// Returns the type of the component, with its imported and exported interfaces.
    pub(crate) fn component_type(&self) -> types::Component {
        self.component.component().component_type()
    }

    /// Returns the policy's warnings about its configuration. If the policy finds errors, all of them are in
    /// [`CallErrorKind::Invalid`]. A policy that accepts no configuration has no warnings.
    pub(crate) async fn validate(&self, engine: &Engine) -> Result<Vec<String>, CallError> {
        let Some(hook) = &self.hooks.config else { return Ok(Vec::new()) };
        self.on_fresh_instance(engine, Hook::Validate, hook.validate(&self.config)).await
    }

    /// Runs `prepare`, and then calls `read` with the instance. Returns `None` if the policy does not have the hook.
    pub(crate) async fn prepare<'a, T: Send + 'a>(
        &self,
        engine: &Engine,
        read: impl FnOnce(Guest, wasmtime::Result<()>) -> BoxFuture<'a, Ended<T>> + Send + 'a,
    ) -> Option<Result<T, CallError>> {
        let run = self.hooks.prepare.as_ref()?.run();
        let call = |guest| -> BoxFuture<'a, Ended<T>> {
            Box::pin(async move {
                let (guest, ran) = run(guest).await;
                read(guest, ran).await
            })
        };
        let make = |state, limits| engine.call_here(&self.component, &self.slots, state, limits, call);
        Some(self.watched(engine, Hook::Prepare.into(), make).await)
    }

    pub(crate) fn hears_events(&self) -> bool {
        self.hooks.events.is_some()
    }

    pub(crate) fn exports_form(&self) -> bool {
        self.hooks.form.is_some()
    }

    /// Returns `None` if the policy does not have the hook, as the methods below do.
    pub(crate) async fn render_form(
        &self,
        engine: &Engine,
        context: &FormContext,
    ) -> Option<Result<Form, CallError>> {
        let hook = self.hooks.form.as_ref()?;
        let check = |form| checked_answer::form(form, &self.spec);
        Some(self.checked_call(engine, Hook::RenderForm, hook.render(context), check).await)
    }

    pub(crate) async fn parse_form(
        &self,
        engine: &Engine,
        submission: &Options,
        context: &FormContext,
    ) -> Option<Result<Options, CallError>> {
        let hook = self.hooks.form.as_ref()?;
        Some(self.on_fresh_instance(engine, Hook::ParseForm, hook.parse(submission, context)).await)
    }

    pub(crate) async fn limits(
        &self,
        engine: &Engine,
        user: &User,
        usage: Usage,
        subject: &Subject,
    ) -> Option<Result<Quota, CallError>> {
        let hook = self.hooks.quota.as_ref()?;
        let call = Call { subject: subject.clone(), ..Hook::Quota.into() };
        Some(self.on_fresh_instance(engine, call, hook.limits(user, usage)).await)
    }

    pub(crate) async fn authorize(
        &self,
        engine: &Engine,
        request: &AuthorizeRequest,
    ) -> Option<Result<Verdict, CallError>> {
        let hook = self.hooks.authorize.as_ref()?;
        let call = Call { subject: request.subject.clone(), ..Hook::Authorize.into() };
        Some(self.on_fresh_instance(engine, call, hook.decide(request)).await)
    }

    pub(crate) async fn inject(
        &self,
        engine: &Engine,
        request: &InjectRequest,
        subject: &Subject,
    ) -> Option<Result<InjectVerdict, CallError>> {
        let hook = self.hooks.inject.as_ref()?;
        let call = Call { subject: subject.clone(), ..Hook::Inject.into() };
        Some(self.on_fresh_instance(engine, call, hook.decide(request)).await)
    }

    pub(crate) async fn on_event(&self, engine: &Engine, event: &LabEvent) -> Option<Result<(), CallError>> {
        let hook = self.hooks.events.as_ref()?;
        let call = Call { subject: event.subject.clone(), ..Hook::Events.into() };
        Some(self.on_fresh_instance(engine, call, hook.on_event(event)).await)
    }

    pub(crate) async fn customize(
        &self,
        engine: &Engine,
        request: &LabRequest,
    ) -> Option<Result<Customization, CallError>> {
        let hook = self.hooks.build_pod.as_ref()?;
        let call = Call::about(Hook::BuildPod, request);
        Some(self.on_fresh_instance(engine, call, hook.customize(request)).await)
    }

    pub(crate) async fn lab_server(
        &self,
        engine: &Engine,
        request: &LabRequest,
    ) -> Option<Result<LabServer, CallError>> {
        let hook = self.hooks.lab_server.as_ref()?;
        let call = Call::about(Hook::LabServer, request);
        Some(self.on_fresh_instance(engine, call, hook.decide(request)).await)
    }

    /// Returns `Some(Ok(None))` if the policy has the hook, but no menu.
    pub(crate) async fn image_menu(
        &self,
        engine: &Engine,
        context: &FormContext,
    ) -> Option<Result<Option<ImageMenu>, CallError>> {
        let hook = self.hooks.images.as_ref()?;
        Some(self.checked_call(engine, Hook::ImageMenu, hook.menu(context), checked_answer::menu).await)
    }

    pub(crate) async fn prepull(&self, engine: &Engine) -> Option<Result<Vec<WantedImage>, CallError>> {
        let hook = self.hooks.images.as_ref()?;
        Some(self.checked_call(engine, Hook::Prepull, hook.prepull(), checked_answer::wanted).await)
    }

    async fn on_fresh_instance<T: Send + 'static>(
        &self,
        engine: &Engine,
        call: impl Into<Call>,
        run: Calling<T>,
    ) -> Result<T, CallError> {
        self.checked_call(engine, call, run, Ok).await
    }

    /// Makes a call. The check of the answer is a part of the call.
    async fn checked_call<T: Send + 'static>(
        &self,
        engine: &Engine,
        call: impl Into<Call>,
        run: Calling<T>,
        check: impl FnOnce(T) -> Result<T, CallErrorKind>,
    ) -> Result<T, CallError> {
        let make = async |state, limits| {
            engine.call(&self.component, &self.slots, state, limits, &self.pace, run).await.and_then(check)
        };
        self.watched(engine, call.into(), make).await
    }

    /// Makes a call with `make`. Measures and traces it, and keeps its error if it fails.
    async fn watched<T>(
        &self,
        engine: &Engine,
        call: Call,
        make: impl AsyncFnOnce(CallState, Limits) -> Result<T, CallErrorKind>,
    ) -> Result<T, CallError> {
        let stopwatch = Stopwatch::start();
        let Call { hook, lab, subject } = call;
        let limits = self.spec.limits.for_hook(hook);
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
