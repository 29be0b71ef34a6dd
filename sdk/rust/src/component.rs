//! The exports of a component. Every call creates the policy from its configuration and calls its hook. If the host
//! begins calls with the memory that the component had after `prepare`, the policy exists already.

use std::any::Any;
use std::cell::Cell;
use std::marker::PhantomData;

use crate::bindings::{
    authorize, build_pod, config, events, form, images, inject, lab_files, lab_server, metadata, prepare,
    quota, types,
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
        // A wrong configuration is reported by the call that needs it.
        PREPARED.set(created::<P>().ok().map(|policy| policy as &dyn Any));
    }
}

impl<P: hooks::Form> form::Guest for Component<P> {
    fn render(context: form::FormContext) -> Result<form::Form, types::Error> {
        policy::<P>()?.render(&context)?.checked()
    }

    fn parse(
        submission: Vec<types::OptionEntry>,
        context: form::FormContext,
    ) -> Result<Vec<types::OptionEntry>, Vec<types::FieldError>> {
        let policy = policy::<P>().map_err(|error| {
            // The user reads the answer, and the error contains parts of the configuration.
            crate::host::error(&format!("there is no policy for this submission: {error:?}"));
            vec![types::FieldError::new(
                "",
                "The form cannot be checked now. Please tell the operators of this site.",
            )]
        })?;
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

impl<P: hooks::LabFiles> lab_files::Guest for Component<P> {
    fn decide(request: lab_files::Request) -> Result<Vec<lab_files::TextFile>, types::Error> {
        let options = Options::from(request.options);
        policy::<P>()?.lab_files(&request.user, &request.server, &options)
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
/// The hooks are `form`, `quota`, `authorize`, `inject`, `events`, `build_pod`, `lab_server`, `lab_files` and `images`. The
/// interfaces `metadata`, `config` and `prepare` are always exported: the policy is created once when it is loaded, and
/// every call begins with a copy of it.
///
/// A hook that the policy implements but does not export is a compile error, because it would never be called:
///
/// ```compile_fail
/// # use wasmspawner_sdk::{AuthorizeRequest, Error, Info, Policy, Section, User, Verdict, export, hooks, quota};
/// # struct Faulty;
/// # impl Policy for Faulty {
/// #     fn info() -> Info { Info { name: "faulty".into(), version: "1".into(), description: String::new() } }
/// #     fn from_config(_: &mut Section<'_>) -> Self { Self }
/// # }
/// # impl hooks::Quota for Faulty {
/// #     fn limits(&self, _: &User, _: &quota::Usage) -> Result<quota::Quota, Error> { Ok(Default::default()) }
/// # }
/// impl hooks::Authorize for Faulty {
///     // ...
/// #   fn decide(&self, _: &AuthorizeRequest) -> Result<Verdict, Error> { Ok(Verdict::Allow) }
/// }
///
/// export!(Faulty: quota); // error: the policy implements `hooks::Authorize`, and `export!` does not list `authorize`
/// ```
#[macro_export]
macro_rules! export {
    ($policy:ident $(: $($hook:ident),+ $(,)?)?) => {
        const _: () =
            $crate::component::assert_exported(&$crate::implemented_hooks!($policy), &[$($(stringify!($hook)),+)?]);
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
    (lab_files, $of:ident) => {
        $crate::bindings::lab_files::export_lab_files!($of with_types_in $crate::bindings::lab_files);
    };
    (lab_server, $of:ident) => {
        $crate::bindings::lab_server::export_lab_server!($of with_types_in $crate::bindings::lab_server);
    };
}

/// The hooks that a policy implements, for [`export!`].
#[doc(hidden)]
#[macro_export]
macro_rules! implemented_hooks {
    ($policy:ident) => {{
        // A constant of `Implements` itself takes precedence over that of this trait, which every type has.
        use $crate::component::{HOOKS, ImplementedHook, Implements, ImplementsNot as _, of};
        const IMPLEMENTED: [Option<ImplementedHook>; HOOKS] = [
            Implements::<$policy, of::Form>::HOOK,
            Implements::<$policy, of::Quota>::HOOK,
            Implements::<$policy, of::Authorize>::HOOK,
            Implements::<$policy, of::Inject>::HOOK,
            Implements::<$policy, of::Events>::HOOK,
            Implements::<$policy, of::BuildPod>::HOOK,
            Implements::<$policy, of::LabServer>::HOOK,
            Implements::<$policy, of::LabFiles>::HOOK,
            Implements::<$policy, of::Images>::HOOK,
        ];
        IMPLEMENTED
    }};
}

/// A policy and a hook. The type has an inherent constant `HOOK` if the policy implements the hook.
#[doc(hidden)]
pub struct Implements<P, H>(PhantomData<(P, H)>);

/// The constant for a hook that the policy does not implement.
#[doc(hidden)]
pub trait ImplementsNot {
    /// No hook has to be exported.
    const HOOK: Option<ImplementedHook> = None;
}

impl<P, H> ImplementsNot for Implements<P, H> {}

/// A hook that a policy implements.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct ImplementedHook {
    name: &'static str,
    forgotten: &'static str,
}

macro_rules! implements {
    ($($hook:ident: $name:ident),+ $(,)?) => {
        /// The number of hooks.
        #[doc(hidden)]
        pub const HOOKS: usize = [$(stringify!($hook)),+].len();

        /// The hooks, as types.
        #[doc(hidden)]
        pub mod of {
            $(
                /// The hook of this name.
                pub struct $hook;
            )+
        }

        $(
            impl<P: hooks::$hook> Implements<P, of::$hook> {
                /// The hook.
                pub const HOOK: Option<ImplementedHook> = Some(ImplementedHook {
                    name: stringify!($name),
                    forgotten: concat!(
                        "the policy implements `hooks::", stringify!($hook), "`, and `export!` does not list `",
                        stringify!($name), "`, so it would never be asked; add it"
                    ),
                });
            }
        )+
    };
}

implements!(
    Form: form, Quota: quota, Authorize: authorize, Inject: inject, Events: events, BuildPod: build_pod,
    LabServer: lab_server, LabFiles: lab_files, Images: images,
);

/// Fails to compile if a hook that a policy implements is not among the exported ones.
#[doc(hidden)]
pub const fn assert_exported(implemented: &[Option<ImplementedHook>], exported: &[&str]) {
    let mut at = 0;
    while at < implemented.len() {
        if let Some(hook) = implemented[at] {
            assert!(contains(exported, hook.name), "{}", hook.forgotten);
        }
        at += 1;
    }
}

const fn contains(names: &[&str], name: &str) -> bool {
    let mut at = 0;
    while at < names.len() {
        if is_same(names[at].as_bytes(), name.as_bytes()) {
            return true;
        }
        at += 1;
    }
    false
}

const fn is_same(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    a.len() == b.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AuthorizeRequest, Error, Info, Section, User, Verdict, quota};

    struct Faulty;

    impl hooks::Policy for Faulty {
        fn info() -> Info {
            Info { name: String::new(), version: String::new(), description: String::new() }
        }

        fn from_config(_: &mut Section<'_>) -> Self {
            Self
        }
    }

    impl hooks::Quota for Faulty {
        fn limits(&self, _: &User, _: &quota::Usage) -> Result<quota::Quota, Error> {
            Ok(quota::Quota::default())
        }
    }

    impl hooks::Authorize for Faulty {
        fn decide(&self, _: &AuthorizeRequest) -> Result<Verdict, Error> {
            Ok(Verdict::Allow)
        }
    }

    #[test]
    fn the_hooks_that_a_policy_implements_are_known() {
        let names: Vec<_> = implemented_hooks!(Faulty).into_iter().flatten().map(|hook| hook.name).collect();
        assert_eq!(names, ["quota", "authorize"]);
    }

    #[test]
    #[should_panic(
        expected = "the policy implements `hooks::Authorize`, and `export!` does not list `authorize`"
    )]
    fn a_hook_that_is_not_exported_is_named() {
        assert_exported(&implemented_hooks!(Faulty), &["quota", "authorized", "author"]);
    }

    #[test]
    fn more_may_be_exported_in_any_order() {
        assert_exported(&implemented_hooks!(Faulty), &["authorize", "form", "quota"]);
    }
}
