//! The rules of the pod configuration, with one test each.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use wasmspawner_core::manifest::{KINDS_DELETED_BY_LABEL, LabObject, service_selector, spawn_selector};
use wasmspawner_core::names::lab::LabKey;
use wasmspawner_core::names::labels::{SERVERNAME_ANNOTATION, USERNAME_ANNOTATION};
use wasmspawner_core::names::{LabelValue, ServerName, Username};
use wasmspawner_core::policy::compose::Source;

use super::case::{Case, TOKEN};

const LAYERS: &str = "
identity: {username: ada, uid: 1000, gid: 1000}
env: {A: request, B: request, C: request, D: request, CPU_LIMIT: request, MEM_LIMIT: request}
lab: {image: 'lab:1', env: {D: site}}
answers:
  - policy: one
    customization:
      resources: {memory_limit_bytes: 7, cpu_limit_millis: 1500}
      env:
        - {name: B, value: {literal: one}}
        - {name: C, value: {literal: one}}
        - {name: D, value: {literal: one}}
        - {name: CPU_LIMIT, value: {literal: one}}
  - policy: two
    customization: {env: [{name: C, value: {literal: two}}]}
";

/// A case for the user Ada with defaults and the keys in `more`.
fn ada(more: &str) -> Case {
    Case::read(&format!("identity: {{username: ada, uid: 1000, gid: 1000}}\n{more}"))
}

fn spec(pod: &Pod) -> &PodSpec {
    pod.spec.as_ref().unwrap()
}

fn lab(pod: &Pod) -> &Container {
    spec(pod).containers.iter().find(|container| container.name == "notebook").unwrap()
}

#[test]
fn later_layers_of_the_environment_win() {
    let env = Case::read(LAYERS).objects().env.data.unwrap();
    for (name, value) in [
        ("A", "request"),
        ("B", "one"),
        ("C", "two"),
        ("D", "site"),
        ("CPU_LIMIT", "one"),
        ("MEM_LIMIT", "7"),
    ] {
        assert_eq!(env[name], value, "{name}");
    }
}

#[test]
fn provenance_names_the_source_of_each_value_and_the_conflicts() {
    let provenance = Case::read(LAYERS).compose().unwrap().provenance;
    let policy = |name: &str| Source::Policy(name.to_owned());
    for (field, source) in [
        ("env.A", Source::Request),
        ("env.B", policy("one")),
        ("env.C", policy("two")),
        ("env.D", Source::Configuration),
        ("env.MEM_LIMIT", Source::Service),
        ("resources.cpu_limit_millis", policy("one")),
        ("image", Source::Configuration),
    ] {
        assert_eq!(provenance.sources.get(field), Some(&source), "{field}");
    }
    let conflicts: Vec<String> = provenance.conflicts.iter().map(ToString::to_string).collect();
    assert_eq!(
        conflicts,
        [
            "env.C: policy `two` replaces the value of policy `one`",
            "env.D: configuration replaces the value of policy `one`"
        ]
    );
}

#[test]
fn provenance_names_the_policy_of_each_quota() {
    let provenance =
        Case::read(include_str!("../golden/manifest/quotas.case.yaml")).compose().unwrap().provenance;
    for (field, policy) in [
        ("cpu", "quota-1"),
        ("memory", "quota-0"),
        ("storage", "quota-1"),
        ("pods", "quota-0"),
        ("nvidia.com/gpu", "quota-1"),
    ] {
        let source = Source::Policy(policy.to_owned());
        assert_eq!(provenance.sources.get(&format!("quota.{field}")), Some(&source), "{field}");
    }
}

/// Columns: the identity provider's answer, a policy's answer, and the quota with its source.
#[test]
fn the_stricter_of_the_identity_provider_s_quota_and_a_policy_s_holds() {
    let policy = Source::Policy("quota-0".to_owned());
    for (given, policies, expected, source) in [
        ("{cpu_millis: 9000, spawn: true}", "[]", Some(9000), Some(&Source::IdentityProvider)),
        ("{cpu_millis: 9000, spawn: true}", "[{labs: 1}]", Some(9000), Some(&Source::IdentityProvider)),
        (
            "{cpu_millis: 9000, spawn: true}",
            "[{cpu_millis: 16000}]",
            Some(9000),
            Some(&Source::IdentityProvider),
        ),
        ("{cpu_millis: 9000, spawn: true}", "[{cpu_millis: 8000}]", Some(8000), Some(&policy)),
        ("{memory_bytes: 1, spawn: true}", "[]", None, None),
        ("null", "[{cpu_millis: 8000}]", Some(8000), Some(&policy)),
    ] {
        let identity = format!("{{username: ada, uid: 1, gid: 1, quota: {given}}}");
        let case = format!("{{identity: {identity}, lab: {{image: i}}, quotas: {policies}}}");
        let spawn = Case::read(&case).compose().unwrap();
        assert_eq!(spawn.quota.cpu_millis, expected, "{case}");
        assert_eq!(spawn.provenance.sources.get("quota.cpu"), source, "{case}");
    }
}

