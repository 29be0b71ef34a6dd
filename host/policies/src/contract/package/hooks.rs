//! The hooks of a component, called with the core's types.

use std::sync::Arc;

use wasmspawner_core::images::{ImageMenu, WantedImage};
use wasmspawner_core::policy::form::{Form, FormContext};
use wasmspawner_core::policy::{
    AuthorizeRequest, Customization, InjectRequest, InjectVerdict, LabEvent, LabRequest, LabServer, Options,
    User, Verdict,
};
use wasmspawner_core::users::quota::{Quota, Usage};
use wasmtime::Store;
use wasmtime::component::{Instance, InstancePre};

use super::bindings::{hooks, types};
use super::{VERSION, convert};
use crate::contract::call_state::CallState;
use crate::contract::hook_table::{
    Authorize, BuildPod, Calling, Config, Events, FormHook, Guest, HookTable, ImagesHook, Inject, Interface,
    LabServerHook, Metadata, PolicyInfo, Prepare, Preparing, QuotaHook, WrongType,
};
use crate::errors::{CallErrorKind, LoadErrorKind};
use crate::names::message::{MESSAGES, message};

/// The interfaces that a policy may export.
pub(super) const INTERFACES: [&str; 11] = [
    "metadata",
    "config",
    "prepare",
    "form",
    "quota",
    "authorize",
    "inject",
    "events",
    "build-pod",
    "lab-server",
    "images",
];

/// Looks up the hooks of a component. Fails if an interface lacks a function, or has one of another type.
pub(crate) fn hooks_of(pre: &InstancePre<CallState>) -> Result<HookTable, LoadErrorKind> {
    Ok(HookTable {
        metadata: Box::new(hooks::metadata::GuestIndices::new(pre).map_err(incompatible)?),
        config: export(pre, "config", hooks::config::GuestIndices::new)?.map(|hook| Box::new(hook) as _),
        prepare: export(pre, "prepare", hooks::prepare::GuestIndices::new)?.map(|hook| Box::new(hook) as _),
        form: export(pre, "form", hooks::form::GuestIndices::new)?.map(|hook| Box::new(hook) as _),
        quota: export(pre, "quota", hooks::quota::GuestIndices::new)?.map(|hook| Box::new(hook) as _),
        authorize: export(pre, "authorize", hooks::authorize::GuestIndices::new)?
            .map(|hook| Box::new(hook) as _),
        inject: export(pre, "inject", hooks::inject::GuestIndices::new)?.map(|hook| Box::new(hook) as _),
        events: export(pre, "events", hooks::events::GuestIndices::new)?.map(|hook| Box::new(hook) as _),
        build_pod: export(pre, "build-pod", hooks::build_pod::GuestIndices::new)?
            .map(|hook| Box::new(hook) as _),
        lab_server: export(pre, "lab-server", hooks::lab_server::GuestIndices::new)?
            .map(|hook| Box::new(hook) as _),
        images: export(pre, "images", hooks::images::GuestIndices::new)?.map(|hook| Box::new(hook) as _),
    })
}

fn export<T>(
    pre: &InstancePre<CallState>,
    interface: &str,
    look_up: impl FnOnce(&InstancePre<CallState>) -> wasmtime::Result<T>,
) -> Result<Option<T>, LoadErrorKind> {
    if pre.component().get_export_index(None, format!("wasmspawner:policy/{interface}@{VERSION}")).is_none() {
        return Ok(None);
    }
    look_up(pre).map(Some).map_err(incompatible)
}

fn incompatible(error: wasmtime::Error) -> LoadErrorKind {
    LoadErrorKind::Trial(CallErrorKind::Incompatible(WrongType::from(error).0))
}

macro_rules! interface {
    ($($module:ident),*) => {$(
        impl Interface for hooks::$module::GuestIndices {
            fn check_types(
                &self,
                store: &mut Store<CallState>,
                instance: &Instance,
            ) -> wasmtime::Result<()> {
                self.load(store, instance).map(drop)
            }
        }
    )*};
}

interface!(metadata, config, prepare, form, quota, authorize, inject, events, build_pod, lab_server, images);

/// Calls one function of an interface, and converts its answer with `$convert`.
macro_rules! call {
    ($indices:ident, |$exports:ident, $store:ident| $call:expr, $convert:expr) => {{
        let indices = $indices.clone();
        Box::new(move |guest| {
            Box::pin(async move {
                let Guest { store: mut $store, instance } = guest;
                let answer = match indices.load(&mut $store, &instance) {
                    Ok($exports) => $call.await.map($convert),
                    Err(error) => Err(WrongType::from(error).into()),
                };
                ($store, answer)
            })
        })
    }};
}

