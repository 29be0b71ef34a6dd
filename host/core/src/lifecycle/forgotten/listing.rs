//! JupyterHub's list of its servers, read page by page.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::names::lab::LabKey;

/// The scopes that the service's token needs at the Hub, without a filter: labs of users whom the token cannot list
/// would look forgotten.
const NEEDED_SCOPES: [&str; 2] = ["list:users", "read:servers"];

/// Returns the needed scopes that are not among `granted`. A scope with a filter (`list:users!group=x`) does not count.
pub fn missing_scopes(granted: &[String]) -> Vec<&'static str> {
    NEEDED_SCOPES.into_iter().filter(|needed| !granted.iter().any(|scope| scope == needed)).collect()
}

/// One page of `GET /hub/api/users?state=active`, in the form `application/jupyterhub-pagination+json`.
#[derive(Debug, Clone, Deserialize)]
pub struct UserPage {
    items: Vec<ListedUser>,
    #[serde(rename = "_pagination")]
    pagination: Pagination,
}

#[derive(Debug, Clone, Deserialize)]
struct ListedUser {
    name: String,
    /// Absent when the token may not read the user's servers.
    servers: Option<BTreeMap<String, ListedServer>>,
}

#[derive(Debug, Clone, Deserialize)]
struct ListedServer {
    #[serde(default)]
    pending: Option<String>,
    #[serde(default)]
    stopped: bool,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct Pagination {
    offset: usize,
    limit: usize,
    total: usize,
    next: Option<NextPage>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct NextPage {
    offset: usize,
}

/// The Hub's list is not complete, so that a lab which is missing in it may still exist at the Hub.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IncompleteList {
    /// A page has fewer or more users than it should.
    #[error("a page has {found} users where {expected} were announced")]
    Page {
        /// Number of users in the page.
        found: usize,
        /// Number of users according to the page's own offset, limit and total.
        expected: usize,
    },
    /// The offset of a page is not the expected one, or the number of users changed between pages.
    #[error("the pages do not fit together; users may have come or gone meanwhile")]
    Shifted,
    /// There are more users, servers or characters than a Hub has.
    #[error(
        "it is longer than {MAX_LISTED} users and servers, or has a name of more than {MAX_NAME_BYTES} bytes"
    )]
    TooLong,
    /// The token may not read a user's servers.
    #[error("it has a user without `servers`")]
    NoServers,
}

/// The largest number of users and servers that are read.
const MAX_LISTED: usize = 200_000;
/// The largest length of a user's or a server's name that is read, in bytes. JupyterHub's database has 255 characters.
const MAX_NAME_BYTES: usize = 1020;

/// The pages read so far.
#[derive(Debug, Default)]
pub struct Listing {
    servers: HubServers,
    /// The number of users and servers.
    count: usize,
    next: usize,
    total: Option<usize>,
}

/// The servers that the Hub counts as active: running, starting or stopping.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HubServers {
    users: BTreeMap<String, BTreeSet<String>>,
}

impl Listing {
    /// Adds the next page. Returns the offset of the page after it, or `None` if this was the last page.
    pub fn add(&mut self, page: UserPage) -> Result<Option<usize>, IncompleteList> {
        let Pagination { offset, limit, total, next } = page.pagination;
        if offset != self.next || self.total.is_some_and(|known| known != total) {
            return Err(IncompleteList::Shifted);
        }
        let (found, expected) = (page.items.len(), limit.min(total.saturating_sub(offset)));
        if found != expected {
            return Err(IncompleteList::Page { found, expected });
        }
        for user in page.items {
            let servers = user.servers.ok_or(IncompleteList::NoServers)?;
            self.count += 1 + servers.len();
            let too_long = |name: &String| name.len() > MAX_NAME_BYTES;
            if self.count > MAX_LISTED || too_long(&user.name) || servers.keys().any(too_long) {
                return Err(IncompleteList::TooLong);
            }
            let active = servers.into_iter().filter(|(_, server)| server.is_active()).map(|(name, _)| name);
            // A user who moved to a later page appears twice, and another user may be missing in their place.
            if self.servers.users.insert(user.name, active.collect()).is_some() {
                return Err(IncompleteList::Shifted);
            }
        }
        (self.next, self.total) = (offset + found, Some(total));
        match next {
            None if self.next == total => Ok(None),
            // Requesting the page after an empty page would never end.
            Some(next) if next.offset == self.next && found > 0 => Ok(Some(self.next)),
            _ => Err(IncompleteList::Shifted),
        }
    }

    /// Returns the servers of all pages together.
    pub fn servers(self) -> HubServers {
        self.servers
    }
}

impl HubServers {
    /// Returns true if the Hub knows the lab. A user who is listed as active without any server is about to get one, or
    /// the Hub has just started; in both cases all of the user's labs count as known.
    pub fn know(&self, lab: &LabKey) -> bool {
        let servers = self.users.get(lab.user.as_str());
        servers.is_some_and(|servers| servers.is_empty() || servers.contains(lab.server.as_str()))
    }
}

