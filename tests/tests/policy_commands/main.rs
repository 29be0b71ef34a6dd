//! `wasmspawner policy`: the steps of a policy's author, from nothing to a tested policy.
#![expect(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]

mod dev;
mod list;
mod registry;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use wasmspawner_tests::guests;

const BINARY: &str = env!("CARGO_BIN_EXE_wasmspawner-under-test");
const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// `wasmspawner policy`, without the settings and logins of the person who runs the tests.
fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.arg("policy").args(arguments).current_dir(folder);
    for variable in ["WASMSPAWNER_URL", "WASMSPAWNER_TOKEN", "SOURCE_DATE_EPOCH"] {
        command.env_remove(variable);
    }
    command.env("DOCKER_CONFIG", folder.join("docker"));
    command
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().unwrap()
}

/// Runs a command that must succeed, and returns its output.
fn told(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that must fail, and returns its message.
fn refusal(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
}

fn example() -> PathBuf {
    Path::new(REPOSITORY).join("plugins/sizes-by-group")
}

fn component(package: &str) -> String {
    guests::component(package).to_str().unwrap().to_owned()
}

/// The tutorial on the SDK's page, in an empty folder.
#[test]
fn from_nothing_to_a_policy_of_one_s_own() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    assert!(told(here, &["new", "mine"]).contains("wasmspawner policy build mine"));
    assert!(refusal(here, &["new", "mine"]).contains("exists and is not empty"));
    assert!(refusal(here, &["new", "My Policy"]).contains("is no name of a policy"));
    assert!(refusal(here, &["build", "yours"]).contains("`wasmspawner policy new` makes a policy"));

    // The crates are those of this repository, so they are already present.
    let target = concat!(env!("CARGO_TARGET_TMPDIR"), "/new-policy");
    let offline = |program: &str| {
        let mut command = Command::new(program);
        command.current_dir(here).env("CARGO_NET_OFFLINE", "true").env("CARGO_TARGET_DIR", target);
        command
    };
    let tests = offline("cargo").args(["test", "--manifest-path", "mine/Cargo.toml"]).output().unwrap();
    assert!(tests.status.success(), "{tests:?}");
    let built = offline(BINARY).args(["policy", "build", "mine"]).output().unwrap();
    assert!(built.status.success(), "{built:?}");
    assert!(String::from_utf8(built.stdout).unwrap().starts_with("mine/mine.wasm  "));

    let tested = told(here, &["test", "mine/mine.wasm", "mine/cases", "--config", "mine/config.yaml"]);
    assert!(tested.ends_with("3 cases, 0 failed\n"), "{tested}");
    let inspected: Value =
        serde_json::from_str(&told(here, &["inspect", "mine/mine.wasm", "--json"])).unwrap();
    assert_eq!(
        (&inspected["name"], &inspected["exports"]),
        (&json!("mine"), &json!(["config", "prepare", "form", "build-pod"]))
    );

    // An unexpected answer is a failure that names its place.
    std::fs::write(here.join("mine/config.yaml"), "sizes: [{name: small, cpu: 2, memory: 2Gi}]").unwrap();
    let failed = refusal(here, &["test", "mine/mine.wasm", "mine/cases", "--config", "mine/config.yaml"]);
    let difference =
        r#"/fields/0/kind/radio/choices/0/description: expected "1 CPU, 2 GiB", found "2 CPU, 2 GiB""#;
    assert!(failed.contains(difference), "{failed}");
    told(here, &["test", "mine/mine.wasm", "mine/cases", "--config", "mine/config.yaml", "--update"]);
    told(here, &["test", "mine/mine.wasm", "mine/cases", "--config", "mine/config.yaml"]);
}

