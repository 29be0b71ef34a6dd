use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use wasmspawner_core::form::{Form, FormContext};
use wasmspawner_core::policy::{
    AuthorizeRequest, Customization, FieldError, HookError, LabRequest, Options, User, Verdict, check_form,
};
use wasmspawner_core::quota::{Quota, Usage};
use wasmtime::Store;
use wasmtime::component::{Component, Instance, InstancePre};

use super::bindings::hooks;
use super::convert;
use super::engine::{Engine, Stopwatch, WrongType};
use super::errors::{CallError, CallErrorKind, LoadErrorKind};
use super::imports::CallState;
use super::spec::{Digest, PolicyName, PolicySpec};

/// The WIT package this host speaks.
const WIT_VERSION: &str = "wasmspawner:policy@0.1.0";

/// One function of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(into = "&'static str")]
pub enum Hook {
    /// Who the policy is.
    Describe,
    /// Checks the configuration.
    Validate,
    /// The spawn form.
    RenderForm,
    /// A submission becomes options.
    ParseForm,
    /// How much a user may have.
    Quota,
    /// May this happen?
    Authorize,
    /// What the pod looks like.
    BuildPod,
}

impl Hook {
    /// The hook's interface and function in `wit/`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Describe => "metadata.describe",
            Self::Validate => "config.validate",
            Self::RenderForm => "form.render",
            Self::ParseForm => "form.parse",
            Self::Quota => "quota.limits",
            Self::Authorize => "authorize.decide",
            Self::BuildPod => "build-pod.customize",
        }
    }
}

impl From<Hook> for &'static str {
    fn from(hook: Hook) -> Self {
        hook.name()
    }
}

impl fmt::Display for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A live policy, for people and `GET /policies`.
#[derive(Clone, Debug, Serialize)]
pub struct LoadedPolicy {
    /// The operator's name for it.
    pub name: PolicyName,
    /// What it calls itself.
    pub title: String,
    /// Its own version.
    pub version: String,
    /// Its own description.
    pub description: String,
    /// Digest of the component.
    pub digest: Digest,
    /// The WIT package it was built for.
    pub wit_version: &'static str,
    /// What it decides: the interfaces it exports.
    pub hooks: Vec<&'static str>,
    /// When it went live.
    pub loaded_at: jiff::Timestamp,
    /// The last failure that was the policy's fault: of a call, or of a reload that kept this one alive.
    pub last_error: Option<String>,
}

/// The hooks a component exports, looked up once.
pub(super) struct Exports {
    metadata: hooks::metadata::GuestIndices,
    config: Option<hooks::config::GuestIndices>,
    form: Option<hooks::form::GuestIndices>,
    quota: Option<hooks::quota::GuestIndices>,
    authorize: Option<hooks::authorize::GuestIndices>,
    build_pod: Option<hooks::build_pod::GuestIndices>,
}

impl Exports {
    /// `None` for a hook that is absent; an error for one that is there and lacks a function.
    fn of(pre: &InstancePre<CallState>) -> Result<Self, LoadErrorKind> {
        Ok(Self {
            metadata: export(pre, "metadata", hooks::metadata::GuestIndices::new)?
                .ok_or(LoadErrorKind::NoMetadata)?,
            config: export(pre, "config", hooks::config::GuestIndices::new)?,
            form: export(pre, "form", hooks::form::GuestIndices::new)?,
            quota: export(pre, "quota", hooks::quota::GuestIndices::new)?,
            authorize: export(pre, "authorize", hooks::authorize::GuestIndices::new)?,
            build_pod: export(pre, "build-pod", hooks::build_pod::GuestIndices::new)?,
        })
    }

    fn names(&self) -> Vec<&'static str> {
        let present = [
            ("config", self.config.is_some()),
            ("form", self.form.is_some()),
            ("quota", self.quota.is_some()),
            ("authorize", self.authorize.is_some()),
            ("build-pod", self.build_pod.is_some()),
        ];
        present.into_iter().filter_map(|(name, there)| there.then_some(name)).collect()
    }
}

fn export<T>(
    pre: &InstancePre<CallState>,
    interface: &str,
    look_up: impl FnOnce(&InstancePre<CallState>) -> wasmtime::Result<T>,
) -> Result<Option<T>, LoadErrorKind> {
    if pre.component().get_export_index(None, format!("wasmspawner:policy/{interface}@0.1.0")).is_none() {
        return Ok(None);
    }
    let wrong =
        |error: wasmtime::Error| LoadErrorKind::Trial(CallErrorKind::Incompatible(format!("{error:#}")));
    look_up(pre).map(Some).map_err(wrong)
}

