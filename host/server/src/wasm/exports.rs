use wasmtime::component::InstancePre;

use super::bindings::hooks;
use super::errors::{CallErrorKind, LoadErrorKind};
use super::imports::CallState;

/// The hooks that a component exports, looked up once when it is loaded.
pub(super) struct Exports {
    pub(super) metadata: hooks::metadata::GuestIndices,
    pub(super) config: Option<hooks::config::GuestIndices>,
    pub(super) form: Option<hooks::form::GuestIndices>,
    pub(super) quota: Option<hooks::quota::GuestIndices>,
    pub(super) authorize: Option<hooks::authorize::GuestIndices>,
    pub(super) build_pod: Option<hooks::build_pod::GuestIndices>,
}

impl Exports {
    /// Looks the hooks up. A hook that the component does not export is `None`; one that lacks a function is an error.
    pub(super) fn of(pre: &InstancePre<CallState>) -> Result<Self, LoadErrorKind> {
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

    pub(super) fn names(&self) -> Vec<&'static str> {
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
