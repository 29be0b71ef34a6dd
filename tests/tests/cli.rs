//! The command line as users run it: a process with output and exit code.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::{Command, Output};

use serde_json::{Value, json};
use wasmspawner_tests::api::PREFIX;
use wasmspawner_tests::guests;
use wasmspawner_tests::service::Service;

const BINARY: &str = env!("CARGO_BIN_EXE_wasmspawner-under-test");

/// The result of a command.
struct Ended {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Ended {
    #[track_caller]
    fn ok(self) -> String {
        assert_eq!(self.code, 0, "{}{}", self.stdout, self.stderr);
        self.stdout
    }
}

fn run(arguments: &[&str]) -> Ended {
    let mut command = Command::new(BINARY);
    command.args(arguments).env_remove("WASMSPAWNER_TOKEN").env_remove("WASMSPAWNER_URL");
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: status.code().unwrap_or(-1), stdout: text(stdout), stderr: text(stderr) }
}

/// A site with the policy `default`; the service is not started.
fn site(change: impl FnOnce(&mut Value)) -> Service {
    Service::prepare(BINARY, |config| {
        config["policies"] = json!([{
            "name": "default",
            "path": guests::component("policy-default"),
            "config": {
                "images": [{"name": "minimal", "reference": "lab:1"}],
                "sizes": [{"name": "small", "cpu": 1, "memory": "1Gi"}, {"name": "large", "cpu": 4, "memory": "8Gi"}],
                "volumes": [{"name": "home", "nfs": {"server": "nfs", "path": "/home"}}],
                "mounts": [{"volume": "home", "path": "/home/jovyan", "sub_path": "{username}"}],
            },
        }]);
        change(config);
    })
    .unwrap()
}

fn config(service: &Service) -> String {
    service.config_file().to_str().unwrap().to_owned()
}

#[test]
fn check_accepts_a_valid_configuration() {
    let site = site(|_| {});
    let printed = run(&["check", "--config", &config(&site)]).ok();
    assert!(printed.contains("default") && printed.contains("build-pod"), "{printed}");
}

#[test]
fn check_reports_all_errors() {
    let fail = |change: fn(&mut Value)| {
        let answer = run(&["check", "--config", &config(&site(change))]);
        assert_ne!(answer.code, 0, "{}", answer.stdout);
        answer.stdout + &answer.stderr
    };
    let printed = fail(|config| config["limits"] = json!({"spawn": "soon"}));
    assert!(
        printed.contains("limits.spawn: line") && printed.contains("write it as 30s, 10m or 48h"),
        "{printed}"
    );
    let printed = fail(|config| config["lab"] = json!({"prot": 8888}));
    assert!(printed.contains("lab.prot") && printed.contains("port"), "{printed}");
    let printed = fail(|config| {
        config["names"] = json!({"pod": "nb-{user}"});
        config["http"]["prefix"] = json!("spawner");
    });
    assert!(
        printed.contains("names.pod") && printed.contains("username") && printed.contains("http.prefix"),
        "{printed}"
    );

    let wrong_policy = site(|config| config["policies"][0]["config"]["size"] = json!([]));
    let answer = run(&["check", "--config", &config(&wrong_policy)]);
    assert_ne!(answer.code, 0);
    let printed = answer.stdout + &answer.stderr;
    assert!(
        printed.contains("default") && printed.contains("/size") && printed.contains("sizes"),
        "{printed}"
    );

    let missing = run(&["check", "--config", "/nowhere/wasmspawner.yaml"]);
    assert_ne!(missing.code, 0);
    assert!(missing.stderr.contains("/nowhere/wasmspawner.yaml"), "{}", missing.stderr);
}

#[test]
fn render_prints_what_a_spawn_would_create() {
    let site = site(|_| {});
    let file = config(&site);
    let arguments =
        ["render", "-c", &file, "--user", "ada.l@example.org", "--option", "size=large", "--explain"];
    let yaml = run(&arguments).ok();
    for expected in [
        "kind: Namespace",
        "kind: NetworkPolicy",
        "kind: Pod",
        "subPath: ada-l-example-org---",
        "memory: 8Gi",
        "# ",
    ] {
        assert!(yaml.contains(expected), "{expected} is not in:\n{yaml}");
    }
    assert_eq!(yaml, run(&arguments).ok(), "equal requests give equal objects");

    let wrong = run(&["render", "-c", &file, "--user", "ada", "--option", "size=huge"]);
    assert_ne!(wrong.code, 0);
    assert!(wrong.stderr.contains("size") && wrong.stderr.contains("large"), "{}", wrong.stderr);
}

