//! Makes calls, each on a fresh instance and within limits, and compiles components in a separate process.

pub(crate) mod background;
pub(crate) mod compiler;
pub(crate) mod config;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use wasmtime::component::{InstancePre, Linker, ResourceTableError};
use wasmtime::{CallHook, Store, Trap, UpdateDeadline};

use self::background::{Background, Pace};
use self::compiler::Compiler;
use self::config::config;
use super::errors::{CallErrorKind, EngineError};
use super::limits::{DeadlineExceeded, Limits, MemoryExceeded, NoSharedMemory, as_millis};
use super::site_data::Documents;
use crate::contract::call_state::CallState;
use crate::contract::guest::{Calling, Ended, Guest, WrongType};
use crate::contract::package;
use crate::limits::machine_memory;
use crate::limits::slots::{PolicySlots, Slots};
use crate::limits::time_slice::{InSlices, Length, TICK, TimeSlice};
use crate::names::hook::Hook;
use crate::names::message::message;
use crate::names::policy_name::PolicyName;
use crate::reports::version_record::VersionRecords;
use wasmspawner_registry::Artifacts;
use wasmspawner_registry::inventory::LiveInventory;

/// The number of host calls between two checks of the length of the slice. Reading the clock takes as long as a short
/// call.
const CALLS_OF_HOST: u32 = 16;

/// A part of the engine's error message for an answer that is too large. The type of that error is private to the
/// engine.
const TOO_LARGE: &str = "fuel allocated for hostcalls has been exhausted";

/// One call of a policy, for the metrics.
#[derive(Debug)]
pub struct CallRecord<'a> {
    /// The policy that was called.
    pub policy: &'a PolicyName,
    /// The hook that was called.
    pub hook: Hook,
    /// `ok`, or the name of the [`CallErrorKind`].
    pub outcome: &'static str,
    /// The time from the request for a slot to the answer.
    pub duration: Duration,
}

/// Called after every call of a policy. It must not block.
pub type OnCall = Arc<dyn Fn(&CallRecord<'_>) + Send + Sync>;

/// Called for every call of a policy that has a candidate, with `same`, `different` or `skipped`. It must not block.
pub type OnCompared = Arc<dyn Fn(&PolicyName, Hook, &'static str) + Send + Sync>;

/// The settings for running policies.
#[derive(Clone)]
pub struct EngineOptions {
    /// The maximum number of calls at the same time; further ones wait.
    pub slots: u32,
    /// The maximum time that a call waits for a slot.
    pub slot_wait: Duration,
    /// The memory for all calls together, in bytes; at least that of one call.
    pub memory: usize,
    /// The largest component that is accepted, in bytes.
    pub component_bytes: u64,
    /// The compiler of components.
    pub compiler: Compiler,
    /// The directory for compiled components, which must be private to this user. `None`: components are compiled at
    /// every start.
    pub cache: Option<PathBuf>,
    /// True if calls begin with a prepared copy of the policy, for policies that offer one.
    pub prepare: bool,
    /// The registries from which components are downloaded.
    pub artifacts: Artifacts,
    /// The knowledge about images that policies can query.
    pub inventory: LiveInventory,
    /// Called after every call of a policy.
    pub on_call: OnCall,
    /// Called when the answer of a candidate has been compared.
    pub on_compared: OnCompared,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            slots: 64,
            slot_wait: Duration::from_secs(2),
            memory: machine_memory::limit() / 2,
            component_bytes: 32 << 20,
            compiler: Compiler::default(),
            cache: None,
            prepare: true,
            artifacts: Artifacts::default(),
            inventory: LiveInventory::default(),
            on_call: Arc::new(|_| {}),
            on_compared: Arc::new(|_, _, _| {}),
        }
    }
}

/// Runs calls of components, each in its own instance.
pub(crate) struct Engine {
    pub(crate) wasm: wasmtime::Engine,
    pub(crate) linker: Linker<CallState>,
    pub(crate) options: EngineOptions,
    /// The documents with site data.
    pub(crate) documents: Documents,
    /// The records of the current and earlier versions of policies; `None` without a folder for them.
    pub(crate) versions: Option<Arc<VersionRecords>>,
    pub(crate) slots: Slots,
    pub(crate) background: Background,
}

impl Engine {
    pub(crate) fn new(options: EngineOptions) -> Result<Self, EngineError> {
        let wasm = wasmtime::Engine::new(&config(Some(options.slots))).or_else(|error| {
            // The address space may be limited (`ulimit -v`, small containers). Calls are then slower, but their
            // maximum number stays the same.
            tracing::warn!(
                error = format!("{error:#}"),
                "no memory pool for policies; every call maps its own"
            );
            wasmtime::Engine::new(&config(None)).map_err(|error| setup(&error))
        })?;
        start_clock(&wasm)?;
        Ok(Self {
            linker: package::linker(&wasm).map_err(|error| setup(&error))?,
            wasm,
            slots: Slots::new(options.slots, options.slot_wait, options.memory),
            background: Background::new()?,
            versions: options
                .cache
                .as_ref()
                .map(|folder| Arc::new(VersionRecords::new(folder.join("versions")))),
            documents: Documents::new(options.cache.as_ref().map(|folder| folder.join("documents"))),
            options,
        })
    }

