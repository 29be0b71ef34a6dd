//! Placeholder while the objects are written.
