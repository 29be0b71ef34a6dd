//! The users who may have a lab in a workload, and the parts of the workload that the lab sees.

use wasmspawner_sdk::inject::{Access, Verdict, VolumeAccess, Workload, WorkloadKind};
use wasmspawner_sdk::{Error, Options, Section, User, hooks};

use crate::DefaultPolicy;

/// One rule of `workloads`.
pub(crate) struct Rule {
    workloads: Vec<Pattern>,
    users: Vec<String>,
    groups: Vec<String>,
    access: Access,
}

/// `KIND/NAMESPACE/NAME`, where `*` as a part stands for every kind, namespace or name.
struct Pattern([String; 3]);

impl Rule {
    pub(crate) fn read_all(config: &mut Section<'_>) -> Vec<Self> {
        config.list("workloads", |rule| Self {
            workloads: patterns(rule),
            users: rule.or_default("users"),
            groups: rule.or_default("groups"),
            access: Access {
                volumes: rule.list("volumes", |volume| VolumeAccess {
                    volume: volume.required("volume"),
                    path: volume.required("path"),
                    sub_path: volume.optional("sub_path"),
                    read_only: volume.or_default("read_only"),
                }),
                environment_of: rule.optional("environment_of"),
            },
        })
    }

    fn allows(&self, user: &User, workload: &Workload) -> bool {
        let everybody = self.users.is_empty() && self.groups.is_empty();
        let is_theirs = everybody || self.users.contains(&user.name) || user.is_in_any(&self.groups);
        is_theirs && self.workloads.iter().any(|pattern| pattern.fits(workload))
    }
}

fn patterns(rule: &mut Section<'_>) -> Vec<Pattern> {
    let written: Vec<String> = rule.required("workloads");
    let parsed = written.iter().map(|text| Pattern::parse(text));
    let patterns: Vec<Pattern> = parsed.flatten().collect();
    if patterns.len() < written.len() {
        rule.problem(
            "workloads",
            "each is `KIND/NAMESPACE/NAME` with a kind of `deployment`, `statefulset`, `daemonset` or `*`, such as \
             `deployment/shop/*`",
        );
    }
    patterns
}

impl Pattern {
    fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split('/').collect();
        let [kind, namespace, name] = parts.as_slice() else { return None };
        let is_kind = matches!(*kind, "deployment" | "statefulset" | "daemonset" | "*");
        let whole = is_kind && !namespace.is_empty() && !name.is_empty();
        whole.then(|| Self([kind, namespace, name].map(|part| (*part).to_owned())))
    }

    fn fits(&self, workload: &Workload) -> bool {
        let kind = match workload.kind {
            WorkloadKind::Deployment => "deployment",
            WorkloadKind::StatefulSet => "statefulset",
            WorkloadKind::DaemonSet => "daemonset",
        };
        let parts = [kind, &workload.namespace, &workload.name];
        self.0.iter().zip(parts).all(|(pattern, part)| pattern == "*" || pattern == part)
    }
}

impl hooks::Inject for DefaultPolicy {
    /// Applies the first rule that fits, which decides what the lab sees. Without a rule, nobody may have a lab.
    fn inject(&self, user: &User, _: &str, _: &Options, workload: &Workload) -> Result<Verdict, Error> {
        let rule = self.workloads.iter().find(|rule| rule.allows(user, workload));
        Ok(match rule {
            Some(rule) => Verdict::Allow(rule.access.clone()),
            None => Verdict::deny(format!(
                "You may not have a lab in {}/{} here.",
                workload.namespace, workload.name
            )),
        })
    }
}