#[test]
fn secret_values_are_in_secret_objects_only() {
    let case = ada("env: {JUPYTERHUB_API_TOKEN: hub-secret, token: user-secret}
lab:
  image: lab:1
  secrets: [{name: site, key: k}, {name: pull, key: .dockerconfigjson, pull_secret: true}]
secrets: {site: {k: site-secret}, pull: {.dockerconfigjson: pull-secret}}
answers: [{policy: p, customization: {env: [{name: DB_PASSWORD, value: {literal: policy-secret}}]}}]");
    let objects = case.objects();
    let secrets = ["hub-secret", "user-secret", "site-secret", "pull-secret", "policy-secret", TOKEN];
    for object in objects.in_order().filter(|object| !matches!(object, LabObject::Secret(_))) {
        let text = object.to_value().to_string();
        assert_eq!(secrets.iter().find(|secret| text.contains(**secret)), None, "{object:?}");
    }
    let shown = format!("{objects:?} {:?}", objects.redacted());
    assert_eq!(secrets.iter().find(|secret| shown.contains(**secret)), None);

    let data = objects.secret.data.unwrap();
    let text = |key: &str| String::from_utf8(data[key].0.clone()).unwrap();
    assert_eq!(text("token"), TOKEN);
    assert_eq!(text("k"), "site-secret");
    assert_eq!(text("env.JUPYTERHUB_API_TOKEN"), "hub-secret");
    assert_eq!(text("env.token"), "user-secret", "a variable does not replace the user's token");
    assert_eq!(text("env.DB_PASSWORD"), "policy-secret");
    assert!(!data.contains_key(".dockerconfigjson"), "the registry credential is not the user's to read");
    let pull = objects.pull_secret.unwrap();
    assert_eq!(pull.type_.as_deref(), Some("kubernetes.io/dockerconfigjson"));
    let named = spec(&objects.pod).image_pull_secrets.clone().unwrap();
    assert_eq!(Some(&named[0].name), pull.metadata.name.as_ref());
}

#[test]
fn the_redacted_environment_hides_credentials() {
    let spawn = ada("env: {JUPYTERHUB_API_TOKEN: x, LANG: C}\nlab: {image: 'lab:1'}").compose().unwrap();
    let shown = spawn.redacted_env();
    assert_eq!(shown["JUPYTERHUB_API_TOKEN"], "<redacted>");
    assert_eq!(shown["LANG"], "C");
    assert!(!format!("{spawn:?}").contains(TOKEN));
}

#[test]
fn only_the_token_and_site_secrets_are_mounted_as_files() {
    let objects = ada("env: {JUPYTERHUB_API_TOKEN: x}\nlab: {image: 'lab:1'}").objects();
    let volumes = spec(&objects.pod).volumes.clone().unwrap();
    let secret = volumes.iter().find_map(|volume| volume.secret.clone()).unwrap();
    let files: Vec<_> = secret.items.unwrap().into_iter().map(|item| item.path).collect();
    assert_eq!(files, ["token"]);
}

#[test]
fn the_pod_runs_as_the_user_with_their_groups() {
    let pod = Case::read(include_str!("../golden/manifest/many-groups.case.yaml")).objects().pod;
    let context = spec(&pod).security_context.clone().unwrap();
    assert_eq!((context.run_as_user, context.run_as_group), (Some(1000), Some(100)));
    assert_eq!(context.supplemental_groups, Some(vec![2001, 2002, 2003]));
    assert_eq!(context.run_as_non_root, Some(true));
}

#[test]
fn values_of_users_are_not_expanded() {
    let case = ada("env: {GREETING: '{username} $(JUPYTERHUB_API_TOKEN)'}
lab: {image: 'lab:1', env: {SITE: 'for {username}'}}
answers:
  - policy: p
    customization:
      env: [{name: OPTION, value: {literal: '{unescaped_username} $(X)'}}]
      annotations: [{name: note, value: '{username}'}]
      init_containers: [{name: i, image: i, env: [{name: A, value: {literal: '$(B) {username}'}}]}]");
    let objects = case.objects();
    let env = objects.env.data.unwrap();
    assert_eq!(env["GREETING"], "{username} $(JUPYTERHUB_API_TOKEN)");
    assert_eq!(env["OPTION"], "{unescaped_username} $(X)");
    assert_eq!(env["SITE"], "for ada");
    assert_eq!(objects.pod.metadata.annotations.as_ref().unwrap()["note"], "{username}");
    let literals =
        |container: &Container| container.env.iter().flatten().filter(|var| var.value.is_some()).count();
    assert_eq!(literals(lab(&objects.pod)), 0, "Kubernetes expands literals of the pod");
    let init = &spec(&objects.pod).init_containers.as_ref().unwrap()[0];
    assert_eq!(init.env.as_ref().unwrap().last().unwrap().value.as_deref(), Some("$$(B) {username}"));
}

#[test]
fn variables_of_the_operator_refer_to_others_and_those_of_users_do_not() {
    let case = ada("env: {JUPYTERHUB_USER: ada, JUPYTERHUB_API_TOKEN: x, OF_REQUEST: '$(JUPYTERHUB_USER)'}
options: {typed: '$(JUPYTERHUB_USER)'}
lab: {image: 'lab:1', env: {BUCKET: 's3://b/$(JUPYTERHUB_USER)', LEAK: '$(JUPYTERHUB_API_TOKEN)$(FROM_SECRET)'}}
answers:
  - policy: site
    grants: {secrets: [s]}
    customization:
      env:
        - {name: SCRATCH, value: {literal: '$(BUCKET)/scratch $$(BUCKET)'}}
        - {name: TYPED, value: {literal: '$(BUCKET) $(JUPYTERHUB_USER)'}}
        - {name: FROM_SECRET, value: {secret_ref: {name: s, key: k}}}
");
    let objects = case.objects();
    let env = objects.env.data.unwrap();
    assert_eq!(env["BUCKET"], "s3://b/ada");
    assert_eq!(env["SCRATCH"], "s3://b/ada/scratch $(BUCKET)");
    assert_eq!(env["TYPED"], "s3://b/ada $(JUPYTERHUB_USER)", "the text of the user is in it");
    assert_eq!(env["OF_REQUEST"], "$(JUPYTERHUB_USER)");
    assert_eq!(env["LEAK"], "$(JUPYTERHUB_API_TOKEN)$(FROM_SECRET)");
}

#[test]
fn the_name_of_the_user_is_known_although_the_hub_s_variables_are_secret() {
    for more in [
        "lab: {image: 'lab:1', request_env_is_secret: true, env: {WHO: '$(JUPYTERHUB_USER)'}}\nenv: {JUPYTERHUB_USER: ada}",
        "lab: {image: 'lab:1', env: {WHO: '$(JUPYTERHUB_USER)'}}",
    ] {
        assert_eq!(ada(more).objects().env.data.unwrap()["WHO"], "ada", "{more}");
    }
}

/// A container that creates a home as root needs to know the owner of the home.
#[test]
fn init_containers_know_the_lab_s_user() {
    let objects = Case::read(
        "identity: {username: ada, uid: 1000, gid: 1001, groups: [{name: staff, gid: 50}, {name: web}, {name: lab, gid: 51}]}
lab: {image: 'lab:1'}
answers: [{policy: p, customization: {init_containers: [
  {name: i, image: i, env: [{name: NB_HOME, value: {literal: /homes/ada}}]}]}}]",
    )
    .objects();
    let init = &spec(&objects.pod).init_containers.as_ref().unwrap()[0];
    let env: BTreeMap<_, _> =
        init.env.iter().flatten().map(|var| (var.name.as_str(), var.value.as_deref().unwrap())).collect();
    let expected = [
        ("NB_GID", "1001"),
        ("NB_HOME", "/homes/ada"),
        ("NB_SUPPLEMENTAL_GIDS", "50 51"),
        ("NB_UID", "1000"),
        ("NB_USER", "ada"),
    ];
    assert_eq!(env, BTreeMap::from(expected));
    let mounted: Vec<_> =
        init.volume_mounts.iter().flatten().map(|mount| mount.mount_path.as_str()).collect();
    assert_eq!(mounted, ["/etc/passwd", "/etc/group"]);
}

/// The files of the site are those of the lab, and not of a container that runs as root before it.
#[test]
fn a_lab_has_the_files_of_the_site() {
    let objects = ada("lab: {image: 'lab:1', files: {/opt/site/a.yml: 'a: 1', /opt/b: b}}
answers: [{policy: p, customization: {init_containers: [{name: i, image: i}]}}]")
    .objects();
    let data = objects.nss.data.clone().unwrap();
    let found = |container: &Container| -> Vec<(String, String)> {
        let mounts = container.volume_mounts.iter().flatten();
        let files = mounts.filter(|mount| mount.mount_path.starts_with("/opt"));
        files
            .map(|mount| {
                assert_eq!(mount.read_only, Some(true));
                (mount.mount_path.clone(), data[mount.sub_path.as_ref().unwrap()].clone())
            })
            .collect()
    };
    let expected =
        [("/opt/b", "b"), ("/opt/site/a.yml", "a: 1")].map(|(path, text)| (path.into(), text.into()));
    assert_eq!(found(lab(&objects.pod)), expected);
    assert_eq!(found(&spec(&objects.pod).init_containers.as_ref().unwrap()[0]), []);
}

#[test]
fn a_policy_mounts_nothing_in_place_of_a_file_of_the_site() {
    let case = ada("lab: {image: 'lab:1', files: {/opt/site/a.yml: 'a: 1'}}
answers: [{policy: p, customization: {
  volumes: [{name: v, source: {empty_dir: {}}}], mounts: [{volume: v, path: /opt/site/a.yml}]}}]");
    let refused = case.compose().unwrap_err().to_string();
    assert!(refused.contains("lab.files"), "{refused}");
}

/// Argo CD shows a namespace that stays with the labs in it. Nothing in it names one of the labs.
#[test]
fn a_retained_namespace_has_the_labels_of_argo_cd() {
    let metadata = |lab: &str| {
        let objects = ada(&format!("namespaces: retain\nlab: {{image: 'lab:1'{lab}}}")).objects();
        let namespace = objects.in_order().find_map(|object| match object {
            LabObject::RetainedNamespace(namespace) => Some(namespace.metadata),
            _ => None,
        });
        namespace.unwrap()
    };
    let with = metadata("");
    assert_eq!(with.labels.as_ref().unwrap()["argocd.argoproj.io/instance"], "nublado-users");
    assert_eq!(with.annotations.as_ref().unwrap()["argocd.argoproj.io/sync-options"], "Prune=false");
    assert_eq!(with.annotations.unwrap().len(), 2);
    let without = metadata(", argo_cd: null");
    assert!(without.annotations.is_none());
    assert!(without.labels.unwrap().keys().all(|key| !key.starts_with("argocd")));
}

#[test]
fn containers_until_provisioned_run_only_for_new_users() {
    let case = |provisioned: bool| {
        ada(&format!(
            "provisioned: {provisioned}\nlab: {{image: 'lab:1'}}\nanswers: [{{policy: p, customization: {{init_containers: [
                {{name: once, image: i, run: until_provisioned}}, {{name: ever, image: i}}]}}}}]"
        ))
    };
    let names = |case: Case| -> Vec<String> {
        let pod = case.objects().pod;
        spec(&pod).init_containers.iter().flatten().map(|container| container.name.clone()).collect()
    };
    assert_eq!(names(case(false)), ["once", "ever"]);
    assert_eq!(names(case(true)), ["ever"]);
}

