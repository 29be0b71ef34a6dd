//! Decides whether a lab may be added to a workload in its present state.

use super::{Workload, WorkloadObject, WorkloadState};

/// The largest number of labs in one workload. Each is one more container in each of the workload's pods.
pub const MAX_LABS: usize = 8;

/// The reason why no lab can be added to a workload now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadRefusal {
    /// The workload is being deleted.
    #[error("{0} is being deleted")]
    Deleting(Workload),
    /// The workload has no pods.
    #[error("{0} has no pods: it is scaled to zero")]
    NoPods(Workload),
    /// The owner has paused the workload.
    #[error("{0} is paused; labs can be put into it when its owner has resumed it")]
    Paused(Workload),
    /// The workload's pods are replaced by hand.
    #[error(
        "the pods of {0} are replaced only when somebody deletes them (`updateStrategy: OnDelete`), so a lab would never begin"
    )]
    Manual(Workload),
    /// None of the workload's pods gets a new template.
    #[error("no pod of {0} gets a new template: its `partition` is {1}")]
    Partition(Workload, u32),
    /// The containers of the pods share namespaces that containers usually have each for themselves.
    #[error("the pods of {0} have `{1}`, so a lab could look into their other containers or into the node")]
    Shares(Workload, &'static str),
    /// The workload has the largest number of labs.
    #[error("{0} has {MAX_LABS} labs already; stop one of them")]
    TooMany(Workload),
}

/// Fails if a lab may not be added to the workload.
pub fn check(workload: &Workload, object: &WorkloadObject) -> Result<(), WorkloadRefusal> {
    let WorkloadState { deleting, replicas, paused, manual, partition, labs, .. } = &object.state;
    let refuse = |refusal: fn(Workload) -> WorkloadRefusal| Err(refusal(workload.clone()));
    if *deleting {
        return refuse(WorkloadRefusal::Deleting);
    }
    if *replicas == Some(0) {
        return refuse(WorkloadRefusal::NoPods);
    }
    if *paused {
        return refuse(WorkloadRefusal::Paused);
    }
    if *manual {
        return refuse(WorkloadRefusal::Manual);
    }
    if *partition > 0 && replicas.is_some_and(|replicas| *partition >= replicas) {
        return Err(WorkloadRefusal::Partition(workload.clone(), *partition));
    }
    if labs.len() >= MAX_LABS {
        return refuse(WorkloadRefusal::TooMany);
    }
    let Some(spec) = &object.template.spec else { return Ok(()) };
    let shared = [
        ("shareProcessNamespace", spec.share_process_namespace),
        ("hostNetwork", spec.host_network),
        ("hostPID", spec.host_pid),
        ("hostIPC", spec.host_ipc),
    ];
    match shared.into_iter().find(|(_, is_shared)| *is_shared == Some(true)) {
        Some((field, _)) => Err(WorkloadRefusal::Shares(workload.clone(), field)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::WorkloadKind;

    #[test]
    fn a_workload_into_which_a_lab_cannot_go_is_refused_with_the_reason() {
        let eight = [0, 1, 2, 3, 4, 5, 6, 7].map(|at| format!("{{name: lab-000000000{at}}}")).join(", ");
        let told: Vec<_> = [
            ("deployment", "", "", String::new()),
            ("deployment", "deletionTimestamp: '2026-01-01T00:00:00Z'", "", String::new()),
            ("deployment", "", "replicas: 0", String::new()),
            ("deployment", "", "paused: true", String::new()),
            ("daemonset", "", "updateStrategy: {type: OnDelete}", String::new()),
            ("statefulset", "", "replicas: 3, updateStrategy: {rollingUpdate: {partition: 3}}", String::new()),
            ("statefulset", "", "replicas: 3, updateStrategy: {rollingUpdate: {partition: 2}}", String::new()),
            ("deployment", "", "", "shareProcessNamespace: true".to_owned()),
            ("deployment", "", "", "hostPID: true".to_owned()),
            ("deployment", "", "", format!("volumes: [{eight}]")),
        ]
        .into_iter()
        .map(|(name, metadata, spec, pod)| {
            let workload = Workload::parse(&format!("{name}/shop/web")).unwrap();
            let spec = if spec.is_empty() { String::new() } else { format!("{spec}, ") };
            let object = format!(
                "{{metadata: {{{metadata}}}, spec: {{{spec}template: {{spec: {{containers: [{{name: web}}], {pod}}}}}}}}}"
            );
            let kind = WorkloadKind::ALL.into_iter().find(|known| known.as_str() == name).unwrap();
            let object: serde_json::Value = serde_saphyr::from_str(&object).unwrap();
            let object = WorkloadObject::read(kind, &object).unwrap();
            let told = check(&workload, &object);
            told.map_or_else(|refusal| refusal.to_string(), |()| format!("{workload}: allowed"))
        })
        .collect();
        insta::assert_snapshot!(told.join("\n"));
    }
}
