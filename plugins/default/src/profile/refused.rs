use serde_json::Value;
use wasmspawner_sdk::Section;

/// Keys of KubeSpawner that are not supported in an override, each with its replacement.
const REFUSED: [(&[&str], &str); 9] = [
    (
        &["http_timeout", "env_keep", "ssl_alt_names", "consecutive_failure_limit"],
        "is the Hub's own; set it there, for every lab",
    ),
    (
        &["init_containers"],
        "cannot differ by profile; write it as `init_containers` of this policy, for every lab",
    ),
    (
        &["image_pull_secrets"],
        "cannot differ by profile; give the service the Secret in `lab.secrets`, with `pull_secret: true`",
    ),
    (
        &["uid", "gid", "fs_gid", "supplemental_gids"],
        "comes from the identity provider, or from `auth.identities` of the service",
    ),
    (
        &["privileged", "allow_privilege_escalation", "container_security_context", "pod_security_context"],
        "cannot differ by profile; `lab.security` of the service says what every lab may do",
    ),
    (&["scheduler_name", "priority_class_name"], "cannot differ by profile; set it in `lab` of the service"),
    (
        &["namespace", "pod_name_template", "pvc_name_template", "slug_scheme"],
        "cannot differ by profile; see `names` of the service",
    ),
    (
        &[
            "storage_pvc_ensure",
            "storage_capacity",
            "storage_class",
            "storage_access_modes",
            "storage_selector",
            "storage_extra_labels",
        ],
        "cannot differ by profile; a claim that is made with its first lab is `create` of a volume of this policy",
    ),
    (
        &[
            "extra_containers",
            "extra_pod_config",
            "extra_container_config",
            "image_pull_policy",
            "lifecycle_hooks",
            "service_account",
            "node_affinity_preferred",
            "node_affinity_required",
            "pod_affinity_preferred",
            "pod_affinity_required",
            "pod_anti_affinity_preferred",
            "pod_anti_affinity_required",
        ],
        "has no counterpart in a policy; one of your own with the grant `pod-patch` can set it",
    ),
];

/// Reports all keys that would have no effect.
pub(super) fn refuse(entry: &mut Section<'_>) {
    for (key, remedy) in REFUSED.iter().flat_map(|(keys, remedy)| keys.iter().map(move |key| (*key, *remedy)))
    {
        if entry.has(key) {
            entry.optional::<Value>(key);
            entry.problem(key, remedy);
        }
    }
}
