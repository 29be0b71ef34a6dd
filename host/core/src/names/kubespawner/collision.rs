//! Finds names that two users, or two servers, would share.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::Report;

/// A name that more than one server, or user, would get.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Collision {
    /// The kind of name: `pod_name`, `pvc_name`, `namespace_if_user_namespaces`, `rendered`.
    pub what: &'static str,
    /// The shared name.
    pub name: String,
    /// The raw username and server name of each owner of the shared name. The server is empty for names made once per
    /// user.
    pub owners: Vec<(String, String)>,
}

/// Collects reports and finds names that occur twice. The same server may be added twice; that is not a collision.
#[derive(Debug, Clone, Default)]
pub struct Collisions {
    owners: BTreeMap<(&'static str, String), BTreeSet<(String, String)>>,
}

impl Collisions {
    /// Adds the report about one user's server. Use one collection for each slug scheme.
    pub fn add(&mut self, username: &str, servername: &str, report: &Report) {
        let server = (username.to_owned(), servername.to_owned());
        let user = (username.to_owned(), String::new());
        self.claim("pod_name", &report.defaults.pod_name, server.clone());
        self.claim("pvc_name", &report.defaults.pvc_name, server);
        self.claim(
            "namespace_if_user_namespaces",
            &report.defaults.namespace_if_user_namespaces,
            user.clone(),
        );
        if let Some(rendered) = &report.rendered {
            self.claim("rendered", rendered, user);
        }
    }

    /// Returns the names that have more than one owner.
    pub fn found(&self) -> Vec<Collision> {
        let shared = self.owners.iter().filter(|(_, owners)| owners.len() > 1);
        shared
            .map(|((what, name), owners)| Collision {
                what,
                name: name.clone(),
                owners: owners.iter().cloned().collect(),
            })
            .collect()
    }

    fn claim(&mut self, what: &'static str, name: &str, owner: (String, String)) {
        self.owners.entry((what, name.to_owned())).or_default().insert(owner);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{KubeSpawner, NameQuery};
    use super::*;
    use crate::names::SlugScheme;

    fn found(template: Option<&str>, labs: &[(&str, &str)]) -> Vec<(&'static str, usize)> {
        let names = KubeSpawner::new(template).unwrap();
        let mut collisions = Collisions::default();
        for (username, servername) in labs {
            let question = NameQuery::new(username, servername, SlugScheme::Safe);
            collisions.add(username, servername, &names.answer(&question).unwrap());
        }
        collisions.found().into_iter().map(|collision| (collision.what, collision.owners.len())).collect()
    }

    #[test]
    fn different_users_do_not_collide_by_default() {
        assert_eq!(
            found(None, &[("ada", ""), ("Ada", ""), ("ada", "gpu"), ("ada--gpu", ""), ("ada", "")]),
            []
        );
    }

    #[test]
    fn a_template_that_cuts_names_collides() {
        assert_eq!(
            found(Some("home-{username:.3}"), &[("adam", ""), ("adam", "x"), ("adah", "")]),
            [("rendered", 2)]
        );
    }
}
