//! Waiting for what the service does in its own time.

use std::time::Duration;

/// Calls `look` until it returns a value.
///
/// # Panics
///
/// If it has returned none within a minute.
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
pub async fn until_some<T>(look: impl AsyncFn() -> Option<T>) -> T {
    let mut again = tokio::time::interval(Duration::from_millis(50));
    let looking = async {
        loop {
            again.tick().await;
            if let Some(found) = look().await {
                return found;
            }
        }
    };
    tokio::time::timeout(Duration::from_mins(1), looking).await.unwrap()
}
