//! Requests whose answer is of no use when it comes late: those about the Lease, and about the address of the process that
//! leads.

use std::time::Duration;

/// The time limit of one request.
const LIMIT: Duration = Duration::from_secs(3);

/// The reason why there is no answer that can be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ShortRequestError {
    #[error("the Kubernetes API did not answer within {} s", LIMIT.as_secs())]
    TooLate,
    #[error(transparent)]
    Client(#[from] kube::Error),
}

impl ShortRequestError {
    /// True if somebody else has changed or deleted the object meanwhile.
    pub(crate) fn is_overtaken(&self) -> bool {
        matches!(self, Self::Client(kube::Error::Api(status)) if matches!(status.code, 404 | 409))
    }
}

/// Waits for the answer to a request, or to several that belong together, for the time limit.
pub(crate) async fn in_time<T, E: Into<ShortRequestError>>(
    request: impl Future<Output = Result<T, E>>,
) -> Result<T, ShortRequestError> {
    tokio::time::timeout(LIMIT, request).await.map_err(|_| ShortRequestError::TooLate)?.map_err(Into::into)
}