impl Metadata for hooks::metadata::GuestIndices {
    fn describe(&self) -> Calling<PolicyInfo> {
        call!(self, |exports, store| exports.call_describe(&mut store), |info| {
            Ok(PolicyInfo {
                title: message(info.name),
                version: message(info.version),
                description: message(info.description),
            })
        })
    }

    fn config_schema(&self) -> Calling<String> {
        call!(self, |exports, store| exports.call_config_schema(&mut store), Ok)
    }
}

impl Config for hooks::config::GuestIndices {
    fn validate(&self, config: &Arc<str>) -> Calling<Vec<String>> {
        let config = Arc::clone(config);
        call!(self, |exports, store| exports.call_validate(&mut store, &config), |answer| {
            answer.map(|warnings| warnings.into_iter().take(MESSAGES).map(message).collect()).map_err(invalid)
        })
    }
}

impl Prepare for hooks::prepare::GuestIndices {
    fn run(&self) -> Preparing {
        let indices = self.clone();
        Box::new(move |Guest { mut store, instance }| {
            Box::pin(async move {
                let ran = match indices.load(&mut store, &instance) {
                    Ok(exports) => exports.call_run(&mut store).await,
                    Err(error) => Err(WrongType::from(error).into()),
                };
                (Guest { store, instance }, ran)
            })
        })
    }
}

impl FormHook for hooks::form::GuestIndices {
    fn render(&self, context: &FormContext) -> Calling<Form> {
        let context = convert::form_context(context);
        call!(self, |exports, store| exports.call_render(&mut store, &context), |answer| {
            answer.map(convert::form).map_err(refusal)
        })
    }

    fn parse(&self, submission: &Options, context: &FormContext) -> Calling<Options> {
        let submission = convert::option_entries(submission);
        let context = convert::form_context(context);
        call!(self, |exports, store| exports.call_parse(&mut store, &submission, &context), |answer| {
            answer.map(convert::options).map_err(invalid)
        })
    }
}

impl QuotaHook for hooks::quota::GuestIndices {
    fn limits(&self, user: &User, usage: Usage) -> Calling<Quota> {
        let user = convert::user(user);
        let usage = convert::usage(usage);
        call!(self, |exports, store| exports.call_limits(&mut store, &user, usage), |answer| {
            answer.map(convert::quota).map_err(refusal)
        })
    }
}

impl Authorize for hooks::authorize::GuestIndices {
    fn decide(&self, request: &AuthorizeRequest) -> Calling<Verdict> {
        let request = convert::authorize_request(request);
        call!(self, |exports, store| exports.call_decide(&mut store, &request), |answer| {
            answer.map(convert::verdict).map_err(refusal)
        })
    }
}

impl Inject for hooks::inject::GuestIndices {
    fn decide(&self, request: &InjectRequest) -> Calling<InjectVerdict> {
        let request = convert::inject_request(request);
        call!(self, |exports, store| exports.call_decide(&mut store, &request), |answer| {
            answer.map(convert::inject_verdict).map_err(refusal)
        })
    }
}

impl Events for hooks::events::GuestIndices {
    fn on_event(&self, event: &LabEvent) -> Calling<()> {
        let event = convert::lab_event(event);
        call!(self, |exports, store| exports.call_on_event(&mut store, &event), Ok)
    }
}

impl BuildPod for hooks::build_pod::GuestIndices {
    fn customize(&self, request: &LabRequest) -> Calling<Customization> {
        let request = convert::lab_request(request);
        call!(self, |exports, store| exports.call_customize(&mut store, &request), |answer| {
            answer.map(convert::customization).map_err(refusal)
        })
    }
}

impl LabServerHook for hooks::lab_server::GuestIndices {
    fn decide(&self, request: &LabRequest) -> Calling<LabServer> {
        let request = convert::lab_server_request(request);
        call!(self, |exports, store| exports.call_decide(&mut store, &request), |answer| {
            answer.map(convert::lab_server).map_err(refusal)
        })
    }
}

impl ImagesHook for hooks::images::GuestIndices {
    fn menu(&self, context: &FormContext) -> Calling<Option<ImageMenu>> {
        let request = convert::image_menu_request(context);
        call!(self, |exports, store| exports.call_menu(&mut store, &request), |answer| {
            answer.map(|menu| menu.map(convert::image_menu)).map_err(refusal)
        })
    }

    fn prepull(&self) -> Calling<Vec<WantedImage>> {
        call!(self, |exports, store| exports.call_prepull(&mut store), |answer| {
            answer.map(convert::wanted_images).map_err(refusal)
        })
    }
}

fn refusal(error: types::Error) -> CallErrorKind {
    convert::hook_error(error).into()
}

fn invalid(errors: Vec<types::FieldError>) -> CallErrorKind {
    CallErrorKind::invalid(convert::field_errors(errors))
}
