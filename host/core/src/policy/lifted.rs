//! The parts of the security baseline that are lifted in an administrator's lab.

use super::{Customization, Volume, VolumeSource};
use crate::config::administrators::{AdministratorLifts, Lift};
use crate::config::grants::{Grant, Grants, Need};
use crate::users::identity::Identity;
use crate::values::path;

/// The parts of the security baseline that are lifted in a lab's own container; none in every lab that is not an
/// administrator's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lifted {
    /// The container runs as root, with the container runtime's default capabilities.
    pub root: bool,
    /// The container runs privileged.
    pub privileged: bool,
    /// The paths of the node that are mounted by the right of the grant `administrators`.
    pub paths: Vec<String>,
}

impl Lifted {
    /// Returns true if the lab has the whole baseline.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the lifted parts as the configuration names them: `root`, `privileged`, and paths of the node.
    pub fn names(&self) -> Vec<String> {
        self.parts().map(|lift| lift.to_string()).collect()
    }

    pub(in crate::policy) fn parts(&self) -> impl Iterator<Item = Lift> {
        let root = self.root.then_some(Lift::Root);
        let privileged = self.privileged.then_some(Lift::Privileged);
        root.into_iter().chain(privileged).chain(self.paths.iter().cloned().map(Lift::Path))
    }

    /// Adds the parts that an answer used by its grant.
    pub(super) fn add(&mut self, used: &[Need]) {
        for need in used.iter().filter(|need| need.grant == Grant::Administrators) {
            match need.wanted.as_deref().map(lift) {
                Some(Lift::Root) => self.root = true,
                Some(Lift::Privileged) => self.privileged = true,
                Some(Lift::Path(path)) if !self.paths.contains(&path) => self.paths.push(path),
                _ => {}
            }
        }
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
            !grants.cover(&need) && granted.paths.iter().any(|granted| path::is_below(path, granted))
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
            // Who has a grant for administrators is told what that one lacks.
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
