//! A route, as the router and the dialects list it.

mod callers;

use axum::routing::MethodRouter;

pub(crate) use self::callers::Callers;
use crate::state::Api;

/// A route below the prefix.
pub(crate) struct Route {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    /// The callers for whom it is. The handler checks them; ingresses that authenticate callers are made from it.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the list of routes in the chart is made from it, by a test")
    )]
    pub(crate) callers: Callers,
    pub(crate) handler: MethodRouter<Api>,
}

/// A route for these callers.
pub(crate) fn route(method: &'static str, path: &str, callers: Callers, handler: MethodRouter<Api>) -> Route {
    Route { method, path: path.to_owned(), callers, handler }
}
