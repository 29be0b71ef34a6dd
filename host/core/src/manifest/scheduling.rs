use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, PodAffinity, PodAffinityTerm, PodAntiAffinity, Toleration as KubernetesToleration,
    WeightedPodAffinityTerm,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::names::labels::{MANAGED_BY_LABEL, MANAGED_BY_VALUE};
use crate::policy::{AffinityPreset, TaintEffect, Toleration, TolerationOperator};

/// Builds a preference for or against nodes that have other labs of any namespace; never a requirement.
pub(super) fn affinity(preset: AffinityPreset) -> Option<Affinity> {
    let preferred = Some(vec![WeightedPodAffinityTerm { weight: 100, pod_affinity_term: beside_labs() }]);
    match preset {
        AffinityPreset::None => None,
        AffinityPreset::Spread => Some(Affinity {
            pod_anti_affinity: Some(PodAntiAffinity {
                preferred_during_scheduling_ignored_during_execution: preferred,
                ..PodAntiAffinity::default()
            }),
            ..Affinity::default()
        }),
        AffinityPreset::Pack => Some(Affinity {
            pod_affinity: Some(PodAffinity {
                preferred_during_scheduling_ignored_during_execution: preferred,
                ..PodAffinity::default()
            }),
            ..Affinity::default()
        }),
    }
}

fn beside_labs() -> PodAffinityTerm {
    let labs = BTreeMap::from([(MANAGED_BY_LABEL.to_owned(), MANAGED_BY_VALUE.to_owned())]);
    PodAffinityTerm {
        topology_key: "kubernetes.io/hostname".to_owned(),
        label_selector: Some(LabelSelector { match_labels: Some(labs), match_expressions: None }),
        // An empty selector means all namespaces. Without one only the lab's own namespace would count.
        namespace_selector: Some(LabelSelector::default()),
        ..PodAffinityTerm::default()
    }
}

pub(super) fn tolerations(tolerations: &[Toleration]) -> Option<Vec<KubernetesToleration>> {
    (!tolerations.is_empty()).then(|| tolerations.iter().map(toleration).collect())
}

fn toleration(toleration: &Toleration) -> KubernetesToleration {
    let operator = match toleration.operator {
        TolerationOperator::Exists => "Exists",
        TolerationOperator::Equal => "Equal",
    };
    let effect = toleration.effect.map(|effect| match effect {
        TaintEffect::NoSchedule => "NoSchedule",
        TaintEffect::PreferNoSchedule => "PreferNoSchedule",
        TaintEffect::NoExecute => "NoExecute",
    });
    KubernetesToleration {
        key: toleration.key.clone(),
        operator: Some(operator.to_owned()),
        value: toleration.value.clone(),
        effect: effect.map(str::to_owned),
        toleration_seconds: toleration.seconds,
    }
}
