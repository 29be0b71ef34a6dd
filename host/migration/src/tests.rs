use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::values_file::below;
use crate::{Migration, Outcome, Report, Target, ValuesFile, migrate, table};

const STATIC_HOMES: &str = include_str!("../cases/static-homes.yaml");
const PROFILES: &str = include_str!("../cases/profiles.yaml");

fn target() -> Target {
    Target {
        namespace: "jhub".into(),
        service_namespace: "wasmspawner".into(),
        policy: "policies/policy_default.wasm".into(),
    }
}

fn file(name: &str, text: &str) -> ValuesFile {
    ValuesFile::parse(name, text).unwrap()
}

fn moved(texts: &[&str]) -> Migration {
    let files: Vec<_> =
        texts.iter().enumerate().map(|(at, text)| file(&format!("{at}.yaml"), text)).collect();
    migrate(&files, &target()).unwrap()
}

fn yaml(value: &Value) -> String {
    serde_saphyr::to_string(value).unwrap()
}

#[test]
fn homes_in_one_claim() {
    let moved = moved(&[STATIC_HOMES]);
    insta::assert_snapshot!("static-homes", format!("{}\n{}", yaml(&moved.config), moved.report.text()));
}

#[test]
fn profiles_by_group() {
    let moved = moved(&[PROFILES]);
    insta::assert_snapshot!("profiles", format!("{}\n{}", yaml(&moved.config), moved.report.text()));
}

#[test]
fn a_site_without_values_has_the_chart_s_defaults_and_nothing_open() {
    let moved = moved(&["singleuser: {defaultUrl: /lab}"]);
    assert_eq!(moved.report.open(), 0, "{}", moved.report.text());
    let settings = &moved.config["policies"][0]["config"]["kubespawner"];
    assert_eq!(settings["default_url"], "/lab");
    assert_eq!(settings["mem_guarantee"], "1G");
    assert_eq!(
        settings["volumes"],
        json!([{"name": "home", "persistentVolumeClaim": {"claimName": "{pvc_name}"}}])
    );
    assert_eq!(moved.chart_values["config"]["policies"][0].get("path"), None);
    assert_eq!(moved.chart_values["config"]["kubernetes"], json!({"namespaces": "single"}));
}

/// Each of these would let a lab do more than before, if the rest were carried over without the part that limited it.
#[test]
fn what_would_protect_labs_less_is_left_out_and_to_be_decided() {
    for (values, key, absent) in [
        ("singleuser: {networkPolicy: {enabled: false}}", "networkPolicy.enabled", "enabled: false"),
        ("singleuser: {networkPolicy: {egress: [{}]}}", "networkPolicy.egress[0]", "- to: []"),
        (
            "singleuser: {networkPolicy: {ingress: [{from: [{podSelector: {}}], ports: [{port: 9100}]}]}}",
            "networkPolicy.ingress[0]",
            "ingress:",
        ),
        (
            "singleuser: {storage: {extraVolumeMounts: [{name: h, mountPath: /h, subPathExpr: $(A)}]}}",
            "extraVolumeMounts[0]",
            "mountPath: /h\n",
        ),
        ("singleuser: {extraEnv: {DB_PASSWORD: hunter2}}", "extraEnv.DB_PASSWORD", "hunter2"),
        ("singleuser: {uid: null}", "singleuser.uid", "no such text"),
    ] {
        let moved = moved(&[values]);
        let open = moved
            .report
            .entries
            .iter()
            .find(|entry| entry.path.ends_with(key) && matches!(entry.outcome, Outcome::Open { .. }));
        assert!(open.is_some(), "{values}: {}", moved.report.text());
        assert!(!yaml(&moved.config).contains(absent), "{values}: {}", yaml(&moved.config));
    }
    let all = moved(&["singleuser: {networkPolicy: {egress: [{to: [{ipBlock: {cidr: 0.0.0.0/0}}]}]}}"]);
    assert!(yaml(&all.config["lab"]).contains("- 169.254.169.254/32"), "{}", yaml(&all.config["lab"]));
}

#[test]
fn later_files_count_and_null_takes_away() {
    let of_all = "jupyterhub: {singleuser: {storage: {extraVolumeMounts: {a: {name: home, mountPath: /a}}}, cpu: {limit: 1}}}";
    let of_one = "jupyterhub: {singleuser: {storage: {extraVolumeMounts: {a: null}}, cpu: {limit: 2}}}";
    let moved = moved(&[of_all, of_one]);
    let settings = &moved.config["policies"][0]["config"]["kubespawner"];
    assert_eq!(settings["volume_mounts"], json!([{"name": "home", "mountPath": "/home/jovyan"}]));
    assert_eq!(settings["cpu_limit"], 2);
    let limit = moved.report.entries.iter().find(|entry| entry.path == "singleuser.cpu.limit").unwrap();
    assert_eq!(limit.place, Some(("1.yaml".to_owned(), 1)));
}

