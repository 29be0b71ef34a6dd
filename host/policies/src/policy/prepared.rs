//! Components that begin with the memory that they have after `prepare`.
//!
//! The component is compiled with accessors for its memories and globals, and runs `prepare` like any other call. It is
//! then rewritten with the contents of the memories and globals (`wasmtime-wizer`).

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use wasmspawner_core::values::digest::Digest;
use wasmtime::component::{Component, Lift, WasmList};
use wasmtime_wizer::{ComponentInstanceState, Wizer};

use super::Policy;
use crate::contract::guest::{Ended, Guest};
use crate::engine::Engine;
use crate::errors::{CallError, LoadErrorKind};
use crate::limits::patience::Patience;
use crate::source::cache;

/// The reason that calls of a policy do not begin with a prepared copy of it. They work without one.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotPrepared {
    /// The component has a part that cannot be copied.
    #[error("the component cannot be copied: {0}")]
    NotCopied(String),
    /// The policy called, in `prepare`, a function whose result may differ in its later calls.
    #[error("`prepare` calls `{0}`, whose answer is not the same in all calls: call it in the hooks")]
    Learnt(&'static str),
    /// The call of `prepare` failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The component with accessors, or the copy, cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadErrorKind),
}

/// The bytes of the copy.
type Copied = Result<Vec<u8>, NotPrepared>;

/// Returns the component with the memory that it has after `prepare`, from the cache if there is one for this
/// configuration.
pub(crate) async fn prepared(
    engine: &Arc<Engine>,
    policy: &Policy,
    component: &[u8],
    patience: &Patience,
) -> Result<Component, NotPrepared> {
    let config = Digest::sha256(policy.config.as_bytes());
    let name = cache::file_name(engine, &[&policy.digest, &config]);
    if let Some(copy) = cache::read(engine, &name) {
        return Ok(copy);
    }
    let copying = AssertUnwindSafe(copied(engine, policy, component, patience)).catch_unwind();
    // An unforeseen component must not end the service.
    let copy = copying.await.map_err(|_| NotPrepared::NotCopied("it surprises the service".to_owned()))??;
    Ok(cache::compile(engine, &name, &copy).await?)
}

async fn copied(engine: &Arc<Engine>, policy: &Policy, component: &[u8], patience: &Patience) -> Copied {
    let mut wizer = Wizer::new();
    wizer.keep_init_func(true);
    let (context, with_accessors) =
        wizer.instrument_component(component).map_err(|error| not_copied(&error))?;
    let machine_code = engine.options.compiler.compile(&with_accessors).await?;
    let with_accessors = cache::deserialize(engine, &machine_code).map_err(|error| not_copied(&error))?;
    let policy = policy.with(engine, &with_accessors)?;
    let read = |guest: Guest, ran: wasmtime::Result<()>| -> BoxFuture<'_, Ended<Copied>> {
        Box::pin(async {
            if let Err(error) = ran {
                return (guest.store, Err(error));
            }
            if let Some(function) = guest.store.data().learnt_by() {
                return (guest.store, Ok(Ok(Err(NotPrepared::Learnt(function)))));
            }
            let mut accessors = Accessors { guest, problem: None };
            let copy = wizer.snapshot_component(&context, &mut accessors).await;
            let Accessors { guest, problem } = accessors;
            (guest.store, problem.map_or(copy, Err).map(|copy| Ok(Ok(copy))))
        })
    };
    let copy = patience.ask(|| async { policy.prepare(engine, read).await.transpose() }).await?;
    copy.ok_or_else(|| NotPrepared::NotCopied("it has no `prepare`".to_owned()))?
}

fn not_copied(error: &wasmtime::Error) -> NotPrepared {
    NotPrepared::NotCopied(format!("{error:#}"))
}

/// Reads the state of an instance through its accessors.
struct Accessors {
    guest: Guest,
    /// The first problem. Reading cannot return an error, so a copy with a problem is unusable.
    problem: Option<wasmtime::Error>,
}

impl Accessors {
    async fn read<T: Lift + Default + Send + Sync + 'static>(&mut self, instance: &str, function: &str) -> T {
        match self.try_read(instance, function).await {
            Ok(value) => value,
            Err(error) => {
                self.problem.get_or_insert(error);
                T::default()
            }
        }
    }

    async fn try_read<T: Lift + Send + Sync + 'static>(
        &mut self,
        instance: &str,
        function: &str,
    ) -> wasmtime::Result<T> {
        let Guest { store, instance: component } = &mut self.guest;
        let missing = || wasmtime::Error::msg(format!("there is no accessor {function}"));
        let (_, exported) = component.get_export(&mut *store, None, instance).ok_or_else(missing)?;
        let (_, exported) =
            component.get_export(&mut *store, Some(&exported), function).ok_or_else(missing)?;
        let accessor = component.get_typed_func::<(), (T,)>(&mut *store, exported)?;
        Ok(accessor.call_async(&mut *store, ()).await?.0)
    }
}

impl ComponentInstanceState for Accessors {
    async fn call_func_ret_list_u8(
        &mut self,
        instance: &str,
        func: &str,
        contents: impl FnOnce(&[u8]) + Send,
    ) {
        match self.try_read::<WasmList<u8>>(instance, func).await {
            Ok(list) => contents(list.as_le_slice(&self.guest.store)),
            Err(error) => {
                self.problem.get_or_insert(error);
                contents(&[]);
            }
        }
    }

    async fn call_func_ret_s32(&mut self, instance: &str, func: &str) -> i32 {
        self.read(instance, func).await
    }

    async fn call_func_ret_s64(&mut self, instance: &str, func: &str) -> i64 {
        self.read(instance, func).await
    }

    async fn call_func_ret_f32(&mut self, instance: &str, func: &str) -> u32 {
        self.read::<f32>(instance, func).await.to_bits()
    }

    async fn call_func_ret_f64(&mut self, instance: &str, func: &str) -> u64 {
        self.read::<f64>(instance, func).await.to_bits()
    }
}