    /// Makes one call on a fresh instance, within `limits`. The call moves to the background once it has computed for
    /// long.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        component: &InstancePre<CallState>,
        slots: &PolicySlots,
        state: CallState,
        limits: Limits,
        pace: &Pace,
        call: Calling<T>,
    ) -> Result<T, CallErrorKind> {
        let call = self.in_a_slot(component, slots, state, limits, call).await?;
        in_time(&limits, &call.slice(), self.background.call(call, pace)).await
    }

    /// Makes one call with borrowed data, on a fresh instance, within `limits`.
    pub(crate) async fn call_here<'a, T: Send + 'a>(
        &self,
        component: &InstancePre<CallState>,
        slots: &PolicySlots,
        state: CallState,
        limits: Limits,
        call: impl FnOnce(Guest) -> BoxFuture<'a, Ended<T>> + Send + 'a,
    ) -> Result<T, CallErrorKind> {
        let call = self.in_a_slot(component, slots, state, limits, call).await?;
        in_time(&limits, &call.slice(), call).await
    }

    /// Waits for a slot, and returns the call. The slot is held until the instance is dropped.
    async fn in_a_slot<'a, T: Send + 'a, F>(
        &self,
        component: &InstancePre<CallState>,
        slots: &PolicySlots,
        state: CallState,
        limits: Limits,
        call: F,
    ) -> Result<InSlices<impl Future<Output = Result<T, CallErrorKind>> + Send + use<'a, T, F>>, CallErrorKind>
    where
        F: FnOnce(Guest) -> BoxFuture<'a, Ended<T>> + Send + 'a,
    {
        let slot = self.slots.take(slots).await?;
        let mut state = state;
        state.memory.share(self.slots.memory(slots));
        let (component, engine) = (component.clone(), self.wasm.clone());
        let slice = TimeSlice::default();
        let this_slice = slice.clone();
        let run = async move {
            let _slot = slot;
            let mut store = store(&engine, state, &limits, this_slice);
            let (store, answer) = match component.instantiate_async(&mut store).await {
                Ok(instance) => call(Guest { store, instance }).await,
                Err(error) => (store, Err(error)),
            };
            answer.map_err(|error| classify(&error, &store, &limits))?
        };
        Ok(InSlices::new(run, slice))
    }
}

/// Waits for the answer of a call, and fails if it takes too long, whether it computes or not. If the call could
/// compute and gets no CPU, the policy is not blamed.
async fn in_time<T>(
    limits: &Limits,
    slice: &TimeSlice,
    call: impl Future<Output = Result<T, CallErrorKind>>,
) -> Result<T, CallErrorKind> {
    let longest = limits.wall_clock();
    tokio::time::timeout(longest, call).await.unwrap_or_else(|_| {
        // The call may have computed all the time in host calls, which count only in part.
        Err(if slice.waits() || slice.computed_in_all() > longest / 2 {
            CallErrorKind::Deadline(limits.deadline_ms)
        } else {
            CallErrorKind::NoCpu(as_millis(longest))
        })
    })
}

fn store(engine: &wasmtime::Engine, state: CallState, limits: &Limits, slice: TimeSlice) -> Store<CallState> {
    let mut store = Store::new(engine, state);
    store.limiter(|state| &mut state.memory);
    store.set_hostcall_fuel(limits.answer_bytes);
    let (this_slice, clock, mut calls) = (slice.clone(), engine.clone(), 0);
    store.call_hook(move |_, hook| {
        calls += u32::from(matches!(hook, CallHook::CallingHost));
        if calls >= CALLS_OF_HOST {
            calls = 0;
            match this_slice.length() {
                Length::Short => {}
                // The clock itself may have waited for a CPU.
                Length::Long => clock.increment_epoch(),
                Length::TooLong => return Err(DeadlineExceeded.into()),
            }
        }
        Ok(())
    });
    // The clock triggers the checks, and the slices measure how long the guest has computed. Neither waiting on a busy
    // machine nor the host's work for the policy uses up the policy's time.
    let deadline = Duration::from_millis(limits.deadline_ms);
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(move |_| {
        if slice.counted() > deadline {
            return Err(DeadlineExceeded.into());
        }
        slice.let_others();
        // Tokio's own yield also lets timers and sockets proceed.
        Ok(UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now())))
    });
    store
}

/// Starts the clock on a thread of its own, because a busy executor must not stop the clock that ends busy guests.
fn start_clock(engine: &wasmtime::Engine) -> Result<(), EngineError> {
    let engine = engine.weak();
    let tick = move || {
        while let Some(engine) = engine.upgrade() {
            engine.increment_epoch();
            drop(engine);
            std::thread::sleep(TICK);
        }
    };
    std::thread::Builder::new().name("policy-clock".into()).spawn(tick).map(drop).map_err(EngineError::Clock)
}

