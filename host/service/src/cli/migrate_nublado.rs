//! `wasmspawner migrate nublado`

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use wasmspawner_migration::{NubladoTarget, migrate_nublado};

use super::migration_output::{finish, values_files};

const EXAMPLES: &str = "\
Examples:
  wasmspawner migrate nublado -f values.yaml -f values-site.yaml
  wasmspawner migrate nublado -f values.yaml -f values-site.yaml --base-url https://data.example.org --ingress 10.1.2.3 \\
      --output moved
  wasmspawner check --config moved/wasmspawner.yaml
  wasmspawner policy run policies/policy_rubin.wasm build-pod.customize --config moved/rubin.yaml --user ada

values.yaml is that of Nublado's chart; it has the sizes of labs, their variables and files. The exit code is 0 if nothing
has to be decided by a person, 3 if something has to, and 1 if the files cannot be read.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct NubladoArgs {
    /// A file of values; may be repeated, and later ones count over earlier ones, as with Helm
    #[arg(long = "values", short = 'f', value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// A folder for the new files; without it, only the report is printed
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// The namespace of the Hub
    #[arg(long, value_name = "NAME", default_value = "nublado")]
    namespace: String,
    /// The namespace of this service; that of Nublado has the Secrets that labs get
    #[arg(long, value_name = "NAME", default_value = "nublado")]
    service_namespace: String,
    /// The component of the policy `rubin`, relative to the new configuration
    #[arg(long, value_name = "FILE", default_value = "policies/policy_rubin.wasm")]
    policy: String,
    /// The URL of the site, such as `https://data.example.org`, which Argo CD gives to Nublado's chart
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// An address from which the ingress connects to this service; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    ingress: Vec<String>,
    /// Gafaelfawr's URL within the cluster
    #[arg(long, value_name = "URL", default_value = "http://gafaelfawr.gafaelfawr:8080")]
    gafaelfawr: String,
}

impl NubladoArgs {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let files = values_files(&self.files)?;
        let target = NubladoTarget {
            namespace: self.namespace,
            service_namespace: self.service_namespace,
            policy: self.policy,
            base_url: self.base_url,
            ingress: self.ingress,
            gafaelfawr: self.gafaelfawr,
        };
        let migration = migrate_nublado(&files, &target).map_err(anyhow::Error::msg)?;
        let policy = serde_saphyr::to_string(&migration.config["policies"][0]["config"])?;
        finish(migration, self.output.as_deref(), &self.files, &[("rubin.yaml", policy)], "", out)
    }
}