#[test]
fn a_site_lifts_single_parts_of_the_security_baseline() {
    let pod = ada("lab: {image: 'lab:1', security: {privilege_escalation: true, unconfined_seccomp: true}}")
        .objects()
        .pod;
    let context = lab(&pod).security_context.clone().unwrap();
    assert_eq!(context.allow_privilege_escalation, Some(true));
    assert_eq!(context.capabilities.unwrap().drop, Some(vec!["ALL".to_owned()]));
    assert_eq!(spec(&pod).security_context.clone().unwrap().seccomp_profile.unwrap().type_, "Unconfined");
    assert_eq!(spec(&pod).automount_service_account_token, Some(false));
}

#[test]
fn a_lab_under_an_existing_account_has_none_of_its_own() {
    let of_policy = "answers: [{policy: p, grants: {service-accounts: [writer]},
        customization: {pod_patch: '{\"spec\":{\"serviceAccountName\":\"writer\"}}'}}]";
    for (case, account, own) in [
        ("lab: {image: i}".to_owned(), "nb-ada", true),
        ("lab: {image: i, service_account: reader}".to_owned(), "reader", false),
        (format!("lab: {{image: i}}\n{of_policy}"), "writer", false),
        (format!("lab: {{image: i, service_account: reader}}\n{of_policy}"), "writer", false),
    ] {
        let objects = ada(&case).objects();
        assert_eq!(spec(&objects.pod).service_account_name.as_deref(), Some(account), "{case}");
        assert_eq!(spec(&objects.pod).automount_service_account_token, Some(false), "{case}");
        assert_eq!(objects.service_account.is_some(), own, "{case}");
    }
    let rejected = ada("lab: {image: i, service_account: nb-ada}").compose().unwrap_err();
    assert!(rejected.to_string().contains("the lab's own account"), "{rejected}");
}

