//! The hooks `form`, `quota`, `authorize` and `build-pod`.

use serde_json::{Value, json};
use wasmspawner_sdk::form::FieldKind;
use wasmspawner_sdk::pod::{Customization, EnvValue, InitRun, SecurityProfile, VolumeSource};
use wasmspawner_sdk::{Error, User, UserQuota, Verdict};

use super::{ada, example, site, with_quota};

fn sizes(user: &User) -> (Vec<(String, String)>, Option<String>) {
    let field = site(&example()).fields(user).unwrap().remove(0);
    let FieldKind::Radio(input) = field.kind else { panic!("sizes are cards") };
    let choices = input.choices.into_iter().map(|choice| (choice.value, choice.label));
    (choices.collect(), input.default)
}

fn pod(options: &Value) -> Customization {
    site(&example()).customize(&ada(), options).unwrap()
}

fn variable(pod: &Customization, name: &str) -> Option<EnvValue> {
    let mut found = pod.env.iter().filter(|variable| variable.name == name);
    let value = found.next().map(|variable| variable.value.clone());
    assert!(found.next().is_none(), "{name} is there twice");
    value
}

fn text(pod: &Customization, name: &str) -> Option<String> {
    match variable(pod, name)? {
        EnvValue::Literal(text) => Some(text),
        _ => panic!("{name} is no text"),
    }
}

#[test]
fn the_form_has_the_fields_of_nublado_without_the_image() {
    let fields = site(&example()).fields(&ada()).unwrap();
    let names: Vec<_> = fields.iter().map(|field| field.name.as_str()).collect();
    assert_eq!(names, ["size", "enable_debug", "reset_user_env"]);
    let (choices, default) = sizes(&ada());
    assert_eq!(choices[0], ("small".to_owned(), "Small (1 CPU, 4 GiB)".to_owned()));
    assert_eq!(choices[2].1, "Large (4 CPU, 16 GiB)");
    assert_eq!(default.as_deref(), Some("large"));
}

#[test]
fn sizes_above_the_quota_are_not_offered() {
    let (choices, default) = sizes(&with_quota(2000, 64 << 30));
    assert_eq!(choices.len(), 2);
    assert_eq!(default.as_deref(), Some("small"), "the configured one is too large");
    let nothing = site(&example()).fields(&with_quota(500, 64 << 30));
    assert!(matches!(nothing, Err(Error::Denied(_))));
    let refused = site(&example()).customize(&with_quota(2000, 64 << 30), &json!({"size": "large"}));
    assert!(matches!(refused, Err(Error::Invalid(fields)) if fields[0].field == "size"));
}

#[test]
fn a_submission_may_capitalize_sizes_and_keeps_the_image() {
    let site = site(&example());
    let submission = json!({"size": "Medium", "enable_debug": "true", "image": "w_2025_08"});
    let options = site.parse(&ada(), &submission).unwrap();
    assert_eq!(options.text("size"), Some("medium"));
    assert_eq!(options.text("image"), Some("w_2025_08"));
    assert!(options.flag("enable_debug") && !options.flag("reset_user_env"));
    let errors = site.parse(&ada(), &json!({"size": "huge", "root": true})).unwrap_err();
    let fields: Vec<_> = errors.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(fields, ["size", "root"]);
}

#[test]
fn quotas_are_those_of_the_user_and_one_lab() {
    let limits = site(&example()).limits(&with_quota(4000, 16 << 30)).unwrap();
    assert_eq!((limits.cpu_millis, limits.memory_bytes, limits.labs), (Some(4000), Some(16 << 30), Some(1)));
    assert_eq!(site(&example()).limits(&ada()).unwrap().cpu_millis, None);
}

#[test]
fn users_without_a_quota_for_labs_start_none() {
    let quota = UserQuota { cpu_millis: None, memory_bytes: None, spawn: false };
    let barred = User { quota: Some(quota), ..ada() };
    assert!(matches!(site(&example()).may_spawn(&barred).unwrap(), Verdict::Deny(_)));
    assert_eq!(site(&example()).may_spawn(&ada()).unwrap(), Verdict::Allow);
}

