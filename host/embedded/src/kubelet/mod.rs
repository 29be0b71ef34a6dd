//! Takes pods through their life against any Kubernetes API.