/// Returns the lab that an object belongs to, according to its annotations.
fn lab_key(metadata: &ObjectMeta) -> Option<LabKey> {
    let annotations = metadata.annotations.as_ref()?;
    let user = Username::parse(annotations.get(USERNAME_ANNOTATION)?.as_str()).ok()?;
    let server = ServerName::parse(annotations.get(SERVERNAME_ANNOTATION)?.as_str()).ok()?;
    Some(LabKey::new(user, server))
}

#[test]
fn the_labels_of_every_object_match_the_selector_of_its_spawn() {
    let objects = Case::read(include_str!("../golden/manifest/named-server.case.yaml")).objects();
    let whose = lab_key(&objects.pod.metadata).unwrap();
    assert_eq!((whose.user.as_str(), whose.server.as_str()), ("ada", "GPU Lab"));
    let instance = LabelValue::parse("test").unwrap();
    let spawn = LabelValue::parse("5d3c0f5e-0000-4000-8000-000000000002").unwrap();
    let selector = spawn_selector(&instance, &spawn);
    assert!(selector.starts_with(&service_selector(&instance)), "{selector}");
    for object in objects.in_order() {
        let labels = object.metadata().labels.clone().unwrap();
        for wanted in selector.split(',') {
            let (key, value) = wanted.split_once('=').unwrap();
            assert_eq!(labels.get(key).map(String::as_str), Some(value), "{object:?}: {key}");
        }
        assert_eq!(lab_key(object.metadata()), Some(whose.clone()), "{object:?}");
    }
}