/// A component that may be called: one policy of the chain.
pub(super) struct Policy {
    pub(super) spec: PolicySpec,
    pub(super) digest: Digest,
    component: InstancePre<CallState>,
    exports: Exports,
    config: Arc<str>,
    about: About,
    loaded_at: jiff::Timestamp,
    last_error: Mutex<Option<String>>,
}

/// What a policy says about itself.
#[derive(Default)]
pub(super) struct About {
    pub(super) title: String,
    pub(super) version: String,
    pub(super) description: String,
}

/// Calls one function of one exported hook on a fresh instance.
macro_rules! call {
    ($policy:ident, $engine:ident, $hook:expr, $indices:expr, |$guest:ident, $store:ident| $call:expr) => {
        $policy
            .on_fresh_instance(
                $engine,
                $hook,
                |mut $store: Store<CallState>, instance: Instance| async move {
                    let answer = match $indices.load(&mut $store, &instance) {
                        Ok($guest) => $call.await,
                        Err(error) => Err(WrongType(format!("{error:#}")).into()),
                    };
                    ($store, answer)
                },
            )
            .await
    };
}

impl Policy {
    pub(super) fn new(
        spec: PolicySpec,
        digest: Digest,
        engine: &Engine,
        component: &Component,
    ) -> Result<Self, LoadErrorKind> {
        let pre = engine
            .linker
            .instantiate_pre(component)
            .map_err(|error| LoadErrorKind::Link(format!("{error:#}")))?;
        let spec = PolicySpec { limits: spec.limits.within_the_engine(), ..spec };
        Ok(Self {
            exports: Exports::of(&pre)?,
            config: spec.config.to_string().into(),
            component: pre,
            spec,
            digest,
            about: About::default(),
            loaded_at: jiff::Timestamp::now(),
            last_error: Mutex::default(),
        })
    }

    pub(super) fn introduce(&mut self, about: About) {
        self.about = about;
    }

    pub(super) fn name(&self) -> &PolicyName {
        &self.spec.name
    }

    pub(super) fn takes_config(&self) -> bool {
        self.exports.config.is_some()
    }

