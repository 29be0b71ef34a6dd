use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::report::{Entry, Outcome, Report};
use crate::tests::any_value;
use crate::values_file::below;

/// The part of the chart's own values without which there are no labs.
const DEFAULTS: &str = "
controller:
  config:
    images:
      source: {type: docker, registry: registry.example.org, repository: site/lab}
    lab:
      namespacePrefix: nublado
      runtimeMountsDir: /etc/nublado/
      sizes: [{size: small, resources: {limits: {cpu: 1.0, memory: 4Gi}}}]
";

fn target() -> NubladoTarget {
    NubladoTarget {
        namespace: "nublado".into(),
        service_namespace: "nublado".into(),
        policy: "rubin.wasm".into(),
        base_url: Some("https://data.example.org".into()),
        ingress: vec!["10.1.2.3".into()],
        gafaelfawr: "http://gafaelfawr.gafaelfawr:8080".into(),
    }
}

fn files(texts: &[&str]) -> Vec<ValuesFile> {
    texts.iter().map(|text| ValuesFile::parse("v.yaml", text).unwrap()).collect()
}

/// The result for the defaults, and a site's own values below `controller.config.lab`.
fn with_lab(lab: &str) -> Migration {
    let site = format!("controller: {{config: {{lab: {lab}}}}}");
    migrate_nublado(&files(&[DEFAULTS, &site]), &target()).unwrap()
}

fn policy(moved: &Migration) -> &Value {
    &moved.config["policies"][0]["config"]
}

fn entry<'a>(moved: &'a Migration, path: &str) -> &'a Entry {
    let found = moved.report.entries.iter().rev().find(|entry| entry.path == path);
    found.unwrap_or_else(|| panic!("{path} is not in the report:\n{}", moved.report.text()))
}

fn is_open(moved: &Migration, path: &str) -> bool {
    matches!(entry(moved, path).outcome, Outcome::Open { .. })
}

#[test]
fn the_smallest_site_has_nothing_to_decide() {
    let moved = migrate_nublado(&files(&[DEFAULTS]), &target()).unwrap();
    assert_eq!(moved.report.open(), 0, "{}", moved.report.text());
    assert_eq!(moved.config["names"]["namespace"], "nublado-{user_server}");
    assert_eq!(moved.config["names"]["pvc"], "{user_server}-nb-pvc", "claims keep their names");
    assert_eq!(moved.config["lab"]["secrets_path"], "/etc/nublado/secrets");
    assert_eq!(moved.config["images"]["repositories"], json!([{"name": "registry.example.org/site/lab"}]));
    assert_eq!(moved.config["policies"][0]["grants"], json!({"secrets": ["{user_server}-nb"]}));
    assert_eq!(policy(&moved)["lab"]["env"]["EXTERNAL_INSTANCE_URL"], "https://data.example.org");
    assert_eq!(moved.chart_values["gafaelfawr"]["host"], "data.example.org");
    assert!(moved.chart_values["config"]["policies"][0].get("path").is_none());
}

#[test]
fn what_no_value_says_is_to_be_decided() {
    let bare = NubladoTarget { base_url: None, ingress: vec![], ..target() };
    let moved = migrate_nublado(&files(&[DEFAULTS]), &bare).unwrap();
    assert!(is_open(&moved, "auth.headers.trusted_peers"));
    assert!(is_open(&moved, "policies[rubin].config.lab.env.EXTERNAL_INSTANCE_URL"));
    assert_eq!(moved.report.open(), 2);
}

#[test]
fn what_the_service_does_itself_is_in_its_configuration() {
    let moved = with_lab(
        "{files: {/opt/a.yml: 'a: 1'}, nss: {basePasswd: 'root:x:0:0::/:/bin/sh', baseGroup: \"root:x:0:\\n\"}, \
         pullSecret: pull-secret, namespacePrefix: userlabs, application: users, reconcileInterval: 90s, \
         namespaceAnnotations: {example.org/uid: '{{ uid }}'}, spawnTimeout: 2h, deleteTimeout: 60, \
         secrets: [{secretName: s, secretKey: a.ini}, {secretName: s, secretKey: b, env: B}]}",
    );
    let lab = &moved.config["lab"];
    assert_eq!(lab["files"], json!({"/opt/a.yml": "a: 1"}));
    assert_eq!(lab["user_files"], json!({"passwd": "root:x:0:0::/:/bin/sh\n", "group": "root:x:0:\n"}));
    let secrets = json!([
        {"name": "pull-secret", "key": ".dockerconfigjson", "pull_secret": true},
        {"name": "s", "key": "a.ini"},
        {"name": "s", "key": "b"}
    ]);
    assert_eq!(lab["secrets"], secrets);
    assert_eq!(policy(&moved)["lab"]["secrets"], json!([{"secretName": "s", "secretKey": "b", "env": "B"}]));
    assert_eq!(lab["argo_cd"]["instance"], "users");
    assert_eq!(lab["annotations"]["example.org/uid"], "{uid}");
    assert_eq!(lab["max_time_limits"], json!({"spawn_seconds": 7200}));
    assert_eq!(moved.config["names"]["namespace"], "userlabs-{user_server}");
    assert_eq!(moved.config["limits"]["reconcile_every"], "90s");
    assert_eq!(moved.chart_values["secrets"]["registryLogins"]["existingSecret"], "pull-secret");
    for gone in ["files", "nss", "pullSecret", "namespacePrefix", "application"] {
        assert!(policy(&moved)["lab"].get(gone).is_none(), "{gone}");
    }
    assert_eq!(moved.report.open(), 0, "{}", moved.report.text());
}