/// Classifies an error of the engine by its type.
fn classify(error: &wasmtime::Error, store: &Store<CallState>, limits: &Limits) -> CallErrorKind {
    if error.is::<DeadlineExceeded>() {
        return CallErrorKind::Deadline(limits.deadline_ms);
    }
    if let Some(exceeded) = error.downcast_ref::<MemoryExceeded>() {
        return CallErrorKind::Memory { asked: exceeded.asked, limit: limits.memory_bytes };
    }
    if error.is::<NoSharedMemory>() {
        return CallErrorKind::NoMemory;
    }
    if let Some(mismatch) = error.downcast_ref::<WrongType>() {
        return CallErrorKind::Incompatible(mismatch.0.clone());
    }
    // `ResourceTableError`: the guest holds more handles of the host than it may.
    let ended =
        error.is::<Trap>() || error.is::<wasmtime_wasi::I32Exit>() || error.is::<ResourceTableError>();
    // Violations of the canonical ABI are reported as plain messages.
    let malformed = error.is::<&'static str>() || error.is::<String>() || error.is::<std::str::Utf8Error>();
    if ended || malformed {
        return CallErrorKind::Trap(last_words(store, error));
    }
    let cause = error.root_cause().to_string();
    if cause.contains(TOO_LARGE) {
        return CallErrorKind::OutputTooLarge(limits.answer_bytes);
    }
    // The policy is not blamed for any other error, so that it is never skipped because of one.
    CallErrorKind::Engine(cause)
}

fn last_words(store: &Store<CallState>, error: &wasmtime::Error) -> String {
    let stderr = store.data().stderr();
    if stderr.is_empty() { error.root_cause().to_string() } else { message(stderr) }
}

fn setup(error: &wasmtime::Error) -> EngineError {
    EngineError::Setup(format!("{error:#}"))
}

/// Measures the duration of a call and reports it to `OnCall`.
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn stop<T>(
        self,
        engine: &Engine,
        policy: &PolicyName,
        hook: Hook,
        answer: &Result<T, CallErrorKind>,
    ) {
        let outcome = answer.as_ref().err().map_or("ok", CallErrorKind::name);
        (engine.options.on_call)(&CallRecord { policy, hook, outcome, duration: self.0.elapsed() });
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;

    use super::*;
    use crate::contract::call_state::Given;

    /// The number of calls of the host that take longer together than any guest may compute without being checked.
    const MANY_CALLS: usize = 600;

    /// Runs a guest whose calls of the host take 0.2 ms of computing time each, on an engine whose clock stands still.
    async fn run(body: &str) -> wasmtime::Result<()> {
        let engine = wasmtime::Engine::new(&config(None)).unwrap();
        let module = format!(r#"(module (import "host" "work" (func $work)) (func (export "run") {body}))"#);
        let module = wasmtime::Module::new(&engine, wat::parse_str(module).unwrap()).unwrap();
        let limits = Limits::default();
        let slice = TimeSlice::default();
        let state = CallState::new("policy".into(), Given::default(), &limits);
        let mut store = store(&engine, state, &limits, slice.clone());
        let work = wasmtime::Func::wrap(&mut store, || {
            let work = TimeSlice::default();
            work.begin();
            while work.computed() < Duration::from_micros(200) {}
        });
        let run = async {
            let instance = wasmtime::Instance::new_async(&mut store, &module, &[work.into()]).await?;
            instance.get_typed_func::<(), ()>(&mut store, "run")?.call_async(&mut store, ()).await
        };
        InSlices::new(run, slice).await
    }

    /// A busy machine may give the clock no CPU for long.
    #[tokio::test]
    async fn a_guest_that_calls_the_host_again_and_again_is_looked_at_without_a_clock() {
        let body = format!(
            "(local $left i32) (local.set $left (i32.const {MANY_CALLS})) (loop $more (call $work)
             (br_if $more (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))"
        );
        run(&body).await.unwrap();
    }

    /// The engine checks a guest in every loop and at every function entry. This guest has neither.
    #[tokio::test]
    async fn a_guest_that_only_calls_the_host_is_ended() {
        let error = run(&"(call $work)".repeat(MANY_CALLS)).await.unwrap_err();
        assert!(error.is::<DeadlineExceeded>(), "{error:?}");
    }

    /// Returns the error of a call that never answers.
    async fn ended(lets_others: bool) -> CallErrorKind {
        let slice = TimeSlice::default();
        let inside = slice.clone();
        let call = InSlices::new(
            poll_fn(move |_| {
                if lets_others {
                    inside.let_others();
                }
                Poll::<Result<(), _>>::Pending
            }),
            slice,
        );
        in_time(&Limits::default(), &call.slice(), call).await.unwrap_err()
    }

    #[tokio::test(start_paused = true)]
    async fn a_policy_is_to_blame_for_a_call_that_waits_and_not_for_one_that_has_no_cpu() {
        assert!(matches!(ended(false).await, CallErrorKind::Deadline(200)));
        assert!(matches!(ended(true).await, CallErrorKind::NoCpu(2000)));
    }
}