#[test]
fn every_hook_is_asked_what_the_input_says() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let default = component("policy-default");
    let config = json!({
        "sizes": [{ "name": "small", "cpu": 1, "memory": "1Gi" }],
        "env": { "HOME_OF": "{username}" },
        "quota": { "default": { "memory": "8Gi" } },
        "workloads": [{ "workloads": ["deployment/shop/*"], "groups": ["shop"] }],
    });
    std::fs::write(here.join("config.yaml"), config.to_string()).unwrap();
    let ask = |hook: &str, input: Value| {
        std::fs::write(here.join("input.json"), input.to_string()).unwrap();
        let output = run(here, &["run", &default, hook, "--config", "config.yaml", "--input", "input.json"]);
        let answer: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| json!(format!("{output:?}")));
        answer
    };
    assert_eq!(ask("quota.limits", json!({}))["memory_bytes"], 8_u64 << 30);
    assert_eq!(ask("form.render", json!({}))["fields"][0]["name"], "size");
    assert_eq!(ask("form.parse", json!({ "options": { "size": "small" } }))["size"], "small");
    let wrong = ask("form.parse", json!({ "options": { "size": "huge" } }));
    assert_eq!(
        (&wrong["error"]["kind"], &wrong["error"]["fields"][0]["field"]),
        (&json!("invalid"), &json!("size"))
    );
    assert_eq!(ask("authorize.decide", json!({ "action": "stop" })), "allow");
    let lab =
        ask("build-pod.customize", json!({ "user": { "name": "eve" }, "options": { "size": "small" } }));
    assert_eq!(lab["env"][0]["value"]["literal"], "eve", "{lab}");
    // Only one hook is called, although the service calls both for the same lab.
    let no_such_size = json!({ "options": { "size": "huge" } });
    assert_eq!(ask("build-pod.customize", no_such_size.clone())["error"]["kind"], "invalid");
    assert_eq!(ask("lab-server.decide", no_such_size)["error"], Value::Null);
    let workload = json!({ "user": { "name": "ada", "groups": ["shop"] }, "workload": { "workload": "deployment/shop/web" } });
    assert_eq!(ask("inject.decide", workload)["allow"], true);
    let elsewhere = json!({ "user": { "name": "ada", "groups": ["shop"] }, "workload": { "workload": "deployment/bank/web" } });
    assert!(ask("inject.decide", elsewhere).get("deny").is_some());
    assert!(ask("inject.decide", json!({})).as_str().unwrap().contains("needs a `workload`"));

    let unknown = ask("quota.limits", json!({ "users": [] }));
    assert!(unknown.as_str().unwrap().contains("users"), "{unknown}");
    let door = component("policy-deny-group");
    std::fs::write(here.join("door.yaml"), "deny: [guests]").unwrap();
    let told = refusal(here, &["run", &door, "quota.limits", "--config", "door.yaml"]);
    assert!(
        told.contains("the policy does not export `quota`; it exports config, prepare, authorize"),
        "{told}"
    );
}

#[test]
fn a_configuration_is_checked_and_a_policy_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let sizes = component("policy-sizes-by-group");
    let config = example().join("config.yaml");
    let config = config.to_str().unwrap();
    assert_eq!(told(here, &["validate", &sizes, "--config", config]), "ok\n");
    std::fs::write(here.join("wrong.yaml"), "sizes: [{name: a, cpu: x, memory: 1Gi}]\nsize: 1").unwrap();
    let problems = refusal(here, &["validate", &sizes, "--config", "wrong.yaml"]);
    assert!(problems.contains("/sizes/0/cpu: ") && problems.contains("/size: "), "{problems}");
    let nothing = refusal(here, &["validate", "missing.wasm"]);
    assert!(nothing.contains("missing.wasm"), "{nothing}");

    let cases = example().join("cases");
    let tested = told(here, &["test", &sizes, cases.to_str().unwrap(), "--config", config]);
    assert!(tested.ends_with("3 cases, 0 failed\n"), "{tested}");

    let measured = told(here, &["bench", &sizes, "--config", config, "--calls", "10", "--json"]);
    let measured: Value = serde_json::from_str(&measured).unwrap();
    let hooks: Vec<_> = measured.as_object().unwrap().keys().collect();
    assert_eq!(hooks, ["build-pod.customize", "form.parse", "form.render"]);
    for times in measured.as_object().unwrap().values() {
        assert!(
            ["median_us", "p99_us", "calls_per_second"].iter().all(|name| times[name].as_f64() > Some(0.0))
        );
    }
    let schema = told(here, &["inspect", &component("policy-default"), "--schema"]);
    assert!(serde_json::from_str::<Value>(&schema).unwrap()["properties"].is_object());
}

#[test]
fn a_policy_and_what_may_replace_it_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let write = |name: &str, text: &str| std::fs::write(here.join(name), text).unwrap();
    write("now.yaml", "deny: [guests]");
    write("next.yaml", "deny: [guests, students]");
    let asked = |group: &str| json!({ "hook": "authorize.decide", "input": { "user": { "name": "ada", "groups": [group] } }, "at": "then" });
    write("asked.json", &json!([asked("guests"), asked("students")]).to_string());
    let policy = component("policy-deny-group");
    let diff =
        ["diff", &policy, &policy, "asked.json", "--config", "now.yaml", "--candidate-config", "next.yaml"];
    let found = refusal(here, &diff);
    assert!(found.starts_with("asked.json, 2: authorize.decide\n"), "{found}");
    assert!(
        found.contains(r#"    : "allow" becomes {"deny":"Your groups may not start a lab here."}"#),
        "{found}"
    );
    assert!(found.ends_with("1 of 2 answers differ\n"), "{found}");
    assert_eq!(told(here, &diff[..6]), "0 of 2 answers differ\n");
    write("asked.json", r#"[{"hook": "authorize.ask"}]"#);
    assert!(refusal(here, &diff).contains("asked.json, 1"), "the place of a mistake");
}