    pub(super) fn note_error(&self, error: String) {
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    pub(super) fn loaded(&self) -> LoadedPolicy {
        LoadedPolicy {
            name: self.name().clone(),
            title: self.about.title.clone(),
            version: self.about.version.clone(),
            description: self.about.description.clone(),
            digest: self.digest.clone(),
            wit_version: WIT_VERSION,
            hooks: self.exports.names(),
            loaded_at: self.loaded_at,
            last_error: self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    /// Loads every exported hook into one instance, which checks their types.
    pub(super) async fn check_types(&self, engine: &Engine) -> Result<(), CallError> {
        let exports = &self.exports;
        self.on_fresh_instance(engine, Hook::Describe, |mut store, instance| async move {
            let checked = (|| {
                exports.metadata.load(&mut store, &instance)?;
                exports.config.as_ref().map(|hook| hook.load(&mut store, &instance)).transpose()?;
                exports.form.as_ref().map(|hook| hook.load(&mut store, &instance)).transpose()?;
                exports.quota.as_ref().map(|hook| hook.load(&mut store, &instance)).transpose()?;
                exports.authorize.as_ref().map(|hook| hook.load(&mut store, &instance)).transpose()?;
                exports.build_pod.as_ref().map(|hook| hook.load(&mut store, &instance)).transpose()?;
                Ok(())
            })();
            let checked = checked.map_err(|error: wasmtime::Error| WrongType(format!("{error:#}")).into());
            (store, checked)
        })
        .await
    }

    pub(super) async fn describe(&self, engine: &Engine) -> Result<About, CallError> {
        let hook = &self.exports.metadata;
        let info = call!(self, engine, Hook::Describe, hook, |guest, store| guest.call_describe(&mut store))?;
        Ok(About { title: info.name, version: info.version, description: info.description })
    }

    /// Warnings, or every problem; nothing when the policy takes no configuration.
    pub(super) async fn validate(
        &self,
        engine: &Engine,
    ) -> Result<Result<Vec<String>, Vec<FieldError>>, CallError> {
        let Some(hook) = &self.exports.config else { return Ok(Ok(Vec::new())) };
        let config = &*self.config;
        let answer = call!(self, engine, Hook::Validate, hook, |guest, store| guest
            .call_validate(&mut store, config))?;
        Ok(answer.map_err(convert::field_errors))
    }

    pub(super) fn exports_form(&self) -> bool {
        self.exports.form.is_some()
    }

    /// `None` when the policy does not decide about forms; the same below for the other hooks.
    pub(super) async fn render_form(
        &self,
        engine: &Engine,
        context: &FormContext,
    ) -> Option<Result<Form, CallError>> {
        let hook = self.exports.form.as_ref()?;
        let context = &convert::form_context(context);
        let answer = call!(self, engine, Hook::RenderForm, hook, |guest, store| guest
            .call_render(&mut store, context));
        Some(self.settle(Hook::RenderForm, answer, convert::hook_error, convert::form))
    }

    /// The form, where the operator granted what it is made of.
    pub(super) fn granted(&self, form: Form) -> Result<Form, CallError> {
        match check_form(self.name().as_str(), &form, &self.spec.grants) {
            Ok(()) => Ok(form),
            Err(violation) => Err(self.failed(Hook::RenderForm, CallErrorKind::NotGranted(violation))),
        }
    }

    pub(super) async fn parse_form(
        &self,
        engine: &Engine,
        submission: &Options,
        context: &FormContext,
    ) -> Option<Result<Options, CallError>> {
        let hook = self.exports.form.as_ref()?;
        let submission = &*convert::option_entries(submission);
        let context = &convert::form_context(context);
        let answer = call!(self, engine, Hook::ParseForm, hook, |guest, store| guest
            .call_parse(&mut store, submission, context));
        let invalid = |errors| HookError::Invalid(convert::field_errors(errors));
        Some(self.settle(Hook::ParseForm, answer, invalid, convert::options))
    }

    pub(super) async fn limits(
        &self,
        engine: &Engine,
        user: &User,
        usage: Usage,
    ) -> Option<Result<Quota, CallError>> {
        let hook = self.exports.quota.as_ref()?;
        let user = &convert::user(user);
        let usage = convert::usage(usage);
        let answer =
            call!(self, engine, Hook::Quota, hook, |guest, store| guest.call_limits(&mut store, user, usage));
        Some(self.settle(Hook::Quota, answer, convert::hook_error, convert::quota))
    }

    pub(super) async fn authorize(
        &self,
        engine: &Engine,
        request: &AuthorizeRequest,
    ) -> Option<Result<Verdict, CallError>> {
        let hook = self.exports.authorize.as_ref()?;
        let request = &convert::authorize_request(request);
        let answer =
            call!(self, engine, Hook::Authorize, hook, |guest, store| guest.call_decide(&mut store, request));
        Some(self.settle(Hook::Authorize, answer, convert::hook_error, convert::verdict))
    }

    pub(super) async fn customize(
        &self,
        engine: &Engine,
        request: &LabRequest,
    ) -> Option<Result<Customization, CallError>> {
        let hook = self.exports.build_pod.as_ref()?;
        let request = &convert::lab_request(request);
        let answer = call!(self, engine, Hook::BuildPod, hook, |guest, store| guest
            .call_customize(&mut store, request));
        Some(self.settle(Hook::BuildPod, answer, convert::hook_error, convert::customization))
    }

    async fn on_fresh_instance<T, F, Fut>(&self, engine: &Engine, hook: Hook, work: F) -> Result<T, CallError>
    where
        F: FnOnce(Store<CallState>, Instance) -> Fut,
        Fut: Future<Output = (Store<CallState>, wasmtime::Result<T>)>,
    {
        let stopwatch = Stopwatch::start();
        let limits = &self.spec.limits;
        let state = CallState::new(self.name().clone(), self.config.clone(), limits);
        let answer = engine.call(&self.component, state, limits, work).await;
        stopwatch.stop(engine, self.name(), hook, &answer);
        answer.map_err(|kind| self.failed(hook, kind))
    }

    /// The hook's own error or its converted answer.
    fn settle<G, E, T>(
        &self,
        hook: Hook,
        answer: Result<Result<G, E>, CallError>,
        error: impl FnOnce(E) -> HookError,
        value: impl FnOnce(G) -> T,
    ) -> Result<T, CallError> {
        answer?.map(value).map_err(|refusal| self.failed(hook, error(refusal).into()))
    }

    fn failed(&self, hook: Hook, kind: CallErrorKind) -> CallError {
        let error = CallError { policy: self.name().clone(), hook, kind };
        if error.kind.blame() == super::Blame::Policy {
            self.note_error(error.to_string());
        }
        error
    }
}
