//! The callers for whom a route is. The chart's ingresses through Gafaelfawr are made from the list of all routes.

/// The kind of callers for whom a route is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Callers {
    /// Users who start a lab, and administrators. The lab gets the token of the request, so an ingress may require that it
    /// lives long.
    Starters,
    /// Users for what runs beside their own labs, and administrators; not the Hub.
    Owners,
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
