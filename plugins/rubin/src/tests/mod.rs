//! Tests of the whole policy.

mod vectors;
