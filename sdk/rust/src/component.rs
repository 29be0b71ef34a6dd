//! The exports of a component: every call creates the policy from its configuration and calls its hook. Where the host begins
//! calls with the memory that the component had after `prepare`, the policy is there already.

use std::any::Any;
use std::cell::Cell;
use std::marker::PhantomData;

use crate::bindings::{
    authorize, build_pod, config, events, form, images, inject, lab_server, metadata, prepare, quota, types,
};
use crate::hooks;
use crate::options::Options;

/// The type that the generated export macros expect.
pub struct Component<P>(PhantomData<P>);

thread_local! {
    /// The policy that `prepare` has created.
    static PREPARED: Cell<Option<&'static dyn Any>> = const { Cell::new(None) };
}

/// The policy. It is never freed, because the instance and its memory end with the call.
fn policy<P: hooks::Policy>() -> Result<&'static P, types::Error> {
    match PREPARED.get().and_then(<dyn Any>::downcast_ref) {
        Some(policy) => Ok(policy),
        None => created(),
    }
}

/// Creates the policy from its configuration.
fn created<P: hooks::Policy>() -> Result<&'static P, types::Error> {
    let (policy, _) = crate::config::read(&crate::host::config(), P::from_config)
        .map_err(|problems| types::Error::Internal(format!("the configuration is wrong: {problems:?}")))?;
    Ok(Box::leak(Box::new(policy)))
}

impl<P: hooks::Policy> metadata::Guest for Component<P> {
    fn describe() -> metadata::Info {
        P::info()
    }

    fn config_schema() -> String {
        P::config_schema().into()
    }
}

impl<P: hooks::Policy> config::Guest for Component<P> {
    fn validate(config_json: String) -> Result<Vec<String>, Vec<types::FieldError>> {
        crate::config::check(&config_json, P::from_config).map(|(_, warnings)| warnings)
    }
}

impl<P: hooks::Policy> prepare::Guest for Component<P> {
    fn run() {
        // A configuration that is wrong is reported by the call that needs it.
        PREPARED.set(created::<P>().ok().map(|policy| policy as &dyn Any));
    }
}

impl<P: hooks::Form> form::Guest for Component<P> {
    fn render(context: form::FormContext) -> Result<form::Form, types::Error> {
        policy::<P>()?.render(&context)
    }

    fn parse(
        submission: Vec<types::OptionEntry>,
        context: form::FormContext,
    ) -> Result<Vec<types::OptionEntry>, Vec<types::FieldError>> {
        let policy = policy::<P>().map_err(|error| vec![types::FieldError::new("", format!("{error:?}"))])?;
        policy.parse(&Options::from(submission), &context).map(Options::into)
    }
}

impl<P: hooks::Quota> quota::Guest for Component<P> {
    fn limits(user: types::User, usage: quota::Usage) -> Result<quota::Quota, types::Error> {
        policy::<P>()?.limits(&user, &usage)
    }
}

impl<P: hooks::Authorize> authorize::Guest for Component<P> {
    fn decide(request: authorize::Request) -> Result<authorize::Verdict, types::Error> {
        policy::<P>()?.decide(&request)
    }
}

impl<P: hooks::Inject> inject::Guest for Component<P> {
    fn decide(request: inject::Request) -> Result<inject::Verdict, types::Error> {
        let inject::Request { user, server, options, workload } = request;
        policy::<P>()?.inject(&user, &server, &Options::from(options), &workload)
    }
}

impl<P: hooks::Events> events::Guest for Component<P> {
    fn on_event(event: events::Event) {
        match policy::<P>() {
            Ok(policy) => policy.on_event(&event),
            Err(error) => crate::host::error(&format!("there is no policy for this event: {error:?}")),
        }
    }
}

impl<P: hooks::BuildPod> build_pod::Guest for Component<P> {
    fn customize(request: build_pod::Request) -> Result<build_pod::Customization, types::Error> {
        let options = Options::from(request.options);
        policy::<P>()?.customize(&request.user, &request.server, &options)
    }
}

impl<P: hooks::LabServer> lab_server::Guest for Component<P> {
    fn decide(request: lab_server::Request) -> Result<lab_server::Settings, types::Error> {
        let options = Options::from(request.options);
        policy::<P>()?.lab_server(&request.user, &request.server, &options)
    }
}

impl<P: hooks::Images> images::Guest for Component<P> {
    fn menu(request: images::Request) -> Result<Option<images::ImageMenu>, types::Error> {
        policy::<P>()?.menu(&request.user, &request.server)
    }

    fn prepull() -> Result<Vec<images::WantedImage>, types::Error> {
        policy::<P>()?.prepull()
    }
}

/// Exports a policy with the hooks that it implements: `export!(MyPolicy: form, quota)`.
///
/// The hooks are `form`, `quota`, `authorize`, `inject`, `events`, `build_pod`, `lab_server` and `images`. The interfaces `metadata`,
/// `config` and `prepare` are always exported: the policy is created once when it is loaded, and every call begins with a copy of
/// it.
#[macro_export]
macro_rules! export {
    ($policy:ident $(: $($hook:ident),+ $(,)?)?) => {
        #[cfg(target_arch = "wasm32")]
        mod exported_component {
            type Exported = $crate::component::Component<super::$policy>;
            $crate::export_hook!(metadata, Exported);
            $crate::export_hook!(config, Exported);
            $crate::export_hook!(prepare, Exported);
            $($($crate::export_hook!($hook, Exported);)+)?
        }
    };
}

/// One hook of [`export!`].
#[doc(hidden)]
#[macro_export]
macro_rules! export_hook {
    (metadata, $of:ident) => {
        $crate::bindings::metadata::export_metadata!($of with_types_in $crate::bindings::metadata);
    };
    (config, $of:ident) => {
        $crate::bindings::config::export_config!($of with_types_in $crate::bindings::config);
    };
    (prepare, $of:ident) => {
        $crate::bindings::prepare::export_prepare!($of with_types_in $crate::bindings::prepare);
    };
    (form, $of:ident) => {
        $crate::bindings::form::export_form!($of with_types_in $crate::bindings::form);
    };
    (quota, $of:ident) => {
        $crate::bindings::quota::export_quota!($of with_types_in $crate::bindings::quota);
    };
    (authorize, $of:ident) => {
        $crate::bindings::authorize::export_authorize!($of with_types_in $crate::bindings::authorize);
    };
    (inject, $of:ident) => {
        $crate::bindings::inject::export_inject!($of with_types_in $crate::bindings::inject);
    };
    (events, $of:ident) => {
        $crate::bindings::events::export_events!($of with_types_in $crate::bindings::events);
    };
    (build_pod, $of:ident) => {
        $crate::bindings::build_pod::export_build_pod!($of with_types_in $crate::bindings::build_pod);
    };
    (images, $of:ident) => {
        $crate::bindings::images::export_images!($of with_types_in $crate::bindings::images);
    };
    (lab_server, $of:ident) => {
        $crate::bindings::lab_server::export_lab_server!($of with_types_in $crate::bindings::lab_server);
    };
}
