//! `wasmspawner migrate`

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use wasmspawner_migration::{Migration, Target};

use super::migrate_nublado::NubladoArgs;
use super::migration_output::{finish, read, values_files};

const EXAMPLES: &str = "\
Examples:
  wasmspawner migrate zero-to-jupyterhub -f values.yaml
  wasmspawner migrate zero-to-jupyterhub -f values.yaml -f prod.yaml --namespace jhub --output moved
  wasmspawner check --config moved/wasmspawner.yaml

The exit code is 0 if nothing has to be decided by a person, 3 if something has to, and 1 if the files cannot be read.";

/// The values for the Hub's chart that every site needs.
const OF_THE_HUB: &str = include_str!("../../../../deploy/zero-to-jupyterhub/values.yaml");

/// Converts the configuration of another spawner
#[derive(Debug, Args)]
pub(super) struct MigrateArgs {
    #[command(subcommand)]
    from: From,
}

#[derive(Debug, Subcommand)]
enum From {
    /// Convert values of the Helm chart of JupyterHub, with the settings of its KubeSpawner
    ZeroToJupyterhub(ValuesArgs),
    /// Convert values of the Helm chart of Nublado, the spawner of the Rubin Science Platform
    Nublado(NubladoArgs),
    /// Convert a configuration of JupyterHub in Python: the settings of its KubeSpawner that are literals
    JupyterhubConfig(PythonArgs),
}

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
struct ValuesArgs {
    /// A file of values; may be repeated, and later ones count over earlier ones, as with Helm
    #[arg(long = "values", short = 'f', value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    to: TargetArgs,
}

#[derive(Debug, Args)]
struct PythonArgs {
    /// The file, such as `jupyterhub_config.py`
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    to: TargetArgs,
}

#[derive(Debug, Args)]
struct TargetArgs {
    /// A folder for the new files; without it, only the report is printed
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// The namespace of the Hub, in which labs and their claims are
    #[arg(long, value_name = "NAME", default_value = "jhub")]
    namespace: String,
    /// The namespace of this service; not that of the Hub
    #[arg(long, value_name = "NAME", default_value = "wasmspawner")]
    service_namespace: String,
    /// The component of the policy `default`, relative to the new configuration
    #[arg(long, value_name = "FILE", default_value = "policies/policy_default.wasm")]
    policy: String,
}

impl MigrateArgs {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        match self.from {
            From::ZeroToJupyterhub(args) => args.run(out),
            From::Nublado(args) => args.run(out),
            From::JupyterhubConfig(args) => args.run(out),
        }
    }
}

impl ValuesArgs {
    fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let files = values_files(&self.files)?;
        let migration =
            wasmspawner_migration::migrate(&files, &self.to.target()).map_err(anyhow::Error::msg)?;
        self.to.finish(migration, &self.files, out)
    }
}

impl PythonArgs {
    fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let name = self.file.display().to_string();
        let text = read(&self.file)?;
        let migration = wasmspawner_migration::migrate_python(&name, &text, &self.to.target());
        self.to.finish(migration, &[self.file], out)
    }
}

impl TargetArgs {
    fn target(&self) -> Target {
        Target {
            namespace: self.namespace.clone(),
            service_namespace: self.service_namespace.clone(),
            policy: self.policy.clone(),
        }
    }

    /// The end of the report: what to do with the files.
    fn next(&self) -> String {
        let Some(folder) = &self.output else {
            return "## Next\n\nGive `--output DIR` to write the files, and check them with `wasmspawner check`.\n\n".to_owned();
        };
        let folder = folder.display();
        format!(
            "## Next\n\n\
             1. Put the policy's component at `{folder}/{}`, if it is not there.\n\
             2. `wasmspawner check --config {folder}/wasmspawner.yaml`\n\
             3. `wasmspawner render -c {folder}/wasmspawner.yaml --user NAME --explain`, for a lab as it will be\n\
             4. Build the Hub's image (`deploy/zero-to-jupyterhub/Containerfile`), and name it in `{folder}/hub-values.yaml` and `both-values.yaml`.\n\
             5. Go on with \"Check the names of volumes\" in `deploy/MOVING-FROM-KUBESPAWNER.md`.\n\n",
            self.policy
        )
    }

