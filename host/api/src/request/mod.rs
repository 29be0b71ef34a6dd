//! The parts of requests: paths and bodies; and the URL paths in answers.

pub(crate) mod body;
pub(crate) mod location;
pub(crate) mod path;
pub(crate) mod prefix;
