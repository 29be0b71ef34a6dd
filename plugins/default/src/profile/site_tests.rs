//! KubeSpawner's settings of every lab.

use serde_json::{Value, json};
use wasmspawner_sdk::User;
use wasmspawner_sdk::pod::{ClaimReclaim, Customization, SecurityProfile, VolumeSource};
use wasmspawner_sdk::testing::TestKit;

use crate::DefaultPolicy;

fn lab(config: &Value, options: &Value) -> Customization {
    TestKit::<DefaultPolicy>::new(config).unwrap().customize(&User::named("ada"), options).unwrap()
}

fn problems(config: &Value) -> Vec<String> {
    let found = TestKit::<DefaultPolicy>::new(config).err().unwrap_or_default();
    found.into_iter().map(|problem| format!("{}: {}", problem.field, problem.message)).collect()
}

fn names<T>(of: &[T], name: fn(&T) -> &str) -> Vec<&str> {
    of.iter().map(name).collect()
}

/// A site with homes in claims of their own.
fn site() -> Value {
    json!({
        "kubespawner": {
            "image": "lab:1",
            "cmd": ["jupyterhub-singleuser"],
            "mem_limit": "1G",
            "environment": {"A": "{username}"},
            "storage_pvc_ensure": true,
            "storage_capacity": "10Gi",
            "storage_class": "fast",
            "storage_access_modes": ["ReadWriteOnce"],
            "volumes": [{"name": "home", "persistentVolumeClaim": {"claimName": "{pvc_name}"}}],
            "volume_mounts": [{"name": "home", "mountPath": "/home/jovyan"}]
        },
        "profile_list": [
            {"display_name": "Plain"},
            {"display_name": "Map", "kubespawner_override": {
                "cmd": ["other"], "mem_limit": null,
                "volumes": {"shm": {"name": "shm", "emptyDir": {"medium": "Memory"}}},
                "volume_mounts": {"shm": {"name": "shm", "mountPath": "/dev/shm"}}
            }},
            {"display_name": "List", "kubespawner_override": {
                "volumes": [
                    {"name": "home", "persistentVolumeClaim": {"claimName": "{pvc_name}"}},
                    {"name": "shm", "emptyDir": {}}
                ]
            }}
        ]
    })
}

#[test]
fn settings_of_every_lab_come_before_those_of_a_profile() {
    let plain = lab(&site(), &json!({"profile": "plain"}));
    assert_eq!(plain.image.unwrap().reference, "lab:1");
    assert_eq!(plain.args.unwrap(), ["jupyterhub-singleuser"]);
    assert_eq!(plain.resources.unwrap().memory_limit_bytes, Some(1 << 30));
    let map = lab(&site(), &json!({"profile": "map"}));
    assert_eq!(map.args.unwrap(), ["other"]);
    assert_eq!(map.resources.unwrap().memory_limit_bytes, None);
    let mut alone = site();
    alone.as_object_mut().unwrap().remove("profile_list");
    assert_eq!(lab(&alone, &json!({})).image.unwrap().reference, "lab:1");
}

#[test]
fn a_map_of_volumes_is_added_and_a_list_replaces() {
    for (profile, volumes, mounts) in [
        ("plain", vec!["home"], vec!["/home/jovyan"]),
        ("map", vec!["home", "shm"], vec!["/home/jovyan", "/dev/shm"]),
        ("list", vec!["home", "shm"], vec!["/home/jovyan"]),
    ] {
        let lab = lab(&site(), &json!({"profile": profile}));
        assert_eq!(names(&lab.volumes, |volume| &volume.name), volumes, "{profile}");
        assert_eq!(names(&lab.mounts, |mount| &mount.path), mounts, "{profile}");
        let VolumeSource::Claim(claim) = &lab.volumes[0].source else { panic!("{profile}: a claim") };
        let made = claim.create.as_ref().unwrap();
        assert_eq!(
            (made.storage_bytes, made.storage_class.as_deref()),
            (10 << 30, Some("fast")),
            "{profile}"
        );
        assert_eq!(made.reclaim, ClaimReclaim::Delete, "{profile}");
    }
}

