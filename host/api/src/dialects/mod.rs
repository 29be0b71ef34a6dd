//! Further APIs that are served beside the service's own, for clients that exist already (`http.dialects`). They translate
//! requests and answers, and decide nothing.

pub(crate) mod nublado;