#[test]
fn claims_do_not_carry_the_labels_of_one_lab() {
    let objects = Case::read(include_str!("../golden/manifest/volumes.case.yaml")).objects();
    let key = LabKey::default_server(Username::parse("ada").unwrap());
    assert_eq!(lab_key(&objects.pod.metadata), Some(key));
    assert_eq!(objects.claims.len(), 2);
    for claim in objects.rest().filter(|object| object.kind() == "PersistentVolumeClaim") {
        assert_eq!(lab_key(claim.metadata()), None, "{claim:?} is not one lab's");
    }
}

#[test]
fn objects_are_created_with_namespace_first_and_pod_last() {
    let objects = Case::read(include_str!("../golden/manifest/quotas.case.yaml")).objects();
    let kinds: Vec<&str> = objects.in_order().map(|object| object.kind()).collect();
    assert_eq!(
        kinds,
        [
            "Namespace",
            "ServiceAccount",
            "ConfigMap",
            "ConfigMap",
            "Secret",
            "ResourceQuota",
            "LimitRange",
            "NetworkPolicy",
            "Pod"
        ]
    );
}

#[test]
fn equal_labs_have_equal_digests_and_different_labs_do_not() {
    let digest = |case: &str| {
        let namespace = ada(case).objects().namespace.unwrap();
        namespace.metadata().annotations.as_ref().unwrap()["wasmspawner.io/spec-digest"].clone()
    };
    assert_eq!(digest("lab: {image: 'lab:1'}"), digest("lab: {image: 'lab:1'}"));
    assert_ne!(digest("lab: {image: 'lab:1'}"), digest("lab: {image: 'lab:2'}"));
    assert_ne!(digest("lab: {image: 'lab:1'}"), digest("lab: {image: 'lab:1', env: {A: b}}"));
}

