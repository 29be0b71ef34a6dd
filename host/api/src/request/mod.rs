//! What requests consist of: paths, bodies, and where an answer leads.

pub(crate) mod body;
pub(crate) mod location;
pub(crate) mod path;
pub(crate) mod prefix;
