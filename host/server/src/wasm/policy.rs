use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use wasmspawner_core::form::{self, Form, FormContext};
use wasmspawner_core::names::Fields;
use wasmspawner_core::policy::{AuthorizeRequest, Customization, LabRequest, Options, User, Verdict};
use wasmspawner_core::quota::{Quota, Usage};
use wasmtime::Store;
use wasmtime::component::{Component, Instance, InstancePre};

use super::bindings::hooks::metadata::Info;
use super::bindings::types;
use super::convert;
use super::digest::Digest;
use super::engine::{Engine, Stopwatch, WrongType};
use super::errors::{CallBlame, CallError, CallErrorKind, LoadErrorKind};
use super::exports::Exports;
use super::hook::Hook;
use super::imports::CallState;
use super::policy_name::PolicyName;
use super::spec::PolicySpec;

/// The WIT package that this host implements.
const WIT_VERSION: &str = "wasmspawner:policy@0.1.0";

/// A policy of the chain, for the log and `GET /policies`.
#[derive(Clone, Debug, Serialize)]
pub struct LoadedPolicy {
    /// The policy's name in the configuration.
    pub name: PolicyName,
    /// The title that the policy gives itself.
    pub title: String,
    /// The policy's own version.
    pub version: String,
    /// The policy's own description.
    pub description: String,
    /// The digest of the component.
    pub digest: Digest,
    /// The version of the WIT package that the policy was built for.
    pub wit_version: &'static str,
    /// The hooks that the policy implements: the interfaces it exports.
    pub hooks: Vec<&'static str>,
    /// When the policy was loaded.
    pub loaded_at: jiff::Timestamp,
    /// The last error for which the policy was at fault: of a call, or of a reload after which this version was kept.
    pub last_error: Option<String>,
}

/// One policy of the chain: a checked component that can be called.
pub(super) struct Policy {
    pub(super) spec: PolicySpec,
    pub(super) digest: Digest,
    component: InstancePre<CallState>,
    exports: Exports,
    config: Arc<str>,
    about: PolicyInfo,
    loaded_at: jiff::Timestamp,
    last_error: Mutex<Option<String>>,
}

/// How a policy describes itself.
#[derive(Default)]
pub(super) struct PolicyInfo {
    pub(super) title: String,
    pub(super) version: String,
    pub(super) description: String,
}

/// One call: the hook, and the lab that it is about, if any.
struct Call {
    hook: Hook,
    lab: Option<Arc<Fields>>,
}

impl From<Hook> for Call {
    fn from(hook: Hook) -> Self {
        Self { hook, lab: None }
    }
}

