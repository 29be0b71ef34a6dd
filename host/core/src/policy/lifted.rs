//! The parts of the security baseline that are lifted in an administrator's lab.

use std::collections::BTreeSet;

use super::{Customization, Volume, VolumeSource};
use crate::config::administrators::{AdministratorLifts, Lift};
use crate::config::grants::{Grant, Grants, Need};
use crate::users::identity::Identity;

/// The parts of the security baseline that are lifted in a lab's own container; none in every lab that is not an
/// administrator's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lifted(BTreeSet<Lift>);

impl Lifted {
    /// Returns true if the lab has the whole baseline.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the lifted parts as the configuration names them: `root`, `privileged`, and paths of the node.
    pub fn names(&self) -> Vec<String> {
        self.parts().map(ToString::to_string).collect()
    }

    /// Returns true if this part is lifted.
    pub(crate) fn has(&self, lift: &Lift) -> bool {
        self.0.contains(lift)
    }

    pub(in crate::policy) fn parts(&self) -> impl Iterator<Item = &Lift> {
        self.0.iter()
    }

    /// Adds the parts that an answer used by its grant.
    pub(super) fn add(&mut self, used: &[Need]) {
        let by_grant = used.iter().filter(|need| need.grant == Grant::Administrators);
        self.0.extend(by_grant.filter_map(|need| need.wanted.as_deref()).map(lift));
    }
}

/// Returns the part that has this name in a [`Need`].
fn lift(wanted: &str) -> Lift {
    match wanted {
        "root" => Lift::Root,
        "privileged" => Lift::Privileged,
        path => Lift::Path(path.to_owned()),
    }
}

/// Decides which parts of the security baseline may be lifted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiftRules<'a> {
    /// The name of the lab's own container.
    pub(crate) container: &'a str,
    /// The site's rules and the lab's user. Absent where nothing may be lifted: in kernels, Dask pools, and labs in the
    /// pods of others.
    pub(crate) site: Option<(&'a AdministratorLifts, &'a Identity)>,
    /// True for kernels and Dask pools. They have the options of their lab and the whole baseline, so what a policy asks for
    /// because of these options is ignored.
    pub(crate) is_child: bool,
}

impl LiftRules<'_> {
    /// Returns true if the site and the grants of a policy allow this part for the lab's user.
    pub(in crate::policy) fn allow(&self, grants: &Grants, lift: &Lift) -> bool {
        let (Some((site, user)), Some(granted)) = (self.site, &grants.administrators) else { return false };
        site.allow(lift, user) && granted.allow(lift, user)
    }

    /// Takes the paths of the node that only administrators may mount out of the answer about a child, which has the options
    /// of its lab.
    pub(in crate::policy) fn strip(&self, grants: &Grants, asked: &mut Customization) {
        let Some(granted) = grants.administrators.as_ref().filter(|_| self.is_child) else { return };
        let is_stripped = |volume: &Volume| {
            let VolumeSource::HostPath(path) = &volume.source else { return false };
            let need = Need { field: String::new(), grant: Grant::HostPath, wanted: Some(path.clone()) };
            !grants.cover(&need) && granted.has_path(path)
        };
        let stripped: Vec<String> = asked
            .volumes
            .iter()
            .filter(|volume| is_stripped(volume))
            .map(|volume| volume.name.clone())
            .collect();
        asked.volumes.retain(|volume| !stripped.contains(&volume.name));
        asked.mounts.retain(|mount| !stripped.contains(&mount.volume));
        for init in &mut asked.init_containers {
            init.mounts.retain(|mount| !stripped.contains(&mount.volume));
        }
    }

    /// Returns the need if it is covered, by a grant for all labs or by that for those of administrators.
    pub(in crate::policy) fn cover(&self, grants: &Grants, need: Need) -> Result<Need, Need> {
        let wanted = need.wanted.as_deref().map(lift);
        let by_rank = || wanted.as_ref().is_some_and(|lift| self.allow(grants, lift));
        match need.grant {
            Grant::Administrators if by_rank() => Ok(need),
            // A policy with a grant for administrators is told what that one lacks.
            Grant::HostPath if !grants.cover(&need) && grants.administrators.is_some() => {
                let may = by_rank();
                let need = Need { grant: Grant::Administrators, ..need };
                if may { Ok(need) } else { Err(need) }
            }
            _ if grants.cover(&need) => Ok(need),
            _ => Err(need),
        }
    }
}