#[test]
fn a_profile_without_the_home_is_noticed() {
    let mut config = site();
    config["profile_list"] = json!([{"display_name": "Drops", "kubespawner_override": {
        "volumes": [{"name": "shm", "emptyDir": {}}],
        "volume_mounts": [{"name": "shm", "mountPath": "/dev/shm"}]
    }}]);
    let ((), warnings) = wasmspawner_sdk::config::check(&config.to_string(), |config| {
        drop(<DefaultPolicy as wasmspawner_sdk::Policy>::from_config(config));
    })
    .unwrap();
    assert!(warnings[0].contains("leaves out the volume `home`"), "{warnings:?}");
    config["profile_list"][0]["kubespawner_override"].as_object_mut().unwrap().remove("volume_mounts");
    assert!(problems(&config)[0].contains("there is no volume `home` for the mount at /home/jovyan"));
}

#[test]
fn init_containers_are_those_of_pods() {
    let container = json!({
        "name": "own",
        "image": "busybox:1",
        "command": ["sh", "-c", "chown {uid} /home"],
        "env": [{"name": "WHO", "value": "{username}"}, {"name": "PW", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
        "resources": {"limits": {"memory": "64Mi"}},
        "volumeMounts": [{"name": "home", "mountPath": "/home", "subPath": "{username}"}]
    });
    let with = |context: Value| {
        let mut config = site();
        let mut container = container.clone();
        container["securityContext"] = context;
        config["kubespawner"]["init_containers"] = json!([container]);
        lab(&config, &json!({})).init_containers.remove(0)
    };
    for (context, profile) in [
        (json!({"runAsUser": 0}), SecurityProfile::Baseline),
        (json!({"privileged": true, "runAsUser": 0}), SecurityProfile::Privileged),
        (json!({"runAsUser": 1000, "runAsGroup": 1000}), SecurityProfile::Restricted),
        (json!({}), SecurityProfile::Restricted),
    ] {
        assert_eq!(with(context.clone()).profile, profile, "{context}");
    }
    let init = with(json!(null));
    assert_eq!(init.mounts[0].sub_path.as_deref(), Some("{username}"), "the service's part");
    assert_eq!(init.resources.unwrap().memory_limit_bytes, Some(64 << 20));
    let wasmspawner_sdk::pod::EnvValue::Literal(who) = &init.env[0].value else { panic!("a text") };
    assert_eq!(who, "ada");
}

#[test]
fn settings_without_a_field_become_a_patch() {
    let mut config = site();
    config["kubespawner"]["lifecycle_hooks"] =
        json!({"postStart": {"exec": {"command": ["echo", "{username}"]}}});
    config["profile_list"][0]["kubespawner_override"] = json!({"image_pull_policy": "Always"});
    let patch = |config: &Value, profile: &str| -> Value {
        let lab = lab(config, &json!({"profile": profile}));
        lab.pod_patch.map_or(Value::Null, |patch| serde_json::from_str(&patch).unwrap())
    };
    let hook = json!({"postStart": {"exec": {"command": ["echo", "ada"]}}});
    let container = json!({"name": "notebook", "lifecycle": hook, "imagePullPolicy": "Always"});
    assert_eq!(patch(&config, "plain"), json!({"spec": {"containers": [container]}}));
    assert_eq!(
        patch(&config, "map"),
        json!({"spec": {"containers": [{"name": "notebook", "lifecycle": hook}]}})
    );
    config["container"] = json!("lab");
    assert_eq!(patch(&config, "map")["spec"]["containers"][0]["name"], "lab");
    assert_eq!(patch(&site(), "map"), Value::Null);
}

#[test]
fn the_claim_of_a_site_is_checked() {
    for (settings, expected) in [
        (json!({"storage_pvc_ensure": true}), "/kubespawner/storage_capacity: is missing"),
        (
            json!({"storage_access_modes": ["RWO"]}),
            "/kubespawner/storage_access_modes: must be ReadWriteOnce",
        ),
        (
            json!({"storage_selector": {"matchExpressions": []}}),
            "/kubespawner/storage_selector/matchExpressions: is not",
        ),
        (
            json!({"volume_mounts": [{"name": "x", "mountPath": "/x"}]}),
            "/kubespawner/volume_mounts: there is no volume `x`",
        ),
        (
            json!({"lifecycle_hooks": {"preStop": {"exec": {"command": ["{usrname}"]}}}}),
            "/kubespawner/lifecycle_hooks: `{usrname}`",
        ),
    ] {
        let found = problems(&json!({"kubespawner": settings}));
        assert!(found.iter().any(|problem| problem.starts_with(expected)), "{expected}\n{found:#?}");
    }
}
