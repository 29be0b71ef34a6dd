//! The callers for whom a route is. The chart's ingresses through Gafaelfawr are made from the list of all routes.

/// The kind of callers for whom a route is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Callers {
    /// Users who start something of their own, and administrators.
    Starters,
    /// Users for their own labs; the Hub and administrators for all.
    OwnersAndOverseers,
    /// The Hub and administrators.
    Overseers,
    /// Administrators.
    Administrators,
    /// The program of a kernel or a Dask pool, with a token that the service has made for it.
    OwnProgram,
    /// Everybody, without a credential.
    Anybody,
}