    fn finish(
        &self,
        migration: Migration,
        files: &[PathBuf],
        out: &mut impl Write,
    ) -> anyhow::Result<ExitCode> {
        let hub = of_the_hub(&migration, &self.target())?;
        let yaml = |values| anyhow::Ok(serde_saphyr::to_string(&below(&migration.root, values))?);
        let further = [("both-values.yaml", yaml(of_both(hub.clone()))?), ("hub-values.yaml", yaml(hub)?)];
        finish(migration, self.output.as_deref(), files, &further, &self.next(), out)
    }
}

/// The values for the Hub's chart. The comments of the file that they are from are for another installation.
fn of_the_hub(migration: &Migration, target: &Target) -> anyhow::Result<Value> {
    let mut values: Value = serde_saphyr::from_str(OF_THE_HUB)?;
    let api = format!("http://wasmspawner.{}:8090/spawner/v1", target.service_namespace);
    values["hub"]["config"]["WasmSpawner"]["api_url"] = api.into();
    let token = &mut values["hub"]["extraEnv"]["WASMSPAWNER_TOKEN"]["valueFrom"]["secretKeyRef"];
    token["name"] = migration.hub_secret.clone().into();
    for (of, own) in [("hub", &migration.hub_egress), ("proxy/chp", &migration.proxy_egress)] {
        let rules = values.pointer_mut(&format!("/{of}/networkPolicy/egress")).and_then(Value::as_array_mut);
        let rules = rules.with_context(|| format!("the Hub's values have no rules of egress of {of}"))?;
        for rule in rules.iter_mut() {
            aim(rule, migration, target);
        }
        rules.splice(0..0, own.iter().cloned());
    }
    Ok(values)
}

/// The same values while both spawners run: nothing of KubeSpawner is turned off, and nobody has moved.
fn of_both(mut values: Value) -> Value {
    for (of, key) in [
        ("", "rbac"),
        ("", "singleuser"),
        ("", "prePuller"),
        ("", "scheduling"),
        ("/hub", "serviceAccount"),
        ("/hub", "concurrentSpawnLimit"),
        ("/hub", "consecutiveFailureLimit"),
    ] {
        values.pointer_mut(of).and_then(Value::as_object_mut).map(|values| values.remove(key));
    }
    let config = &mut values["hub"]["config"];
    config["JupyterHub"]["spawner_class"] = "wasmspawner.moving.MovingSpawner".into();
    config["MovingSpawner"] = json!({"groups": [], "server_names": []});
    values
}

/// Values below the key at which the site has those of the Hub's chart.
fn below(root: &str, values: Value) -> Value {
    let keys = root.split('.').rev().filter(|key| !key.is_empty());
    keys.fold(values, |values, key| json!({ key: values }))
}

