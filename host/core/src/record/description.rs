//! The description of a started lab in its record, without secrets.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::children::dask::{GroupRange, MAX_WORKERS, Resize, WorkerRange};
use crate::custom_resource::blueprint::ForeignBlueprint;
use crate::names::WorkerGroupName;
use crate::policy::compose::FieldsBySource;
use crate::policy::{Image, Options};
use crate::users::identity::Group;

/// The options, user, image and resources of a lab. Complete once the policies have decided. It does not contain the
/// environment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LabDescription {
    /// The parsed options of the spawn form.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub options: Options,
    /// The UID that the lab's processes run as.
    pub uid: u32,
    /// The GID of the user's primary group.
    pub gid: u32,
    /// All groups of the user.
    pub groups: Vec<Group>,
    /// Limits and requests of the lab's resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quotas: Option<Quotas>,
    /// The image, with its digest if it is pinned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
    /// The policies that decided about the lab.
    pub policies: Vec<PolicyRef>,
    /// Which fields of the lab who decided; empty until the policies have decided.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub decided_by: FieldsBySource,
    /// The parts of the security baseline that are lifted, because the lab is an administrator's: `root`, `privileged`, and
    /// paths of the node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lifted: Vec<String>,
    /// Environment variables whose values are not in the lab's `ConfigMap`, and the text that is shown in place of the
    /// values: credentials, and values that only the pod knows.
    pub hidden_env: BTreeMap<String, String>,
    /// The blueprint of a repository or a user, if the lab is of one. What the lab starts is of the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign_blueprint: Option<ForeignBlueprint>,
    /// The kernel, if this is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelDescription>,
    /// The Dask pool, if this is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolDescription>,
}

/// A kernel in its record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KernelDescription {
    /// The name of its kernel spec: `python3`.
    pub name: String,
    /// Digest of the token with which its launcher presents itself: `sha256:` and 64 hexadecimal digits. The token
    /// itself is random, and long enough that nobody finds it from its digest.
    pub launcher: String,
}

/// A Dask pool in its record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolDescription {
    /// How many workers it has, in all groups together.
    pub workers: WorkerRange,
    /// Its groups of workers; empty if all are alike.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupDescription>,
    /// The scheduler's limits, if they differ from those of a worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<ResourceAmount>,
    /// After how many idle seconds it ends; absent if it does not end by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<u32>,
    /// True if it goes on when its lab ends.
    #[serde(default)]
    pub outlives_lab: bool,
    /// Digest of the certificate with which its clients know it: `sha256:` and 64 hexadecimal digits.
    #[serde(default)]
    pub certificate: String,
    /// Digest of the token with which its scheduler presents itself, as for the launcher of a kernel.
    pub keeper: String,
    /// The pod from which its workers are made; absent until the policies have decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub worker: Option<serde_json::Value>,
}

/// A group of workers in the record of its pool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupDescription {
    /// The name of the group.
    pub name: WorkerGroupName,
    /// How many workers it has.
    pub workers: WorkerRange,
    /// The options in which its workers differ from the pool.
    #[serde(default, skip_serializing_if = "Options::is_empty")]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub options: Options,
    /// The limits of one worker; absent until the policies have decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<ResourceAmount>,
    /// The pod from which its workers are made; absent until the policies have decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub worker: Option<serde_json::Value>,
}

impl PoolDescription {
    /// Returns the range of each group. A pool whose workers are all alike has one, without a name.
    pub fn ranges(&self) -> Vec<GroupRange> {
        if self.groups.is_empty() {
            return vec![GroupRange::only(self.workers)];
        }
        let range =
            |group: &GroupDescription| GroupRange { group: Some(group.name.clone()), workers: group.workers };
        self.groups.iter().map(range).collect()
    }

    /// Returns the range of all groups together. It is `workers`, unless an older release has changed that alone.
    pub fn total(&self) -> WorkerRange {
        self.ranges().into_iter().map(|range| range.workers).sum()
    }

    /// Returns the pod from which the workers of a group are made, once the policies have decided.
    pub fn template(&self, group: Option<&WorkerGroupName>) -> Option<&serde_json::Value> {
        match group {
            None => self.worker.as_ref(),
            Some(name) => self.group(name)?.worker.as_ref(),
        }
    }

