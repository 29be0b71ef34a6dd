use serde_json::Value;
use wasmspawner_sdk::Section;

/// Keys of KubeSpawner that are not supported in an override, each with its replacement.
const REFUSED: [(&[&str], &str); 7] = [
    (
        &["http_timeout", "env_keep", "ssl_alt_names", "consecutive_failure_limit"],
        "is the Hub's own; set it there, for every lab",
    ),
    (&["image_spec"], "is called `image`"),
    (
        &["allowed_groups", "groups"],
        "belongs to the profile, the option or the choice, beside `kubespawner_override`",
    ),
    (
        &["image_pull_secrets"],
        "cannot be set here; give the service the Secret in `lab.secrets`, with `pull_secret: true`",
    ),
    (
        &["gid", "fs_gid", "supplemental_gids"],
        "comes from the identity provider, or from `auth.identities` of the service",
    ),
    (
        &["allow_privilege_escalation", "container_security_context", "pod_security_context"],
        "cannot be set here; `lab.security` of the service says what every lab may do",
    ),
    (
        &["namespace", "pod_name_template", "pvc_name_template", "slug_scheme"],
        "cannot be set here; see `names` of the service",
    ),
];

/// Keys of KubeSpawner with which a lab's claim is made; they are for the whole site.
const CLAIM: [&str; 8] = [
    "delete_pvc",
    "storage_access_modes",
    "storage_capacity",
    "storage_class",
    "storage_extra_annotations",
    "storage_extra_labels",
    "storage_pvc_ensure",
    "storage_selector",
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

/// Settings of a lab that sites write beside the key to which they belong.
const OF_AN_OVERRIDE: [&str; 10] = [
    "cpu_guarantee",
    "cpu_limit",
    "default_url",
    "environment",
    "image",
    "image_spec",
    "mem_guarantee",
    "mem_limit",
    "node_selector",
    "service_account",
];

/// Reports settings of a lab in a profile, an option or a choice.
pub(super) fn refuse_beside_override(entry: &mut Section<'_>) {
    refuse_misplaced(entry, &OF_AN_OVERRIDE, "belongs in `kubespawner_override`");
}

/// Reports settings of KubeSpawner among the keys of the policy.
pub(super) fn refuse_beside_settings(config: &mut Section<'_>) {
    let own = |key: &&str| *key == "node_selector";
    let settings: Vec<_> = OF_AN_OVERRIDE.into_iter().filter(|key| !own(key)).collect();
    refuse_misplaced(
        config,
        &settings,
        "belongs in `kubespawner`, for all labs, or in `kubespawner_override` of a profile",
    );
    let remedy = "belongs in a profile; `allow_groups` of `authorize` says who may start labs at all";
    refuse_misplaced(config, &["allowed_groups"], remedy);
}

fn refuse_misplaced(entry: &mut Section<'_>, keys: &[&'static str], remedy: &str) {
    for key in keys.iter().copied().filter(|key| entry.has(key)).collect::<Vec<_>>() {
        entry.optional::<Value>(key);
        entry.problem(key, remedy);
    }
}

/// Reports the keys of a claim where an override has them.
pub(super) fn refuse_claim(entry: &mut Section<'_>) {
    for key in CLAIM.into_iter().filter(|key| entry.has(key)).collect::<Vec<_>>() {
        entry.optional::<Value>(key);
        entry.problem(
            key,
            "cannot differ by profile; write it in `kubespawner` of this policy, for every lab",
        );
    }
}