#[test]
fn settings_of_the_class_count_over_those_of_the_chart() {
    let moved = moved(&["
singleuser: {defaultUrl: /lab, memory: {limit: 1G}, extraEnv: {A: a}}
hub: {config: {Spawner: {default_url: /tree}, KubeSpawner: {mem_limit: 2G, environment: {B: b}, pod_name_template: 'x-{user_server}'}}}
"]);
    let settings = &moved.config["policies"][0]["config"]["kubespawner"];
    assert_eq!((&settings["default_url"], &settings["mem_limit"]), (&json!("/tree"), &json!("2G")));
    assert_eq!(settings["environment"], json!({"B": "b"}));
    assert_eq!(moved.config["names"]["pod"], "x-{user_server}");
}

#[test]
fn literals_in_python_are_carried_over_and_the_rest_is_listed() {
    let text = "c.KubeSpawner.mem_limit = '2G'\nc.KubeSpawner.volumes = [{'name': 'a', 'emptyDir': {}}]\nc.Spawner.default_url = url()\n";
    let of_file = crate::migrate_python("jupyterhub_config.py", text, &target());
    let values = json!({"hub": {"extraConfig": {"01": text}}}).to_string();
    for moved in [of_file, moved(&[&values])] {
        let settings = &moved.config["policies"][0]["config"]["kubespawner"];
        assert_eq!(settings["mem_limit"], "2G");
        assert_eq!(settings["volumes"][0]["name"], "a");
        assert_eq!(moved.report.open(), 1, "{}", moved.report.text());
        assert!(moved.report.text().contains("sets or reads `default_url` of the spawner"));
    }
}

#[test]
fn files_that_are_no_values_are_refused() {
    for texts in [vec![""], vec!["a: 1"], vec!["singleuser_: {}", "b: 2"]] {
        let files: Vec<_> = texts.iter().map(|text| file("v.yaml", text)).collect();
        assert!(migrate(&files, &target()).is_err(), "{texts:?}");
    }
}

#[test]
fn a_credential_is_in_neither_configuration_nor_report() {
    let moved =
        moved(&["singleuser: {extraFiles: {key.pem: {mountPath: /etc/key.pem, stringData: TOPSECRET}}}"]);
    let all = format!("{}{}{}", yaml(&moved.config), yaml(&moved.chart_values), moved.report.text());
    assert!(!all.contains("TOPSECRET"), "{all}");
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

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        (0..9_i64).prop_map(Value::from),
        "[a-z{}$()/]{0,6}".prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::btree_map(
                prop_oneof![
                    "[a-z]{1,4}",
                    Just("name".to_owned()),
                    Just("valueFrom".to_owned()),
                    Just("choices".to_owned())
                ],
                inner,
                0..3
            )
            .prop_map(|entries| entries.into_iter().collect::<Map<_, _>>().into()),
        ]
    })
}

fn any_path() -> impl Strategy<Value = Vec<String>> {
    let known: Vec<&'static str> = table::paths().collect();
    (proptest::sample::select(known), proptest::collection::vec("[a-zA-Z_]{1,8}", 0..2))
        .prop_map(|(path, more)| path.split('.').map(str::to_owned).chain(more).collect())
}

fn nested(path: &[String], value: Value) -> Value {
    path.iter().rev().fold(value, |value, key| json!({key: value}))
}

proptest! {
    /// Values of any shape, at any key: there is no panic, and nothing is dropped silently.
    #[test]
    fn every_key_is_reported(given in proptest::collection::vec((any_path(), any_value()), 1..6)) {
        let files: Vec<ValuesFile> = given
            .iter()
            .map(|(path, value)| file("v.yaml", &serde_json::to_string(&nested(path, value.clone())).unwrap()))
            .collect();
        let Ok(moved) = migrate(&files, &target()) else { return Ok(()) };
        let values: Vec<&Value> = files.iter().map(|file| &file.values).collect();
        let mut paths = Vec::new();
        leaves("", &crate::layered(&json!({}), &values), &mut paths);
        for path in paths {
            prop_assert!(is_reported(&moved.report, &path), "{path}\n{}", moved.report.text());
        }
        let defaults = moved.report.entries.iter().filter(|entry| entry.place.is_none());
        prop_assert!(defaults.into_iter().all(|entry| !matches!(entry.outcome, Outcome::Stays(_))));
    }
}
