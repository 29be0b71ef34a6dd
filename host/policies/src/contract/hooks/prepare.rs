//! `prepare`: prepares a policy for its calls. It has no answer: its result is the memory of the instance.

use futures::future::BoxFuture;

use super::Exports;
use crate::contract::guest::{Guest, WrongType};
use crate::limits::Limits;
use crate::names::hook::Hook;

/// The function.
pub(crate) const HOOK: Hook = Hook::new("prepare.run");

/// A call that returns the instance, because the memory of the instance is the result.
pub(crate) type Preparing =
    Box<dyn FnOnce(Guest) -> BoxFuture<'static, (Guest, wasmtime::Result<()>)> + Send>;

impl Exports {
    /// True if the component exports `prepare`.
    pub(crate) fn has_prepare(&self) -> bool {
        self.prepare.is_some()
    }

    /// Returns the call of `prepare`; `None` if the component does not export it.
    pub(crate) fn prepare(&self) -> Option<Preparing> {
        let indices = self.prepare.clone()?;
        Some(Box::new(move |Guest { mut store, instance }| {
            Box::pin(async move {
                let ran = match indices.load(&mut store, &instance) {
                    Ok(exports) => exports.call_run(&mut store).await,
                    Err(error) => Err(WrongType::from(error).into()),
                };
                (Guest { store, instance }, ran)
            })
        }))
    }
}

/// Returns the limits of the call: the service reads the whole memory of the instance.
pub(crate) fn limits(limits: Limits) -> Limits {
    Limits { answer_bytes: limits.memory_bytes, ..limits }
}
