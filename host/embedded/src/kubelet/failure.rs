//! What an API error means to the kubelet.

use kube::Error;

/// The object is no more.
pub(crate) fn is_gone(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 404)
}

/// The object is another one by now, or has changed, or exists.
pub(crate) fn is_conflict(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 409)
}

/// The server has understood and refuses: asking again will not help.
pub(crate) fn is_refused(error: &Error) -> bool {
    matches!(error, Error::Api(status) if matches!(status.code, 400 | 403 | 405 | 422))
}