/// Changes a rule for what the Hub may connect to: labs may have another port, and the service is in another namespace.
fn aim(rule: &mut Value, migration: &Migration, target: &Target) {
    let peer = &mut rule["to"][0];
    if peer.get("namespaceSelector").is_none() {
        peer["namespaceSelector"] =
            json!({"matchLabels": {"kubernetes.io/metadata.name": target.service_namespace}});
    } else if let Some(port) = migration.config.pointer("/policies/0/config/kubespawner/port") {
        rule["ports"][0]["port"] = port.clone();
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use wasmspawner_migration::ValuesFile;

    use super::super::migration_output::{OPEN, problems};
    use super::*;

    fn target() -> Target {
        Target { namespace: "jhub".into(), service_namespace: "spawner".into(), policy: "p.wasm".into() }
    }

    #[test]
    fn values_of_the_hub_are_below_the_key_of_the_site() {
        for (text, root, secret) in [
            ("singleuser: {defaultUrl: /lab}", "", "hub"),
            ("jupyterhub: {fullnameOverride: x, singleuser: {defaultUrl: /lab}}", "/jupyterhub", "x-hub"),
            ("base: {jupyterhub: {singleuser: {defaultUrl: /lab}}}", "/base/jupyterhub", "hub"),
        ] {
            let file = ValuesFile::parse("v.yaml", text).unwrap();
            let migration = wasmspawner_migration::migrate(&[file], &target()).unwrap();
            let values = below(&migration.root, of_the_hub(&migration, &target()).unwrap());
            let at = |place: &str| values.pointer(&format!("{root}/hub/{place}")).unwrap().clone();
            assert_eq!(
                at("config/WasmSpawner/api_url"),
                "http://wasmspawner.spawner:8090/spawner/v1",
                "{text}"
            );
            assert_eq!(at("extraEnv/WASMSPAWNER_TOKEN/valueFrom/secretKeyRef/name"), secret, "{text}");
        }
    }

    #[test]
    fn hub_and_proxy_may_connect_to_labs_on_their_port_and_keep_rules_of_the_site() {
        let own = "networkPolicy: {egress: [{ports: [{port: 5432}]}]}";
        let text = format!(
            "{{hub: {{{own}, config: {{KubeSpawner: {{port: 9999}}}}}}, proxy: {{chp: {{{own}}}}}, singleuser: {{}}}}"
        );
        let file = ValuesFile::parse("v.yaml", &text).unwrap();
        let migration = wasmspawner_migration::migrate(&[file], &target()).unwrap();
        let values = of_the_hub(&migration, &target()).unwrap();
        for (of, rules) in [("hub", 3), ("proxy/chp", 2)] {
            let egress = values.pointer(&format!("/{of}/networkPolicy/egress")).unwrap().as_array().unwrap();
            assert_eq!(egress.len(), rules, "{of}");
            assert_eq!(egress[0]["ports"][0]["port"], 5432, "{of}");
            assert_eq!(egress[1]["ports"][0]["port"], 9999, "{of}");
        }
        let to_service = values.pointer("/hub/networkPolicy/egress/2").unwrap();
        assert_eq!(
            to_service["to"][0]["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"],
            "spawner"
        );
    }

    #[test]
    fn while_both_spawners_run_nothing_of_kubespawner_is_turned_off() {
        let file = ValuesFile::parse("v.yaml", "singleuser: {defaultUrl: /lab}").unwrap();
        let migration = wasmspawner_migration::migrate(&[file], &target()).unwrap();
        let hub = of_the_hub(&migration, &target()).unwrap();
        let both = of_both(hub.clone());
        let keys = |values: &Value| values.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&both), ["hub", "proxy"]);
        assert_eq!(both["proxy"], hub["proxy"]);
        assert_eq!(both["hub"]["networkPolicy"], hub["hub"]["networkPolicy"]);
        for of_kubespawner in ["serviceAccount", "concurrentSpawnLimit", "consecutiveFailureLimit"] {
            assert!(hub["hub"].get(of_kubespawner).is_some(), "{of_kubespawner}");
            assert_eq!(both["hub"].get(of_kubespawner), None);
        }
        let config = &both["hub"]["config"];
        assert_eq!(config["JupyterHub"]["spawner_class"], "wasmspawner.moving.MovingSpawner");
        assert_eq!(config["MovingSpawner"]["groups"], json!([]));
        assert_eq!(config["WasmSpawner"], hub["hub"]["config"]["WasmSpawner"]);
    }

    #[test]
    fn what_the_service_would_refuse_is_found() {
        let values = ValuesFile::parse("v.yaml", "singleuser: {podNameTemplate: 'x-{usrname}'}").unwrap();
        let migration = wasmspawner_migration::migrate(&[values], &target()).unwrap();
        let found = problems(&migration.config);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, "names.pod", "{found:?}");
        let sound = ValuesFile::parse("v.yaml", "singleuser: {defaultUrl: /lab}").unwrap();
        assert_eq!(problems(&wasmspawner_migration::migrate(&[sound], &target()).unwrap().config), []);
    }

    #[test]
    fn files_are_written_once_and_unreadable_ones_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let values = folder.path().join("values.yaml");
        std::fs::write(&values, "singleuser: {defaultUrl: /lab, mystery: 1}\n").unwrap();
        let run = |file: &Path| {
            let args = ValuesArgs {
                files: vec![file.to_owned()],
                to: TargetArgs {
                    output: Some(folder.path().join("out")),
                    namespace: "jhub".into(),
                    service_namespace: "wasmspawner".into(),
                    policy: "p.wasm".into(),
                },
            };
            let mut out = Vec::new();
            args.run(&mut out).map(|code| (code, String::from_utf8(out).unwrap()))
        };
        let (code, report) = run(&values).unwrap();
        assert_eq!(code, ExitCode::from(OPEN));
        assert!(report.ends_with("1 entry is to be decided.\n"), "{report}");
        for name in
            ["wasmspawner.yaml", "chart-values.yaml", "hub-values.yaml", "both-values.yaml", "report.md"]
        {
            assert!(folder.path().join("out").join(name).exists(), "{name}");
        }
        assert!(format!("{:#}", run(&values).unwrap_err()).contains("name an empty folder"));
        assert!(
            format!("{:#}", run(Path::new("/none/values.yaml")).unwrap_err())
                .starts_with("cannot read /none")
        );
    }
}