/// Without this test, an object of a new kind could be created and never deleted, or not be permitted at all.
#[test]
fn every_kind_of_object_is_deleted_and_permitted() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut kinds = BTreeSet::new();
    for entry in std::fs::read_dir(folder.join("tests/golden/manifest")).unwrap() {
        let path = entry.unwrap().path();
        if !path.to_string_lossy().ends_with(".case.yaml") {
            continue;
        }
        let objects = Case::read(&std::fs::read_to_string(&path).unwrap()).objects();
        kinds.extend(objects.in_order().map(|object| object.kind()));
    }
    let deleted: BTreeSet<&str> = KINDS_DELETED_BY_LABEL.iter().map(|kind| kind.kind).collect();
    kinds.retain(|kind| !matches!(*kind, "Namespace" | "Pod" | "PersistentVolumeClaim"));
    assert_eq!(kinds, deleted, "left: kinds of the golden files; right: KINDS_DELETED_BY_LABEL");

    let has = |rule: &serde_json::Value, key: &str, value: &str| {
        rule[key].as_array().unwrap().iter().any(|item| item == value)
    };
    for file in ["cluster-wide.yaml", "one-namespace.yaml"] {
        let permissions = folder.join("../../deploy/permissions").join(file);
        let permissions = std::fs::read_to_string(permissions).unwrap();
        let role: serde_json::Value =
            serde_saphyr::from_str(permissions.split("\n---\n").next().unwrap()).unwrap();
        for kind in KINDS_DELETED_BY_LABEL {
            let permitted = role["rules"].as_array().unwrap().iter().any(|rule| {
                has(rule, "apiGroups", kind.group)
                    && has(rule, "resources", kind.plural)
                    && ["create", "patch", "deletecollection"].iter().all(|verb| has(rule, "verbs", verb))
            });
            // In the one namespace of all labs, the operator sets such limits.
            let needed = file == "cluster-wide.yaml" || !kind.limits_namespace();
            assert_eq!(permitted, needed, "{file}: create, patch and deletecollection of {}", kind.plural);
        }
    }
    let policy = std::fs::read_to_string(folder.join("../../deploy/admission-policy.yaml")).unwrap();
    for kind in KINDS_DELETED_BY_LABEL {
        let named = format!("'{}/{}'", kind.group, kind.plural);
        assert!(policy.contains(&named), "deploy/admission-policy.yaml: {named}");
    }
}

/// Kubernetes then refuses any pod in the namespace that has more privileges than the lab.
#[test]
fn a_lab_s_namespace_enforces_the_strictest_level_that_its_pod_meets() {
    for (lab, grants, asked, expected) in [
        ("", "{}", "{}", "restricted"),
        ("", "{}", "{volumes: [{name: v, source: {nfs: {server: s, path: /x}}}]}", "baseline"),
        (
            "",
            "{run-as-root-init: true}",
            "{init_containers: [{name: a, image: i, profile: baseline}]}",
            "baseline",
        ),
        (
            "",
            "{privileged-init: true}",
            "{init_containers: [{name: a, image: i, profile: privileged}]}",
            "privileged",
        ),
        ("", "{host-path: [/data]}", "{volumes: [{name: v, source: {host_path: /data}}]}", "privileged"),
        (", security: {privilege_escalation: true}", "{}", "{}", "baseline"),
        (", security: {default_capabilities: true}", "{}", "{}", "baseline"),
        (", security: {unconfined_seccomp: true}", "{}", "{}", "privileged"),
    ] {
        let case = format!(
            "{{identity: {{username: ada, uid: 1000, gid: 1000}}, lab: {{image: 'lab:1'{lab}}},
              answers: [{{policy: p, grants: {grants}, customization: {asked}}}]}}"
        );
        let spawn = Case::read(&case).compose().unwrap_or_else(|error| panic!("{case}: {error:?}"));
        let objects = wasmspawner_core::manifest::build(&spawn);
        let labels = objects.first().unwrap().metadata().labels.clone().unwrap();
        assert_eq!(labels["pod-security.kubernetes.io/enforce"], expected, "{case}");
    }
}