impl ListedServer {
    fn is_active(&self) -> bool {
        !self.stopped || self.pending.is_some()
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for HubServers {
    fn from_iter<T: IntoIterator<Item = (&'a str, &'a str)>>(servers: T) -> Self {
        let mut users: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (user, server) in servers {
            users.entry(user.to_owned()).or_default().insert(server.to_owned());
        }
        Self { users }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::names::{ServerName, Username};

    fn user(name: &str) -> Value {
        json!({ "name": name, "kind": "user", "servers": { "": { "ready": true, "pending": null, "stopped": false } } })
    }

    fn page(items: &[Value], offset: usize, limit: usize, total: usize) -> UserPage {
        let next =
            (offset + limit < total).then(|| json!({ "offset": offset + limit, "limit": limit, "url": "x" }));
        let pagination = json!({ "offset": offset, "limit": limit, "total": total, "next": next });
        serde_json::from_value(json!({ "items": items, "_pagination": pagination })).unwrap()
    }

    fn lab(user: &str, server: &str) -> LabKey {
        LabKey::new(Username::parse(user).unwrap(), ServerName::parse(server).unwrap())
    }

    #[test]
    fn pages_that_follow_each_other_are_one_list() {
        let mut listing = Listing::default();
        assert_eq!(listing.add(page(&[user("a"), user("b")], 0, 2, 3)), Ok(Some(2)));
        assert_eq!(listing.add(page(&[user("c")], 2, 2, 3)), Ok(None));
        let servers = listing.servers();
        assert!(["a", "b", "c"].iter().all(|name| servers.know(&lab(name, ""))));
        assert!(!servers.know(&lab("d", "")) && !servers.know(&lab("a", "gpu")));
        assert_eq!(Listing::default().add(page(&[], 0, 50, 0)), Ok(None), "nobody has a server");
    }

    #[test]
    fn an_incomplete_list_is_an_error() {
        let half_a_page = page(&[user("a")], 0, 2, 3);
        assert_eq!(Listing::default().add(half_a_page), Err(IncompleteList::Page { found: 1, expected: 2 }));
        let begins_later = page(&[user("c")], 2, 2, 3);
        assert_eq!(Listing::default().add(begins_later), Err(IncompleteList::Shifted));
        for second in [
            page(&[user("c")], 2, 2, 3),
            page(&[user("b"), user("c")], 2, 2, 4),
            page(&[user("c"), user("d")], 4, 2, 6),
        ] {
            let mut listing = Listing::default();
            assert_eq!(listing.add(page(&[user("a"), user("b")], 0, 2, 4)), Ok(Some(2)));
            assert_eq!(listing.add(second.clone()), Err(IncompleteList::Shifted), "{second:?}");
        }
        let mut last = page(&[user("a"), user("b")], 0, 2, 4);
        last.pagination.next = None;
        assert_eq!(
            Listing::default().add(last),
            Err(IncompleteList::Shifted),
            "the second page is not announced"
        );
        let mut endless = page(&[], 0, 0, 3);
        endless.pagination.next = Some(NextPage { offset: 0 });
        assert_eq!(Listing::default().add(endless), Err(IncompleteList::Shifted));
    }

    #[test]
    fn a_list_that_never_ends_is_an_error() {
        let mut listing = Listing { count: MAX_LISTED - 2, ..Listing::default() };
        assert_eq!(listing.add(page(&[user("a")], 0, 1, 9)), Ok(Some(1)));
        assert_eq!(listing.add(page(&[user("b")], 1, 1, 9)), Err(IncompleteList::TooLong));
        let long = user(&"a".repeat(MAX_NAME_BYTES + 1));
        assert_eq!(Listing::default().add(page(&[long], 0, 1, 1)), Err(IncompleteList::TooLong));
    }

    #[test]
    fn a_user_without_readable_servers_is_an_error() {
        let hidden = json!({ "name": "a", "kind": "user" });
        assert_eq!(Listing::default().add(page(&[hidden], 0, 2, 1)), Err(IncompleteList::NoServers));
    }

    #[test]
    fn pending_servers_are_known_and_stopped_ones_are_not() {
        let server =
            |pending: Value, stopped: bool| json!({ "ready": false, "pending": pending, "stopped": stopped });
        let servers = json!({ "": server("spawn".into(), false), "check": server("check".into(), true), "old": server(Value::Null, true) });
        let items = [json!({ "name": "a", "servers": servers }), json!({ "name": "b", "servers": {} })];
        let mut listing = Listing::default();
        assert_eq!(listing.add(page(&items, 0, 2, 2)), Ok(None));
        let servers = listing.servers();
        assert!(servers.know(&lab("a", "")) && servers.know(&lab("a", "check")));
        assert!(!servers.know(&lab("a", "old")));
        assert!(servers.know(&lab("b", "")), "the Hub lists b as active and does not say with what");
    }

    #[test]
    fn a_scope_that_is_restricted_to_some_users_counts_as_missing() {
        let granted = |scopes: &[&str]| scopes.iter().map(|&scope| scope.to_owned()).collect::<Vec<_>>();
        assert_eq!(missing_scopes(&granted(&["list:users", "read:servers", "x"])), [""; 0]);
        assert_eq!(missing_scopes(&granted(&["list:users!group=x", "read:servers"])), ["list:users"]);
        assert_eq!(missing_scopes(&[]), ["list:users", "read:servers"]);
    }
}