#[test]
fn grants_are_those_that_the_site_needs() {
    let moved = with_lab(
        "{standardInithome: true, affinity: {nodeAffinity: {}, podAffinity: {a: 1}}, \
         extraAnnotations: {k8s.v1.cni.cncf.io/networks: x, plain: y}, \
         volumes: [{name: d, source: {type: hostPath, path: /data}}, \
                   {name: home, source: {type: nfsPvc, server: s, serverPath: /h, accessModes: [ReadWriteMany]}}]}",
    );
    assert_eq!(
        moved.config["policies"][0]["grants"],
        json!({
            "secrets": ["{user_server}-nb"],
            "privileged-init": true,
            "pod-patch": ["spec.affinity"],
            "host-path": ["/data"],
            "metadata": ["k8s.v1.cni.cncf.io/"]
        })
    );
    let nfs = json!({"type": "nfs", "server": "s", "serverPath": "/h"});
    assert_eq!(policy(&moved)["lab"]["volumes"][1]["source"], nfs);
}

#[test]
fn homes_are_made_by_the_image_of_the_controller() {
    let site = "controller: {image: {repository: mirror/nublado, tag: 15.2.0}, config: {lab: {standardInithome: true}}}";
    let moved = migrate_nublado(&files(&[DEFAULTS, site]), &target()).unwrap();
    let image = json!({"repository": "mirror/nublado", "tag": "15.2.0"});
    assert_eq!(policy(&moved)["lab"]["inithomeImage"], image);
}

#[test]
fn homes_are_where_they_were() {
    for (lab, expected) in [
        ("{homedirSchema: username}", Value::Null),
        ("{homedirSchema: initialThenUsername}", json!("/home/{username:.1}/{username}")),
        ("{homedirPrefix: /u/, homedirSuffix: rsp}", json!("/u/{username}/rsp")),
    ] {
        let moved = with_lab(lab);
        assert_eq!(moved.config["lab"]["user_files"]["home"], expected, "{lab}");
        assert_eq!(moved.report.open(), 0, "{}", moved.report.text());
    }
}

#[test]
fn images_are_pulled_on_the_nodes_of_labs() {
    let moved = with_lab(
        "{nodeSelector: {pool: labs}, tolerations: [{key: labs, operator: Exists}, {operator: Exists}]}",
    );
    let nodes = json!({"selector": {"pool": "labs"}, "tolerated_taints": ["labs"]});
    assert_eq!(moved.config["images"]["nodes"], nodes);
    let site = "controller: {config: {images: {prepullTimeout: 20m, refreshInterval: 300}, watchReconnectTimeout: 3m}}";
    let moved = migrate_nublado(&files(&[DEFAULTS, site]), &target()).unwrap();
    assert_eq!(moved.config["images"]["prepull"], json!({"time_limit": "20m"}));
    assert_eq!(moved.config["images"]["refresh_every"], "5m");
    assert!(matches!(
        entry(&moved, "controller.config.watchReconnectTimeout").outcome,
        Outcome::NotNeeded(_)
    ));
}

