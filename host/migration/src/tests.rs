use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::values_file::below;
use crate::{Entry, Migration, Outcome, Report, Target, ValuesFile, migrate, table};

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
fn what_the_new_values_of_the_hub_would_replace_is_kept_or_reported() {
    let moved = moved(&[
        "{singleuser: {}, hub: {networkPolicy: {egress: [{ports: [{port: 1}]}]}, extraEnv: [{name: A, value: b}]}, \
        proxy: {chp: {networkPolicy: {egress: []}}}}",
    ]);
    assert_eq!(moved.hub_egress, [json!({"ports": [{"port": 1}]})]);
    assert_eq!(moved.proxy_egress, Vec::<Value>::new());
    let outcome = |path: &str| {
        let mut entries = moved.report.entries.iter();
        &entries.find(|entry| entry.path == path).unwrap().outcome
    };
    assert!(matches!(outcome("hub.networkPolicy.egress"), Outcome::Stays(_)));
    assert!(matches!(outcome("proxy.chp.networkPolicy.egress"), Outcome::NotNeeded(_)));
    assert!(matches!(outcome("hub.extraEnv"), Outcome::Open { .. }));
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
fn a_file_may_have_jupyterhub_s_chart_as_a_part_of_a_part() {
    let of_all = "jupyterhub: {singleuser: {cpu: {limit: 1}, defaultUrl: /lab}}";
    let of_one = "base: {nfs: {a: 1}, jupyterhub: {singleuser: {cpu: {limit: 2}}}}\ndask: {b: 2}";
    let moved = moved(&[of_all, of_one]);
    let settings = &moved.config["policies"][0]["config"]["kubespawner"];
    assert_eq!((&settings["cpu_limit"], &settings["default_url"]), (&json!(2), &json!("/lab")));
    assert_eq!(moved.root, "base.jupyterhub");
    let place = |path: &str| {
        let entry = moved.report.entries.iter().find(|entry| entry.path == path).unwrap();
        entry.place.clone().unwrap()
    };
    assert_eq!(place("singleuser.cpu.limit"), ("1.yaml".to_owned(), 1));
    assert_eq!((place("base.nfs").1, place("dask").1), (1, 2));
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
fn the_lab_s_own_claim_is_named_by_its_field() {
    for (values, expected) in [
        ("c.KubeSpawner.pvc_name_template = 'claim-{username}'", "{pvc_name}"),
        ("c.KubeSpawner.pvc_name_template = 'home-{username}'", "claim-{username}"),
        ("", "claim-{username}"),
    ] {
        let text = format!(
            "{values}\nc.KubeSpawner.volumes = [{{'name': 'v', 'persistentVolumeClaim': {{'claimName': 'claim-{{username}}'}}}}]\n"
        );
        let moved = crate::migrate_python("c.py", &text, &target());
        let volumes = &moved.config["policies"][0]["config"]["kubespawner"]["volumes"];
        assert_eq!(volumes[0]["persistentVolumeClaim"]["claimName"], expected, "{values}");
        assert_eq!(moved.report.open(), 0, "{}", moved.report.text());
    }
    // The chart makes claims, and this volume is another one.
    let moved = moved(&[
        "singleuser: {storage: {extraVolumes: [{name: v, persistentVolumeClaim: {claimName: 'of-{username}'}}, {name: w, persistentVolumeClaim: {claimName: 'claim-{user_server}'}}]}}",
    ]);
    let volumes = &moved.config["policies"][0]["config"]["kubespawner"]["volumes"];
    assert_eq!(volumes[1]["persistentVolumeClaim"]["claimName"], "of-{username}");
    assert_eq!(volumes[2]["persistentVolumeClaim"]["claimName"], "{pvc_name}");
    assert_eq!(moved.report.open(), 1, "{}", moved.report.text());
}

#[test]
fn names_of_the_hub_s_objects_are_those_of_its_chart() {
    let moved = moved(&[
        "{fullnameOverride: x, nameOverride: alt, singleuser: {extraFiles: {f: {mountPath: /f, stringData: t}}}}",
    ]);
    assert_eq!(moved.report.open(), 0, "{}", moved.report.text());
    assert_eq!(moved.config["auth"]["jupyterhub"]["api_url"], "http://x-hub.jhub:8081/hub/api");
    assert_eq!(moved.hub_secret, "x-hub");
    assert_eq!(moved.chart_values["jupyterhub"]["podLabels"], json!({"app": "alt", "component": "hub"}));
    let all = yaml(&moved.config);
    assert!(all.contains("secretName: x-singleuser") && !all.contains("app: jupyterhub"), "{all}");
    assert_eq!(moved.config["lab"]["network_policy"]["ingress"].as_array().unwrap().len(), 2);
    let unknown = self::moved(&["{fullnameOverride: null, singleuser: {defaultUrl: /lab}}"]);
    assert_eq!(unknown.report.open(), 1, "{}", unknown.report.text());
}

#[test]
fn the_group_of_volumes_is_not_that_of_processes() {
    let identity = |settings: &str| {
        let moved = moved(&[&format!("hub: {{config: {{KubeSpawner: {settings}}}}}")]);
        assert_eq!(moved.report.open(), 0, "{}", moved.report.text());
        moved.config["auth"]["identities"]["default"].clone()
    };
    let users = |id: u64| json!({"name": "users", "id": id});
    for (settings, gid, groups) in [
        ("{fs_gid: 200}", 200, json!([users(200)])),
        ("{gid: 1000}", 1000, json!([users(100), {"name": "group-1000", "id": 1000}])),
        ("{gid: 1000, fs_gid: 200}", 1000, json!([users(200), {"name": "group-1000", "id": 1000}])),
        ("{supplemental_gids: [7, 100]}", 100, json!([users(100), {"name": "group-7", "id": 7}])),
    ] {
        let found = identity(settings);
        assert_eq!((&found["gid"], &found["groups"]), (&json!(gid), &groups), "{settings}");
    }
}

#[test]
fn existing_service_accounts_are_carried_over_with_their_grant() {
    let moved = moved(&["
singleuser:
  serviceAccountName: user-sa
  profileList: [{display_name: A, kubespawner_override: {service_account: gpu-sa}}]
"]);
    assert_eq!(moved.report.open(), 0, "{}", moved.report.text());
    let policy = &moved.config["policies"][0];
    assert_eq!(policy["config"]["kubespawner"]["service_account"], "user-sa");
    assert_eq!(policy["grants"]["service-accounts"], json!(["gpu-sa", "user-sa"]));
}

#[test]
fn images_to_pull_in_advance_are_carried_over() {
    let moved = moved(&["
prePuller: {extraImages: {a: {name: quay.io/a, tag: '1'}, b: {name: quay.io/b}}, hook: {enabled: false}, continuous: {enabled: true}}
"]);
    assert_eq!(
        moved.config["images"]["prepull"]["images"],
        json!([{"reference": "quay.io/a:1"}, {"reference": "quay.io/b"}])
    );
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

/// The entry of a key, or else that of the nearest key above it.
fn nearest<'a>(report: &'a Report, path: &str) -> Option<&'a Entry> {
    let leads = |entry: &&Entry| {
        path.strip_prefix(&entry.path).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    report.entries.iter().filter(leads).max_by_key(|entry| entry.path.len())
}

fn leaves<'a>(path: &str, value: &'a Value, found: &mut Vec<(String, &'a Value)>) {
    match value {
        Value::Null => {}
        // Without entries it has nothing that could be dropped.
        Value::Object(entries) => {
            entries.iter().for_each(|(key, value)| leaves(&below(path, key), value, found));
        }
        Value::Array(items) if !items.is_empty() => {
            items.iter().enumerate().for_each(|(at, value)| leaves(&format!("{path}[{at}]"), value, found));
        }
        value => found.push((path.to_owned(), value)),
    }
}

/// Gives each text and each number a part that no other one has.
fn mark(value: &mut Value, marks: &mut u64) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| mark(item, marks)),
        Value::Object(entries) => entries.values_mut().for_each(|value| mark(value, marks)),
        Value::String(text) if !text.is_empty() => {
            *marks += 1;
            *text = format!("{text}v{marks}z");
        }
        Value::Number(number) => {
            *marks += 1;
            *number = (*marks + 7300).into();
        }
        _ => {}
    }
}

/// The part of a value by which it is found in the result; none for a value that is not unique.
fn mark_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => text.rfind('v').map(|at| text[at..].to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns values of any shape whose maps have these names.
pub(crate) fn any_value(
    names: impl Strategy<Value = String> + Clone + 'static,
) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        (0..9_i64).prop_map(Value::from),
        "[a-z{}$()/]{0,6}".prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 12, 3, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::btree_map(names.clone(), inner, 0..3)
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
    /// Values of any shape, at any key: there is no panic, and what the report calls carried over is in the result.
    #[test]
    fn every_key_is_reported(given in proptest::collection::vec((any_path(), any_value("[a-z]{1,4}|name|valueFrom|choices")), 1..6)) {
        let mut marks = 0;
        let files: Vec<ValuesFile> = given
            .iter()
            .map(|(path, value)| {
                let mut value = value.clone();
                mark(&mut value, &mut marks);
                file("v.yaml", &serde_json::to_string(&nested(path, value)).unwrap())
            })
            .collect();
        let Ok(moved) = migrate(&files, &target()) else { return Ok(()) };
        let values: Vec<&Value> = files.iter().map(|file| &file.values).collect();
        let all = crate::layered(&json!({}), &values);
        let mut found = Vec::new();
        leaves("", &all, &mut found);
        let result = moved.config.to_string();
        for (path, value) in found {
            let entry = nearest(&moved.report, &path);
            prop_assert!(entry.is_some() || crate::draft::is_nothing(value), "{path}\n{}", moved.report.text());
            if let (Some(Outcome::Carried { .. }), Some(mark)) = (entry.map(|entry| &entry.outcome), mark_of(value)) {
                prop_assert!(result.contains(&mark), "{path} is not carried over: {value}\n{}\n{}", yaml(&moved.config), moved.report.text());
            }
        }
        let defaults = moved.report.entries.iter().filter(|entry| entry.place.is_none());
        prop_assert!(defaults.into_iter().all(|entry| !matches!(entry.outcome, Outcome::Stays(_))));
    }
}