    /// Returns the group of this name.
    pub fn group(&self, name: &WorkerGroupName) -> Option<&GroupDescription> {
        self.groups.iter().find(|group| group.name == *name)
    }

    /// Changes the number of workers. Fails if the pool has no such group, or would have too many workers in all.
    pub fn resize(&mut self, resize: &Resize) -> Result<(), ImpossibleResize> {
        let no_such_group = || ImpossibleResize::NoSuchGroup {
            asked: resize.group.clone(),
            groups: self.groups.iter().map(|group| group.name.clone()).collect(),
        };
        match &resize.group {
            None if self.groups.is_empty() => self.workers = resize.workers,
            None => return Err(no_such_group()),
            Some(name) => {
                let at =
                    self.groups.iter().position(|group| group.name == *name).ok_or_else(no_such_group)?;
                let others = self.groups.iter().enumerate().filter(|(other, _)| *other != at);
                let total =
                    others.map(|(_, group)| group.workers).chain([resize.workers]).sum::<WorkerRange>();
                if total.maximum > MAX_WORKERS {
                    return Err(ImpossibleResize::TooMany { total: total.maximum });
                }
                self.groups[at].workers = resize.workers;
                self.workers = total;
            }
        }
        Ok(())
    }

    /// Takes the numbers of workers of a later description of the same pool.
    pub fn take_workers_of(&mut self, later: &Self) {
        self.workers = later.workers;
        for group in &mut self.groups {
            if let Some(now) = later.group(&group.name) {
                group.workers = now.workers;
            }
        }
    }
}

/// A pool cannot have these workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImpossibleResize {
    /// The pool has no such group.
    NoSuchGroup {
        /// The group of the request.
        asked: Option<WorkerGroupName>,
        /// The groups of the pool.
        groups: Vec<WorkerGroupName>,
    },
    /// All groups together would have more workers than any pool can have.
    TooMany {
        /// The number of workers of all groups.
        total: u32,
    },
}

impl fmt::Display for ImpossibleResize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (asked, groups) = match self {
            Self::NoSuchGroup { asked, groups } => (asked, groups),
            Self::TooMany { total } => {
                return write!(
                    f,
                    "all groups together have at most {MAX_WORKERS} workers, and would have {total}; ask for fewer"
                );
            }
        };
        let names: Vec<_> = groups.iter().map(WorkerGroupName::as_str).collect();
        match asked {
            None => write!(f, "the pool has groups of workers: name one of {}", names.join(", ")),
            Some(asked) if groups.is_empty() => {
                write!(
                    f,
                    "there is no group `{asked}`: the workers of this pool are all alike, so leave it out"
                )
            }
            Some(asked) => write!(f, "there is no group `{asked}`; the groups are {}", names.join(", ")),
        }
    }
}

impl LabDescription {
    /// Returns the digest of the token of the program that the service has put into the pod of a child.
    pub fn token_digest(&self) -> Option<&str> {
        let launcher = self.kernel.as_ref().map(|kernel| kernel.launcher.as_str());
        launcher.or_else(|| self.pool.as_ref().map(|pool| pool.keeper.as_str()))
    }
}

/// Limits and requests of a lab's resources.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quotas {
    /// The limits: the most that the lab may use.
    pub limits: ResourceAmount,
    /// The requests: what is reserved for the lab.
    pub requests: ResourceAmount,
}

/// An amount of CPU and memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceAmount {
    /// Number of CPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<f64>,
    /// Memory in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
}

