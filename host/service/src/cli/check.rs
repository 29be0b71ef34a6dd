//! `wasmspawner check`

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use wasmspawner_core::config::{PolicyConfig, RegistriesConfig};

use super::ConfigArgs;
use super::plain::plain;
use wasmspawner_policies::{EngineOptions, LoadError, LoadErrorKind, LoadedPolicy, Policies, PolicySpec};
use wasmspawner_registry::Artifacts;

const EXAMPLES: &str = "\
Example:
  $ wasmspawner check --config wasmspawner.yaml
  config: ok
  wasmspawner.yaml: policies[0].config/sizes/0/memory: \"2GiB\" is not a quantity

What is good goes to standard output, every problem to standard error; with a problem the exit code is 1.";

/// Checks the configuration and every policy. Each policy is loaded as the service loads it: it is compiled, its types
/// are compared with the WIT contract, its own configuration is validated and its hooks are tried. The check needs no
/// cluster and starts nothing.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    config: ConfigArgs,
}

impl CheckArgs {
    pub(super) fn run(self, out: &mut impl Write, problems: &mut impl Write) -> anyhow::Result<ExitCode> {
        let file = match self.config.file() {
            Ok(file) => file,
            Err(error) => {
                writeln!(problems, "{error:#}")?;
                return Ok(ExitCode::FAILURE);
            }
        };
        let origin = self.config.origin();
        let (policies, registries) = (file.policies.clone(), file.registries.clone());
        let mut found = Vec::new();
        match file.validate() {
            Ok(config) => {
                writeln!(out, "config: ok")?;
                for warning in config.warnings() {
                    writeln!(problems, "{origin}: warning: {warning}")?;
                }
            }
            Err(settings) => found.extend(settings.iter().map(ToString::to_string)),
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(check_policies(&policies, registries, out, &mut found))?;
        for problem in &found {
            writeln!(problems, "{origin}: {problem}")?;
        }
        Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Loads each policy by itself, so that an error in one does not hide errors in the others.
async fn check_policies(
    policies: &[PolicyConfig],
    registries: RegistriesConfig,
    out: &mut impl Write,
    found: &mut Vec<String>,
) -> anyhow::Result<()> {
    let options = EngineOptions { artifacts: Artifacts::new(registries), ..EngineOptions::default() };
    let engine = Policies::load(Vec::new(), options).await?;
    for (index, policy) in policies.iter().enumerate() {
        match load(&engine, policy).await {
            Ok(loaded) => {
                for policy in loaded {
                    writeln!(out, "{}", success_line(&policy))?;
                }
            }
            Err(error) => found.extend(problems(index, &error)),
        }
    }
    Ok(())
}

async fn load(engine: &Policies, policy: &PolicyConfig) -> Result<Vec<LoadedPolicy>, LoadError> {
    engine.replace(PolicySpec::all(std::slice::from_ref(policy))?).await?;
    Ok(engine.loaded())
}

fn success_line(policy: &LoadedPolicy) -> String {
    let LoadedPolicy { name, title, version, digest, signed_by, hooks, .. } = policy;
    let signed = signed_by.as_ref().map(|key| format!(", signed by {key}")).unwrap_or_default();
    format!("policy {name}: ok ({} {}, {digest}{signed}, {})", plain(title), plain(version), hooks.join(" "))
}

/// Returns the problems of `policies[index]`, each with its configuration key.
fn problems(index: usize, error: &LoadError) -> Vec<String> {
    let policy = format!("policies[{index}]");
    let key = match &error.kind {
        LoadErrorKind::Config(fields) => {
            let field = |pointer: &str| match pointer.trim_start_matches('/') {
                "" => format!("{policy}.config"),
                rest => format!("{policy}.config/{}", plain(rest)),
            };
            let line = |error: &wasmspawner_core::policy::FieldError| {
                format!("{}: {}", field(&error.field), plain(&error.message))
            };
            return fields.iter().map(line).collect();
        }
        LoadErrorKind::Data { name, place, problem } => {
            return vec![format!("{policy}.data.{}: {place}: {problem}", plain(name))];
        }
        LoadErrorKind::ConfigNotTaken => "config",
        LoadErrorKind::Digest(_) | LoadErrorKind::DigestMismatch { .. } => "digest",
        LoadErrorKind::DuplicateName => "name",
        LoadErrorKind::Reference { .. } | LoadErrorKind::Registry { .. } => "oci",
        LoadErrorKind::MissingHook { .. } => "requires",
        LoadErrorKind::WrongKey(_) | LoadErrorKind::NotSigned(_) => "signed_by",
        _ => "path",
    };
    vec![format!("{policy}.{key}: {error}")]
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasmspawner_core::policy::FieldError;

    fn printed(kind: LoadErrorKind) -> String {
        problems(1, &LoadError { policy: "site".into(), kind }).join("\n")
    }

    #[test]
    fn every_problem_has_its_key() {
        let fields = vec![
            FieldError::new("/sizes/0/memory", "\"2GiB\" is not a quantity"),
            FieldError::new("", "no image is given"),
            FieldError::new("x", "is \u{1b}unknown"),
        ];
        assert_eq!(
            printed(LoadErrorKind::Config(fields)),
            "policies[1].config/sizes/0/memory: \"2GiB\" is not a quantity\n\
             policies[1].config: no image is given\n\
             policies[1].config/x: is \\u{1b}unknown"
        );
        assert_eq!(
            printed(LoadErrorKind::NoMetadata),
            "policies[1].path: policy `site`: does not export wasmspawner:policy/metadata, which every policy must"
        );
        assert!(
            printed(LoadErrorKind::ConfigNotTaken).starts_with("policies[1].config: policy `site`: has a")
        );
        let digest = LoadErrorKind::DigestMismatch { pinned: "aa".into(), actual: "bb".into() };
        assert!(printed(digest).starts_with("policies[1].digest: "));
        let data = LoadErrorKind::Data {
            name: "teams".into(),
            place: "teams.csv".into(),
            problem: "it is not a file".into(),
        };
        assert_eq!(printed(data), "policies[1].data.teams: teams.csv: it is not a file");
    }

    fn check(config: &str) -> (ExitCode, String, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("site.yaml");
        std::fs::write(&path, config).unwrap();
        let config =
            ConfigArgs { config: Some(path), local: false, state_dir: None, listen: None, runtime: None };
        let (mut out, mut problems) = (Vec::new(), Vec::new());
        let code = CheckArgs { config }.run(&mut out, &mut problems).unwrap();
        let text =
            |bytes| String::from_utf8(bytes).unwrap().replace(&format!("{}/", folder.path().display()), "");
        (code, text(out), text(problems))
    }

    const LEAST: &str = "auth: {modes: [static], static: {tokens_file: tokens.yaml}}\n";

    #[test]
    fn a_configuration_with_only_auth_is_valid() {
        assert_eq!(check(LEAST), (ExitCode::SUCCESS, "config: ok\n".into(), String::new()));
    }

    #[test]
    fn settings_and_policies_are_reported_together() {
        let policies =
            "policies:\n- {name: gone, path: gone.wasm}\n- {name: pinned, path: x.wasm, digest: nope}\n";
        let (code, out, problems) = check(&format!("{LEAST}http: {{prefix: labs/}}\n{policies}"));
        assert_eq!((code, out.as_str()), (ExitCode::FAILURE, ""));
        insta::assert_snapshot!(problems, @r"
        site.yaml: http.prefix: `labs/` is not a valid path; write something like `/spawner/v1`, with no `/` at the end
        site.yaml: policies[0].path: policy `gone`: cannot read gone.wasm: No such file or directory (os error 2)
        site.yaml: policies[1].digest: policy `pinned`: `nope` is not a digest; it must be `sha256:` and 64 hexadecimal digits in lower case
        ");
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line() {
        let (code, _, problems) = check(&format!("{LEAST}limits:\n  spwan: 5m\n"));
        assert_eq!(code, ExitCode::FAILURE);
        insta::assert_snapshot!(problems, @r"the configuration site.yaml cannot be used: limits.spwan: line 3 column 3: unknown field `spwan`, expected one of spawn, delete, concurrent_spawns, per_user, reconcile_every, restarts, running_restarts, restart_window, force_delete_after, failed_kept, drain, image_pull_failures, image_pull_patience, config_error_grace, history, history_operations");
    }
}
