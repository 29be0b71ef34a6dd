//! An instance of a component, and a call that is made on it.

use futures::future::BoxFuture;
use wasmtime::Store;
use wasmtime::component::Instance;

use super::call_state::CallState;
use crate::errors::CallErrorKind;
use crate::names::message::message;

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

/// The error of a function whose type in the component differs from that in the package.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct WrongType(pub(crate) String);

impl From<wasmtime::Error> for WrongType {
    fn from(error: wasmtime::Error) -> Self {
        Self(message(format!("{error:#}")))
    }
}
