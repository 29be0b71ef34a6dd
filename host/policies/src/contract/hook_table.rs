use std::future::ready;
use std::iter;
use std::sync::Arc;

use futures::future::BoxFuture;
use wasmspawner_core::images::{ImageMenu, WantedImage};
use wasmspawner_core::policy::form::{Form, FormContext};
use wasmspawner_core::policy::{
    AuthorizeRequest, Customization, InjectRequest, InjectVerdict, LabEvent, LabRequest, LabServer, Options,
    User, Verdict,
};
use wasmspawner_core::users::quota::{Quota, Usage};
use wasmtime::Store;
use wasmtime::component::Instance;

use super::call_state::CallState;
use crate::errors::CallErrorKind;
use crate::names::message::message;

/// The hooks of one component, in the core's types.
pub(crate) struct HookTable {
    pub(crate) metadata: Box<dyn Metadata>,
    pub(crate) config: Option<Box<dyn Config>>,
    pub(crate) prepare: Option<Box<dyn Prepare>>,
    pub(crate) form: Option<Box<dyn FormHook>>,
    pub(crate) quota: Option<Box<dyn QuotaHook>>,
    pub(crate) authorize: Option<Box<dyn Authorize>>,
    pub(crate) inject: Option<Box<dyn Inject>>,
    pub(crate) events: Option<Box<dyn Events>>,
    pub(crate) build_pod: Option<Box<dyn BuildPod>>,
    pub(crate) lab_server: Option<Box<dyn LabServerHook>>,
    pub(crate) images: Option<Box<dyn ImagesHook>>,
}

/// A fresh instance of the component.
pub(crate) struct Guest {
    pub(crate) store: Store<CallState>,
    pub(crate) instance: Instance,
}

/// The end of a call: the store, for the policy's standard error, and the answer. The outer error is that of the
/// engine. The inner error is the policy's own.
pub(crate) type Ended<T> = (Store<CallState>, wasmtime::Result<Result<T, CallErrorKind>>);

/// A call with its arguments, to be made on an instance. It borrows nothing, so any thread can continue it.
pub(crate) type Calling<T> = Box<dyn FnOnce(Guest) -> BoxFuture<'static, Ended<T>> + Send>;

/// A call of `prepare`. It returns the instance, because the memory of the instance is the result.
pub(crate) type Preparing =
    Box<dyn FnOnce(Guest) -> BoxFuture<'static, (Guest, wasmtime::Result<()>)> + Send>;

/// An exported interface of any kind.
pub(crate) trait Interface: Send + Sync {
    /// Checks the types of the interface's functions.
    fn check_types(&self, store: &mut Store<CallState>, instance: &Instance) -> wasmtime::Result<()>;
}

pub(crate) trait Metadata: Interface {
    fn describe(&self) -> Calling<PolicyInfo>;

    fn config_schema(&self) -> Calling<String>;
}

pub(crate) trait Config: Interface {
    fn validate(&self, config: &Arc<str>) -> Calling<Vec<String>>;
}

pub(crate) trait Prepare: Interface {
    fn run(&self) -> Preparing;
}

pub(crate) trait FormHook: Interface {
    fn render(&self, context: &FormContext) -> Calling<Form>;

    fn parse(&self, submission: &Options, context: &FormContext) -> Calling<Options>;
}

pub(crate) trait QuotaHook: Interface {
    fn limits(&self, user: &User, usage: Usage) -> Calling<Quota>;
}

pub(crate) trait Authorize: Interface {
    fn decide(&self, request: &AuthorizeRequest) -> Calling<Verdict>;
}

pub(crate) trait Inject: Interface {
    fn decide(&self, request: &InjectRequest) -> Calling<InjectVerdict>;
}

pub(crate) trait Events: Interface {
    fn on_event(&self, event: &LabEvent) -> Calling<()>;
}

pub(crate) trait BuildPod: Interface {
    fn customize(&self, request: &LabRequest) -> Calling<Customization>;
}

pub(crate) trait LabServerHook: Interface {
    fn decide(&self, request: &LabRequest) -> Calling<LabServer>;
}

pub(crate) trait ImagesHook: Interface {
    fn menu(&self, context: &FormContext) -> Calling<Option<ImageMenu>>;

    fn prepull(&self) -> Calling<Vec<WantedImage>>;
}

/// A policy's description of itself.
#[derive(Clone, Default)]
pub(crate) struct PolicyInfo {
    pub(crate) title: String,
    pub(crate) version: String,
    pub(crate) description: String,
}

impl HookTable {
    /// Returns the names of the optional interfaces that the component exports.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.optional().into_iter().filter_map(|(name, hook)| hook.is_some().then_some(name)).collect()
    }

    /// Checks the types of all functions that the component exports.
    pub(crate) fn check_types(self: &Arc<Self>) -> Calling<()> {
        let hooks = Arc::clone(self);
        Box::new(move |Guest { mut store, instance }| {
            let optional = hooks.optional().into_iter().filter_map(|(_, hook)| hook);
            let checked = iter::once::<&dyn Interface>(&*hooks.metadata)
                .chain(optional)
                .try_for_each(|hook| hook.check_types(&mut store, &instance));
            Box::pin(ready((store, checked.map(Ok).map_err(|error| WrongType::from(error).into()))))
        })
    }

    fn optional(&self) -> [(&'static str, Option<&dyn Interface>); 10] {
        let Self {
            metadata: _,
            config,
            prepare,
            form,
            quota,
            authorize,
            inject,
            events,
            build_pod,
            lab_server,
            images,
        } = self;
        [
            ("config", config.as_deref().map(|hook| hook as &dyn Interface)),
            ("prepare", prepare.as_deref().map(|hook| hook as &dyn Interface)),
            ("form", form.as_deref().map(|hook| hook as &dyn Interface)),
            ("quota", quota.as_deref().map(|hook| hook as &dyn Interface)),
            ("authorize", authorize.as_deref().map(|hook| hook as &dyn Interface)),
            ("inject", inject.as_deref().map(|hook| hook as &dyn Interface)),
            ("events", events.as_deref().map(|hook| hook as &dyn Interface)),
            ("build-pod", build_pod.as_deref().map(|hook| hook as &dyn Interface)),
            ("lab-server", lab_server.as_deref().map(|hook| hook as &dyn Interface)),
            ("images", images.as_deref().map(|hook| hook as &dyn Interface)),
        ]
    }
}

/// The error of a function whose type in the component differs from that in the package.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct WrongType(pub(crate) String);

impl From<wasmtime::Error> for WrongType {
    fn from(error: wasmtime::Error) -> Self {
        Self(message(format!("{error:#}")))
    }
}