#[test]
fn what_a_person_decides_is_listed_and_left_out() {
    for (lab, path) in [
        ("{mystery: 1}", "lab.mystery"),
        ("{sizes: [{size: small, cpu: 1, memory: 4Gi, gpu: 1}]}", "lab.sizes[0].gpu"),
        ("{volumes: [x]}", "lab.volumes[0]"),
        ("{env: {A: [1]}}", "lab.env.A"),
        ("{secrets: [{secretName: s}]}", "lab.secrets[0]"),
        ("{spawnTimeout: soon}", "lab.spawnTimeout"),
        ("{namespaceAnnotations: {a: '{{ name }}'}}", "lab.namespaceAnnotations.a"),
        ("{fileBrowserRoot: root}", "lab.fileBrowserRoot"),
        (
            "{initContainers: [{name: i, image: {repository: r, tag: t, pullPolicy: Always}}]}",
            "lab.initContainers[0].image.pullPolicy",
        ),
    ] {
        let moved = with_lab(lab);
        assert!(is_open(&moved, &format!("controller.config.{path}")), "{path}");
        assert_eq!(moved.report.open(), 1, "{}", moved.report.text());
        assert!(!moved.config.to_string().contains("mystery"));
    }
    for (site, path) in [
        ("controller: {config: {fileserver: {enabled: true}}}", "controller.config.fileserver"),
        ("controller: {config: {fsadmin: {mountPrefix: /mnt}}}", "controller.config.fsadmin"),
        ("controller: {config: {metrics: {enabled: true}}}", "controller.config.metrics"),
        (
            "controller: {config: {dropdownMenu: {weekly: {number: 0}}}}",
            "controller.config.dropdownMenu.weekly.number",
        ),
        (
            "controller: {config: {dropdownMenu: {nightly: {number: 1}}}}",
            "controller.config.dropdownMenu.nightly",
        ),
        (
            "controller: {config: {images: {dockerCredentialsPath: /x}}}",
            "controller.config.images.dockerCredentialsPath",
        ),
        ("controller: {config: {logLevel: LOUD}}", "controller.config.logLevel"),
        ("controller: {slackAlerts: true}", "controller.slackAlerts"),
        ("mystery: {a: 1}", "mystery"),
    ] {
        let moved = migrate_nublado(&files(&[DEFAULTS, site]), &target()).unwrap();
        assert!(is_open(&moved, path), "{path}\n{}", moved.report.text());
        assert_eq!(moved.report.open(), 1, "{}", moved.report.text());
    }
}

#[test]
fn files_without_a_controller_or_sizes_are_refused() {
    for (text, named) in [
        ("singleuser: {}", "`controller.config`"),
        ("controller: {config: 1}", "`controller.config`"),
        ("controller: {config: {lab: {env: {}}}}", "the chart's own values.yaml as the first file"),
    ] {
        let error = migrate_nublado(&files(&[text]), &target()).err().unwrap();
        assert!(error.contains(named), "{error}");
    }
}

/// True if an entry says what became of a key, or of a key above or below it.
fn is_reported(report: &Report, path: &str) -> bool {
    let leads = |one: &str, other: &str| {
        other.strip_prefix(one).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    report.entries.iter().any(|entry| leads(&entry.path, path) || leads(path, &entry.path))
}

fn leaves(path: &str, value: &Value, found: &mut Vec<String>) {
    match value.as_object().filter(|entries| !entries.is_empty()) {
        Some(entries) => entries.iter().for_each(|(key, value)| leaves(&below(path, key), value, found)),
        None if value.is_null() => {}
        None => found.push(path.to_owned()),
    }
}

/// Keys that are read, and others.
fn any_path() -> impl Strategy<Value = Vec<String>> {
    let known = vec![
        "controller",
        "controller.image",
        "controller.config",
        "controller.config.lab",
        "controller.config.lab.env",
        "controller.config.lab.files",
        "controller.config.lab.volumes",
        "controller.config.lab.secrets",
        "controller.config.lab.pullSecret",
        "controller.config.lab.nss",
        "controller.config.lab.tolerations",
        "controller.config.lab.initContainers",
        "controller.config.lab.namespaceAnnotations",
        "controller.config.lab.standardInithome",
        "controller.config.lab.spawnTimeout",
        "controller.config.images",
        "controller.config.images.source",
        "controller.config.dropdownMenu.weekly",
        "controller.config.fileserver",
        "controller.config.metrics",
        "controller.config.logLevel",
        "hub",
        "jupyterhub",
        "global",
        "global.baseUrl",
        "other",
    ];
    (proptest::sample::select(known), proptest::collection::vec("[a-zA-Z_]{1,8}", 0..2))
        .prop_map(|(path, more)| path.split('.').map(str::to_owned).chain(more).collect())
}

proptest! {
    /// Values of any shape, at any key: there is no panic, and nothing is dropped silently.
    #[test]
    fn every_key_is_reported(given in proptest::collection::vec((any_path(), any_value("[a-z]{1,4}|name|source|type|image")), 1..6)) {
        let nested = |path: &[String], value: &Value| {
            path.iter().rev().fold(value.clone(), |value, key| json!({key: value}))
        };
        let texts: Vec<_> = given.iter().map(|(path, value)| nested(path, value).to_string()).collect();
        let all: Vec<_> = std::iter::once(DEFAULTS).chain(texts.iter().map(String::as_str)).collect();
        let files = files(&all);
        let Ok(moved) = migrate_nublado(&files, &target()) else { return Ok(()) };
        let values: Vec<&Value> = files.iter().map(|file| &file.values).collect();
        let mut paths = Vec::new();
        leaves("", &crate::layered(&json!({}), &values), &mut paths);
        for path in paths {
            prop_assert!(is_reported(&moved.report, &path), "{path}\n{}", moved.report.text());
        }
    }
}
