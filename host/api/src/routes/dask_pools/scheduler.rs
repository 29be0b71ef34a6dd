//! `/labs/{username}/dask-pools/{pool}/scheduler`: the routes for the program within a pool's scheduler.

use axum::extract::{FromRequest, Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures::stream::unfold;
use http::StatusCode;
use http::request::Parts;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use wasmspawner_core::children::dask::WorkerRange;

use super::problems::unknown_pool;
use crate::fair_use::FairUse;
use crate::problem::Problem;
use crate::request::body::JsonBytes;
use crate::request::path::PoolPath;
use crate::routes::events::event_stream;
use crate::routes::pod_program;
use crate::wire;
use wasmspawner_spawner::{GroupOrder, Labs, NoOrders, Pools};

/// How many workers a pool is to have, as server-sent events of the type `workers`: `minimum`, `maximum` and `target`, at
/// once and after each change. A pool with groups of workers also has `groups`, with `name` and the same numbers.
///
/// The credential is the scheduler's own token, which is valid for its pool alone.
#[utoipa::path(
    get, path = "/labs/{username}/dask-pools/{pool}/scheduler", tag = "dask", operation_id = "connect_scheduler",
    responses(
        (status = 200, description = "The numbers", body = String, content_type = "text/event-stream"),
        (status = 404, description = "The pool is being stopped", body = crate::problem::ErrorBody),
        (status = 503, description = "Too many pods are connected", body = crate::problem::ErrorBody,
            headers(("retry-after" = u32, description = "Seconds"))),
    )
)]
pub(crate) async fn connect_scheduler(
    State(labs): State<Labs>,
    State(pools): State<Pools>,
    State(shutdown): State<CancellationToken>,
    PoolPath(key): PoolPath,
    parts: Parts,
) -> Result<Response, Problem> {
    pod_program::check(&labs, &key, &parts.headers, &parts.extensions)?;
    let orders = pools.connect_scheduler(&key).map_err(|why| match why {
        NoOrders::Ending => unknown_pool(),
        NoOrders::TooMany => pod_program::too_many(),
    })?;
    let frames = unfold(orders, async |mut orders| {
        orders.changed().await.ok()?;
        let frame = frame(&orders.borrow_and_update());
        Some((frame, orders))
    });
    Ok(event_stream(pod_program::stream(frames, shutdown)))
}

/// What a pool's scheduler says: how many workers are connected to it, and how many it wants.
#[utoipa::path(
    put, path = "/labs/{username}/dask-pools/{pool}/scheduler", tag = "dask", operation_id = "report_workers",
    request_body = wire::SchedulerReport,
    responses(
        (status = 204, description = "It is noted"),
        (status = 422, description = "Not a report", body = crate::problem::ErrorBody),
        (status = 429, description = "Too many requests of this user", body = crate::problem::ErrorBody,
            headers(("retry-after" = u32, description = "Seconds"))),
    )
)]
pub(crate) async fn report_workers(
    State(labs): State<Labs>,
    State(pools): State<Pools>,
    State(fair_use): State<FairUse>,
    PoolPath(key): PoolPath,
    request: Request,
) -> Result<StatusCode, Problem> {
    pod_program::check(&labs, &key, request.headers(), request.extensions())?;
    let _turn = fair_use.request(&key.lab.user).await?;
    let JsonBytes(body) = JsonBytes::from_request(request, &()).await?;
    pools.report_workers(&key, &wire::parse_report(&body)?);
    Ok(StatusCode::NO_CONTENT)
}

fn frame(order: &[GroupOrder]) -> Bytes {
    let numbers = |range: WorkerRange, target: u32| json!({ "minimum": range.minimum, "maximum": range.maximum, "target": target });
    let target = order.iter().fold(0_u32, |sum, group| sum.saturating_add(group.target));
    let mut data = numbers(order.iter().map(|group| group.range).sum(), target);
    let named = order.iter().filter_map(|GroupOrder { group, range, target }| {
        let mut numbers = numbers(*range, *target);
        numbers["name"] = json!(group.as_ref()?);
        Some(numbers)
    });
    let named: Vec<_> = named.collect();
    if !named.is_empty() {
        data["groups"] = json!(named);
    }
    Bytes::from(format!("event: workers\ndata: {data}\n\n"))
}

#[cfg(test)]
mod tests {
    use wasmspawner_core::names::WorkerGroupName;

    use super::*;

    #[test]
    fn an_order_is_one_event() {
        let order = GroupOrder { group: None, range: WorkerRange { minimum: 1, maximum: 8 }, target: 3 };
        let alike = "event: workers\ndata: {\"maximum\":8,\"minimum\":1,\"target\":3}\n\n";
        assert_eq!(frame(std::slice::from_ref(&order)), alike);
        let group = |name| GroupOrder { group: WorkerGroupName::parse(name).ok(), ..order.clone() };
        let groups = "event: workers\ndata: {\"groups\":[{\"maximum\":8,\"minimum\":1,\"name\":\"b\",\"target\":3},\
                      {\"maximum\":8,\"minimum\":1,\"name\":\"a\",\"target\":3}],\"maximum\":16,\"minimum\":2,\"target\":6}\n\n";
        assert_eq!(frame(&[group("b"), group("a")]), groups);
    }
}