/// The statements on the page of the policy `sudo-by-group`.
#[test]
fn sudo_is_for_members_and_needs_what_the_operator_allows() {
    let rendered = |grants: Value, group: &str| {
        let site = site(|config| {
            config["lab"]["image"] = json!("lab:1");
            config["lab"]["security"] = json!({"privilege_escalation": true, "default_capabilities": true});
            config["policies"] = json!([{
                "name": "sudo",
                "path": guests::component("policy-sudo-by-group"),
                "grants": grants,
                "config": {"groups": ["staff"], "image": "busybox:1.37"},
            }]);
        });
        run(&["render", "-c", &config(&site), "--user", "ada", "--group", group])
    };
    let yaml = rendered(json!({"run-as-root-init": true}), "staff").ok();
    for expected in [
        "mountPath: /etc/sudoers.d/lab-user",
        "allowPrivilegeEscalation: true",
        "runAsUser: 0",
        "pod-security.kubernetes.io/enforce: baseline",
    ] {
        assert!(yaml.contains(expected), "{expected} is not in:\n{yaml}");
    }
    assert!(!yaml.contains("privileged: true") && !yaml.contains("drop:"), "{yaml}");
    let others = rendered(json!({"run-as-root-init": true}), "guests").ok();
    assert!(!others.contains("sudo-rule") && !others.contains("runAsUser: 0"), "{others}");
    let refused = rendered(json!({}), "staff");
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("needs the grant `run-as-root-init`"), "{}", refused.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn labs_are_started_watched_and_stopped() {
    let mut service = site(|_| {});
    service.run().await.unwrap();
    let labs = labs_of(&service);
    let printed = labs(&["spawn", "ada", "--option", "size=small", "--wait"]).ok();
    assert!(printed.contains("ready"), "{printed}");
    let listed: Value = serde_json::from_str(&labs(&["list", "--json"]).ok()).unwrap();
    assert_eq!((&listed[0]["username"], &listed[0]["status"]), (&json!("ada"), &json!("running")));
    assert!(labs(&["list"]).ok().contains("ada"));
    let shown: Value = serde_json::from_str(&labs(&["show", "ada", "--json"]).ok()).unwrap();
    assert_eq!(shown["options"]["size"], "small");
    assert!(labs(&["events", "ada"]).ok().contains("ready"));
    assert_eq!(labs(&["logs", "ada", "--tail", "1"]).ok(), "A simulated container writes no log.\n");
    let log: Value = serde_json::from_str(&labs(&["logs", "ada", "--json"]).ok()).unwrap();
    assert_eq!((&log["pod"], &log["container"]), (&json!("nb-ada"), &json!("notebook")));
    let other = labs(&["logs", "ada", "--container", "sidecar"]);
    assert_ne!(other.code, 0);
    assert!(other.stderr.contains("no container `sidecar`; it has notebook"), "{}", other.stderr);

    let again = labs(&["spawn", "ada"]);
    assert_ne!(again.code, 0);
    assert!(again.stderr.contains("already running"), "{}", again.stderr);
    let refused = labs(&["spawn", "grace", "--option", "size=huge"]);
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains("size"), "{}", refused.stderr);

    let ada = service.user("ada").unwrap();
    let kernel = json!({
        "kernel_name": "python3", "command": ["python3"],
        "connection": {"key": "k", "signature_scheme": "hmac-sha256"},
    });
    let start = ada.request(http::Method::POST, &format!("{PREFIX}/labs/ada/kernels/k1")).json(&kernel);
    assert_eq!(ada.send(start).await.unwrap().status, 201);
    assert!(labs(&["events", "ada~kernel=k1"]).ok().contains("ready"));
    assert!(labs(&["show", "ada~kernel=k1"]).ok().contains("python3"));
    labs(&["stop", "ada~kernel=k1", "--wait"]).ok();
    assert!(labs(&["show", "ada~kernel=k1"]).stderr.contains("no kernel of this id"), "it is gone");
    assert!(labs(&["logs", "ada~kernel=k1"]).stderr.contains("this is about a lab"));
    assert!(labs(&["show", "ada"]).ok().contains("running"), "and its lab is not");

    labs(&["stop", "ada", "--wait"]).ok();
    let gone = labs(&["show", "ada"]);
    assert_ne!(gone.code, 0);
    assert!(gone.stderr.contains("no lab"), "{}", gone.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn volumes_are_shown_and_released() {
    let mut service = site(|config| {
        config["kubernetes"] = json!({"namespaces": "retain"});
        let create = json!({"storage": "1Gi", "on_server_deletion": "delete"});
        config["policies"][0]["config"]["volumes"] =
            json!([{"name": "home", "claim": {"name": "{pvc_name}", "create": create}}]);
    });
    service.run().await.unwrap();
    let labs = labs_of(&service);
    assert!(labs(&["volumes", "ada"]).ok().contains("nothing is remembered of ada"));
    labs(&["spawn", "ada", "--wait"]).ok();
    assert_eq!(
        labs(&["volumes", "ada"]).ok(),
        "nublado-ada/claim-ada  goes with the last server that uses it\n"
    );
    let early = labs(&["volumes", "ada", "--release"]);
    assert_ne!(early.code, 0);
    assert!(early.stderr.contains("stop it before"), "{}", early.stderr);
    labs(&["stop", "ada", "--wait"]).ok();
    assert_eq!(labs(&["volumes", "ada", "--release"]).ok(), "nublado-ada/claim-ada  deleted\n");
}

/// A site of Zero to JupyterHub moves: its values are converted, the result is accepted at once, and labs of each profile
/// can be made of it.
#[test]
fn values_of_zero_to_jupyterhub_become_a_configuration_that_works() {
    let folder = tempfile::tempdir().unwrap();
    let cases = concat!(env!("CARGO_MANIFEST_DIR"), "/../host/migration/cases");
    let policy = guests::component("policy-default");
    for (case, labs) in [
        ("static-homes", vec![(vec![], "quay.io/jupyter/scipy-notebook:2024-03-18")]),
        (
            "profiles",
            vec![
                (vec!["--option", "profile=choose", "--option", "image=b"], "b:1"),
                (vec!["--option", "profile=choose"], "a:1"),
                (
                    vec!["--option", "profile=gpu", "--group", "gpu"],
                    "quay.io/jupyterhub/k8s-singleuser-sample:4.3.2",
                ),
            ],
        ),
    ] {
        let (values, output) = (format!("{cases}/{case}.yaml"), folder.path().join(case));
        let output = output.to_str().unwrap();
        let convert = ["migrate", "zero-to-jupyterhub", "-f", &values, "--output", output, "--policy"];
        let moved = run(&[&convert[..], &[policy.to_str().unwrap()]].concat());
        assert_eq!(moved.code, 3, "{}{}", moved.stdout, moved.stderr);
        assert!(moved.stdout.contains("## To be decided"), "{}", moved.stdout);
        let config = format!("{output}/wasmspawner.yaml");
        run(&["check", "--config", &config]).ok();
        for (options, image) in labs {
            let rendered = run(&[&["render", "-c", &config, "--user", "ada"][..], &options].concat()).ok();
            assert!(rendered.contains(&format!("image: {image}\n")), "{case} {options:?}\n{rendered}");
        }
    }
    let unreadable = run(&["migrate", "zero-to-jupyterhub", "-f", "/none.yaml"]);
    assert_eq!(unreadable.code, 1);
    assert!(unreadable.stderr.contains("cannot read /none.yaml"), "{}", unreadable.stderr);
}

/// Runs `wasmspawner labs` for a running service. The one-machine mode keeps its tokens beside its configuration.
fn labs_of(service: &Service) -> impl Fn(&[&str]) -> Ended {
    let url = format!("http://{}/spawner/v1", service.api());
    let state_dir = service.folder().to_str().unwrap().to_owned();
    move |arguments| {
        let connection = ["labs", "--url", &url, "--state-dir", &state_dir];
        tokio::task::block_in_place(|| run(&[&connection[..], arguments].concat()))
    }
}

#[test]
fn the_error_about_an_unreachable_service_names_its_address() {
    let answer = run(&["labs", "--url", "http://127.0.0.1:9/spawner/v1", "--token", "x", "list"]);
    assert_ne!(answer.code, 0);
    assert!(answer.stderr.contains("127.0.0.1:9"), "{}", answer.stderr);
    assert_eq!(answer.stderr.matches("error:").count(), 1, "{}", answer.stderr);
}

#[test]
fn every_command_has_help_and_a_wrong_argument_is_named() {
    let help = run(&["--help"]).ok();
    for command in ["serve", "check", "render", "labs", "token", "schema", "names"] {
        assert!(help.contains(command), "{command} is not in:\n{help}");
        assert!(run(&[command, "--help"]).ok().contains("Usage:"));
    }
    let wrong = run(&["serve", "--prot", "80"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("--prot"), "{}", wrong.stderr);
    let schema: Value = serde_json::from_str(&run(&["schema"]).ok()).unwrap();
    assert!(schema["properties"]["names"].is_object());
}
