//! The meaning of API errors for the kubelet.

use kube::Error;

/// True if the object no longer exists.
pub(crate) fn is_gone(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 404)
}

/// True if the object has been replaced, has changed, or already exists.
pub(crate) fn is_conflict(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 409)
}

/// True if the server has understood and refused the request. A retry will not help.
pub(crate) fn is_refused(error: &Error) -> bool {
    matches!(error, Error::Api(status) if matches!(status.code, 400 | 403 | 405 | 422))
}