/// Calls one function of an exported hook on a fresh instance, and converts and checks the answer with `$convert_answer`.
macro_rules! call {
    ($policy:ident, $engine:ident, $hook:expr, $indices:expr, |$guest:ident, $store:ident| $call:expr, $convert_answer:expr) => {
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
                $convert_answer,
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
            about: PolicyInfo::default(),
            loaded_at: jiff::Timestamp::now(),
            last_error: Mutex::default(),
        })
    }

    pub(super) fn set_info(&mut self, about: PolicyInfo) {
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
        self.on_fresh_instance(
            engine,
            Hook::Describe,
            |mut store, instance| async move {
                let checked = (|| {
                    exports.metadata.load(&mut store, &instance)?;
                    exports.config.as_ref().map(|hook| hook.load(&mut store, &instance)).transpose()?;
                    exports.form.as_ref().map(|hook| hook.load(&mut store, &instance)).transpose()?;
                    exports.quota.as_ref().map(|hook| hook.load(&mut store, &instance)).transpose()?;
                    exports.authorize.as_ref().map(|hook| hook.load(&mut store, &instance)).transpose()?;
                    exports.build_pod.as_ref().map(|hook| hook.load(&mut store, &instance)).transpose()?;
                    Ok(())
                })();
                let checked =
                    checked.map_err(|error: wasmtime::Error| WrongType(format!("{error:#}")).into());
                (store, checked)
            },
            Ok,
        )
        .await
    }

    pub(super) async fn describe(&self, engine: &Engine) -> Result<PolicyInfo, CallError> {
        let hook = &self.exports.metadata;
        let about = |info: Info| {
            Ok(PolicyInfo { title: info.name, version: info.version, description: info.description })
        };
        call!(self, engine, Hook::Describe, hook, |guest, store| guest.call_describe(&mut store), about)
    }

    /// The policy's warnings about its configuration. If it finds errors, all of them are in
    /// [`CallErrorKind::Invalid`]. A policy that takes no configuration has no warnings.
    pub(super) async fn validate(&self, engine: &Engine) -> Result<Vec<String>, CallError> {
        let Some(hook) = &self.exports.config else { return Ok(Vec::new()) };
        let config = &*self.config;
        let convert_answer = |said: Result<_, _>| said.map_err(invalid);
        call!(
            self,
            engine,
            Hook::Validate,
            hook,
            |guest, store| guest.call_validate(&mut store, config),
            convert_answer
        )
    }

    pub(super) fn exports_form(&self) -> bool {
        self.exports.form.is_some()
    }

    /// `None` if the policy does not have the hook; the same holds for the methods below.
    pub(super) async fn render_form(
        &self,
        engine: &Engine,
        context: &FormContext,
    ) -> Option<Result<Form, CallError>> {
        let hook = self.exports.form.as_ref()?;
        let context = &convert::form_context(context);
        let convert_answer =
            |said: Result<_, _>| self.check_form_grants(said.map(convert::form).map_err(refusal)?);
        Some(call!(
            self,
            engine,
            Hook::RenderForm,
            hook,
            |guest, store| guest.call_render(&mut store, context),
            convert_answer
        ))
    }

    /// Checks that the form needs no grant that the policy lacks, and that it can be filled in.
    fn check_form_grants(&self, form: Form) -> Result<Form, CallErrorKind> {
        form::check_grant(self.name().as_str(), &form, &self.spec.grants)
            .map_err(CallErrorKind::NotGranted)?;
        form::check(&form).map_err(CallErrorKind::UnusableForm)?;
        Ok(form)
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
        let convert_answer = |said: Result<_, _>| said.map(convert::options).map_err(invalid);
        Some(call!(
            self,
            engine,
            Hook::ParseForm,
            hook,
            |guest, store| guest.call_parse(&mut store, submission, context),
            convert_answer
        ))
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
        let convert_answer = |said: Result<_, _>| said.map(convert::quota).map_err(refusal);
        Some(call!(
            self,
            engine,
            Hook::Quota,
            hook,
            |guest, store| guest.call_limits(&mut store, user, usage),
            convert_answer
        ))
    }

    pub(super) async fn authorize(
        &self,
        engine: &Engine,
        request: &AuthorizeRequest,
    ) -> Option<Result<Verdict, CallError>> {
        let hook = self.exports.authorize.as_ref()?;
        let request = &convert::authorize_request(request);
        let convert_answer = |said: Result<_, _>| said.map(convert::verdict).map_err(refusal);
        Some(call!(
            self,
            engine,
            Hook::Authorize,
            hook,
            |guest, store| guest.call_decide(&mut store, request),
            convert_answer
        ))
    }

    pub(super) async fn customize(
        &self,
        engine: &Engine,
        request: &LabRequest,
    ) -> Option<Result<Customization, CallError>> {
        let hook = self.exports.build_pod.as_ref()?;
        let call = Call { hook: Hook::BuildPod, lab: request.fields.clone() };
        let request = &convert::lab_request(request);
        let convert_answer = |said: Result<_, _>| said.map(convert::customization).map_err(refusal);
        Some(call!(
            self,
            engine,
            call,
            hook,
            |guest, store| guest.call_customize(&mut store, request),
            convert_answer
        ))
    }

    async fn on_fresh_instance<G, T, F, Fut>(
        &self,
        engine: &Engine,
        call: impl Into<Call>,
        work: F,
        convert_answer: impl FnOnce(G) -> Result<T, CallErrorKind>,
    ) -> Result<T, CallError>
    where
        F: FnOnce(Store<CallState>, Instance) -> Fut,
        Fut: Future<Output = (Store<CallState>, wasmtime::Result<G>)>,
    {
        let stopwatch = Stopwatch::start();
        let Call { hook, lab } = call.into();
        let limits = &self.spec.limits;
        let state = CallState::new(self.name().clone(), self.config.clone(), lab, limits);
        let answer = engine.call(&self.component, state, limits, work).await.and_then(convert_answer);
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
}

fn refusal(error: types::Error) -> CallErrorKind {
    convert::hook_error(error).into()
}

fn invalid(errors: Vec<types::FieldError>) -> CallErrorKind {
    CallErrorKind::invalid(convert::field_errors(errors))
}