#[test]
fn a_lab_has_the_variables_of_nublado() {
    let lab =
        pod(&json!({"size": "small", "image": "w_2025_08", "enable_debug": true, "reset_user_env": true}));
    let image = "us-central1-docker.pkg.dev/science-images/sciplat/sciplat-lab:w_2025_08";
    for (name, value) in [
        ("CONTAINER_SIZE", "Small (1 CPU, 4 GiB)"),
        ("DEBUG", "TRUE"),
        ("EXTERNAL_INSTANCE_URL", "https://data.example.org"),
        ("HOME", "/home/ada"),
        ("JUPYTERHUB_ACTIVITY_INTERVAL", "3600"),
        ("JUPYTERLAB_CONFIG_DIR", "/opt/lsst/software/jupyterlab"),
        ("JUPYTERLAB_START_COMMAND", "/opt/lsst/software/jupyterlab/runlab.sh"),
        ("JUPYTER_IMAGE", image),
        ("JUPYTER_IMAGE_SPEC", image),
        ("NUBLADO_RUNTIME_MOUNTS_DIR", "/etc/nublado"),
        ("RESET_USER_ENV", "TRUE"),
    ] {
        assert_eq!(text(&lab, name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(variable(&lab, "KUBERNETES_NODE_NAME"), Some(EnvValue::FieldRef("spec.nodeName".into())));
    for name in
        ["CPU_LIMIT", "MEM_LIMIT", "CPU_GUARANTEE", "MEM_GUARANTEE", "IMAGE_DIGEST", "IMAGE_DESCRIPTION"]
    {
        assert_eq!(variable(&lab, name), None, "{name} is the service's");
    }
    let plain = pod(&json!({}));
    assert_eq!((text(&plain, "DEBUG"), text(&plain, "JUPYTER_IMAGE")), (None, None));
    assert!(lab.image.is_none(), "the service takes it from the menu");
}

#[test]
fn variables_of_the_configuration_replace_others_and_are_no_templates() {
    let mut config = example();
    config["lab"]["env"] = json!({"HOME": "/tmp/{username}", "JSON": "{\"a\": 1}"});
    let lab = site(&config).customize(&ada(), &json!({})).unwrap();
    assert_eq!(text(&lab, "HOME").as_deref(), Some("/tmp/{username}"));
    assert_eq!(text(&lab, "JSON").as_deref(), Some("{\"a\": 1}"));
}

#[test]
fn secrets_are_variables_and_files_of_the_labs_secret() {
    let lab = pod(&json!({}));
    let EnvValue::SecretRef(token) = variable(&lab, "ACCESS_TOKEN").unwrap() else { panic!("a secret") };
    assert_eq!(
        (token.name.as_str(), token.key.as_str()),
        ("nb-{user_server}", "token"),
        "the service expands it"
    );
    let EnvValue::SecretRef(password) = variable(&lab, "BUTLER_PASSWORD").unwrap() else {
        panic!("a secret")
    };
    assert_eq!(password.key, "butler-password");
    let mount = lab.mounts.iter().find(|mount| mount.volume == "secrets").unwrap();
    assert_eq!(mount.path, "/opt/lsst/software/jupyterlab/secrets/aws-credentials.ini");
    assert_eq!((mount.sub_path.as_deref(), mount.read_only), (Some("aws-credentials.ini"), true));
    let mut without = example();
    without["lab"]["secrets"] = json!([]);
    let lab = site(&without).customize(&ada(), &json!({})).unwrap();
    assert!(lab.volumes.iter().all(|volume| volume.name != "secrets"));
}

#[test]
fn temporary_files_may_take_a_quarter_of_the_memory() {
    let tmp = |pod: &Customization| {
        let volume = pod.volumes.iter().find(|volume| volume.name == "tmp").unwrap();
        let VolumeSource::EmptyDir(source) = &volume.source else { panic!("an empty directory") };
        (source.memory, source.size_limit_bytes)
    };
    let lab = pod(&json!({"size": "small"}));
    assert_eq!(tmp(&lab), (true, Some(1 << 30)));
    assert!(lab.mounts.iter().any(|mount| mount.volume == "tmp" && mount.path == "/tmp"));
    let mut config = example();
    config["lab"].as_object_mut().unwrap().remove("emptyDirSource");
    config["lab"]["tmpSource"] = json!("disk");
    assert_eq!(tmp(&site(&config).customize(&ada(), &json!({})).unwrap()), (false, Some(4 << 30)));
}

#[test]
fn volumes_are_mounted_where_the_configuration_says() {
    let lab = pod(&json!({}));
    let mounts: Vec<_> =
        lab.mounts.iter().map(|mount| (mount.volume.as_str(), mount.path.as_str())).collect();
    assert_eq!(mounts[..2], [("home", "/home"), ("project", "/project")], "`homeVolumeName` is mounted once");
    let VolumeSource::Claim(claim) = &lab.volumes[3].source else { panic!("a claim") };
    assert_eq!(claim.claim_name, "{pvc_name}-scratch", "the service expands it");
    assert_eq!(claim.create.as_ref().unwrap().storage_bytes, 100 << 30);
}

#[test]
fn homes_are_mounted_even_if_no_mount_is_listed() {
    let mut config = example();
    config["lab"]["volumeMounts"].as_array_mut().unwrap().remove(0);
    let lab = site(&config).customize(&ada(), &json!({})).unwrap();
    assert!(lab.mounts.iter().any(|mount| mount.volume == "home" && mount.path == "/home"));
}

#[test]
fn a_volume_may_have_its_mount_beside_its_source() {
    let mut config = example();
    let source = json!({"type": "nfs", "server": "nfs.example.org", "serverPath": "/obs-env"});
    config["lab"]["volumes"]
        .as_array_mut()
        .unwrap()
        .push(json!({"containerPath": "/net/obs-env", "source": source}));
    let lab = site(&config).customize(&ada(), &json!({})).unwrap();
    assert!(lab.mounts.iter().any(|mount| mount.volume == "net-obs-env" && mount.path == "/net/obs-env"));
}

#[test]
fn init_containers_are_told_whose_home_they_make() {
    let lab = pod(&json!({"size": "small"}));
    let init = &lab.init_containers[0];
    assert_eq!((init.profile, init.run), (SecurityProfile::Privileged, InitRun::Always));
    assert_eq!(init.image, "ghcr.io/lsst-sqre/nublado:15.1.0");
    assert_eq!(init.command, ["nublado", "inithome"]);
    assert_eq!(init.resources, lab.resources);
    let value = |name: &str| {
        let variable = init.env.iter().find(|variable| variable.name == name).unwrap();
        variable.value.clone()
    };
    for (name, text) in [("NUBLADO_HOME", "/home/ada"), ("NUBLADO_UID", "1001"), ("NUBLADO_GID", "1002")] {
        assert_eq!(value(name), EnvValue::Literal(text.into()), "{name}");
    }
    assert!(init.env.iter().any(|variable| variable.name == "RSP_SITE_TYPE"));
    assert!(init.env.iter().all(|variable| variable.name != "ACCESS_TOKEN"), "a secret of the user");
    let mut config = example();
    config["lab"]["initContainers"][0]["privileged"] = json!(false);
    let lab = site(&config).customize(&ada(), &json!({})).unwrap();
    assert_eq!(lab.init_containers[0].profile, SecurityProfile::Restricted);
}

#[test]
fn the_standard_container_makes_homes_where_the_lab_has_them() {
    let mut config = example();
    config["lab"]["standardInithome"] = json!(true);
    config["lab"]["initContainers"] =
        json!([{"name": "later", "image": {"repository": "setup", "tag": "1"}}]);
    let lab = site(&config).customize(&ada(), &json!({})).unwrap();
    let init = &lab.init_containers[0];
    assert_eq!((init.name.as_str(), init.profile), ("inithome", SecurityProfile::Privileged));
    assert_eq!(
        (init.image.as_str(), init.command.join(" ")),
        ("ghcr.io/lsst-sqre/nublado:15.1.0", "nublado inithome".into())
    );
    let mounts: Vec<_> =
        init.mounts.iter().map(|mount| (mount.volume.as_str(), mount.path.as_str())).collect();
    assert_eq!(mounts, [("home", "/home")]);
    assert!(init.env.iter().any(|variable| variable.name == "NUBLADO_HOME"));
    assert_eq!(lab.init_containers[1].name, "later");
    config["lab"]["inithomeImage"] = json!({"repository": "registry.example.org/nublado", "tag": "16"});
    let lab = site(&config).customize(&ada(), &json!({})).unwrap();
    assert_eq!(lab.init_containers[0].image, "registry.example.org/nublado:16");
}

#[test]
fn the_pod_is_placed_and_started_as_configured() {
    let lab = pod(&json!({}));
    assert_eq!(lab.node_selector[0].name, "node_pool");
    assert_eq!(lab.tolerations.len(), 2);
    assert_eq!(lab.annotations[0].name, "k8s.v1.cni.cncf.io/networks");
    assert_eq!(lab.args, Some(vec!["/opt/lsst/software/jupyterlab/runlab.sh".to_owned()]));
    assert_eq!((lab.command, lab.working_dir.as_deref()), (None, Some("/home/ada")));
    let limits = lab.time_limits.unwrap();
    assert_eq!((limits.spawn_seconds, limits.delete_seconds), (Some(600), Some(60)));
    let patch: Value = serde_json::from_str(&lab.pod_patch.unwrap()).unwrap();
    assert_eq!(patch["spec"]["affinity"], example()["lab"]["affinity"]);
    let resources = lab.resources.unwrap();
    assert_eq!((resources.cpu_limit_millis, resources.cpu_request_millis), (Some(4000), Some(1000)));
    assert_eq!(resources.memory_request_bytes, Some(6 << 30));
}