/// A policy, and the component with which it decided about the lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyRef {
    /// The policy's name in the configuration.
    pub name: String,
    /// Digest of the component: `sha256:` and 64 hexadecimal digits.
    pub digest: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(groups: &[(&'static str, u32)]) -> PoolDescription {
        let group = |(name, workers): &(&'static str, u32)| GroupDescription {
            name: WorkerGroupName::constant(name),
            workers: WorkerRange::fixed(*workers),
            options: Options::new(),
            limits: None,
            worker: Some(serde_json::json!(name)),
        };
        PoolDescription {
            workers: WorkerRange::fixed(groups.iter().map(|(_, workers)| workers).sum()),
            groups: groups.iter().map(group).collect(),
            scheduler: None,
            idle_timeout: None,
            outlives_lab: false,
            certificate: String::new(),
            keeper: String::new(),
            worker: Some(serde_json::json!("all")),
        }
    }

    fn resize(group: Option<&'static str>, workers: u32) -> Resize {
        Resize { group: group.map(WorkerGroupName::constant), workers: WorkerRange::fixed(workers) }
    }

    #[test]
    fn groups_are_resized_apart_and_counted_together() {
        let mut groups = pool(&[("cpu", 2), ("gpu", 1)]);
        groups.resize(&resize(Some("gpu"), 4)).unwrap();
        assert_eq!(groups.workers, WorkerRange::fixed(6));
        assert_eq!(groups.ranges().iter().map(|range| range.workers.maximum).collect::<Vec<_>>(), [2, 4]);
        let mut before = pool(&[("cpu", 2), ("gpu", 1)]);
        before.take_workers_of(&groups);
        assert_eq!(before, groups);
        assert_eq!(groups.template(Some(&WorkerGroupName::constant("gpu"))), Some(&serde_json::json!("gpu")));
        let mut alike = pool(&[]);
        alike.resize(&resize(None, 3)).unwrap();
        assert_eq!(alike.ranges(), [GroupRange::only(WorkerRange::fixed(3))]);
        assert_eq!(alike.template(None), Some(&serde_json::json!("all")));
    }

    #[test]
    fn a_group_that_does_not_exist_is_named_with_those_that_do() {
        let problem =
            |pool: &mut PoolDescription, group| pool.resize(&resize(group, 1)).unwrap_err().to_string();
        let mut groups = pool(&[("cpu", 2), ("gpu", 1)]);
        assert_eq!(problem(&mut groups, None), "the pool has groups of workers: name one of cpu, gpu");
        assert_eq!(problem(&mut groups, Some("tpu")), "there is no group `tpu`; the groups are cpu, gpu");
        let alike = problem(&mut pool(&[]), Some("cpu"));
        assert_eq!(alike, "there is no group `cpu`: the workers of this pool are all alike, so leave it out");
        assert_eq!(groups, pool(&[("cpu", 2), ("gpu", 1)]), "nothing has changed");
    }

    #[test]
    fn the_groups_of_a_pool_have_together_no_more_workers_than_a_pool() {
        let mut groups = pool(&[("cpu", 2), ("gpu", 1)]);
        let refused = groups.resize(&resize(Some("cpu"), MAX_WORKERS)).unwrap_err().to_string();
        assert!(refused.contains("at most 10000 workers, and would have 10001"), "{refused}");
        assert_eq!(groups, pool(&[("cpu", 2), ("gpu", 1)]), "nothing has changed");
        groups.resize(&resize(Some("cpu"), MAX_WORKERS - 1)).unwrap();
        assert_eq!(groups.workers.maximum, MAX_WORKERS);
    }

    #[test]
    fn the_record_of_a_pool_from_before_there_were_groups_is_read() {
        let recorded = serde_json::json!({
            "workers": { "minimum": 1, "maximum": 4 },
            "idleTimeout": 600,
            "outlivesLab": false,
            "certificate": "sha256:ab",
            "keeper": "sha256:cd",
            "worker": { "metadata": { "labels": { "app": "w" } } },
        });
        let mut pool: PoolDescription = serde_json::from_value(recorded.clone()).unwrap();
        let range = WorkerRange { minimum: 1, maximum: 4 };
        assert_eq!((pool.ranges(), pool.scheduler), (vec![GroupRange::only(range)], None));
        assert_eq!(pool.template(None), Some(&recorded["worker"]));
        assert_eq!(serde_json::to_value(&pool).unwrap(), recorded, "an older release can read it again");
        pool.resize(&resize(None, 2)).unwrap();
        assert_eq!(pool.workers, WorkerRange::fixed(2));
    }

    #[test]
    fn groups_count_even_if_an_older_release_has_changed_the_number_of_all_workers() {
        let mut changed = pool(&[("cpu", 2), ("gpu", 1)]);
        changed.workers = WorkerRange::fixed(9);
        assert_eq!(changed.total(), WorkerRange::fixed(3));
        assert_eq!(pool(&[]).total(), pool(&[]).workers);
        changed.resize(&resize(Some("gpu"), 2)).unwrap();
        assert_eq!(changed.workers, WorkerRange::fixed(4));
    }

    #[test]
    fn the_record_of_a_pool_without_groups_is_as_before() {
        let json = serde_json::to_value(pool(&[])).unwrap();
        assert!(json.get("groups").is_none() && json.get("scheduler").is_none(), "{json}");
    }
}
