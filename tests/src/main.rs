//! The service, for the tests of this package.

fn main() {}
