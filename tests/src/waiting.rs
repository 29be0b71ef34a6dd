//! Waits for asynchronous work of the service.

use std::time::Duration;

use serde_json::Value;

use crate::api::Client;

/// The time between two looks.
const AGAIN: Duration = Duration::from_millis(50);

/// Calls `look` until it returns a value.
///
/// # Panics
///
/// If it has returned none within a minute.
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
pub async fn until_some<T>(look: impl AsyncFnMut() -> Option<T>) -> T {
    some_within(Duration::from_mins(1), look).await.unwrap()
}

/// Calls `look` until it returns a value. Returns `None` after `limit`.
pub async fn some_within<T>(limit: Duration, mut look: impl AsyncFnMut() -> Option<T>) -> Option<T> {
    let mut again = tokio::time::interval(AGAIN);
    let looking = async {
        loop {
            again.tick().await;
            if let Some(found) = look().await {
                return found;
            }
        }
    };
    tokio::time::timeout(limit, looking).await.ok()
}

/// Waits until a lab runs. The lab must exist all the time, even if the service was only just started again.
///
/// # Panics
///
/// If the service does not know the lab, or it does not run within a minute.
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
pub async fn until_running(client: &Client, lab: &str) -> Value {
    until_some(async || {
        let answer = client.lab(lab).await.unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json().ok().filter(|lab: &Value| lab["status"] == "running")
    })
    .await
}
