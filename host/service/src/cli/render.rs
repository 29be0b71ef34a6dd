//! `wasmspawner render`

mod explain;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use clap::Args;
use wasmspawner_core::config::Config;
use wasmspawner_core::lifecycle::Failure;
use wasmspawner_core::manifest::LabObjects;
use wasmspawner_core::names::lab::LabKey;
use wasmspawner_core::names::{ServerName, Username};
use wasmspawner_core::policy::spawn::SpawnRequest;
use wasmspawner_core::policy::user_string::Wanted;
use wasmspawner_core::users::identity::{Group, Identity};
use wasmspawner_core::values::secret::SecretString;

use super::ConfigArgs;
use super::assignment::{self, Assignment};
use wasmspawner_kubernetes::site_blueprints::SiteBlueprints;
use wasmspawner_policies::{EngineOptions, Policies, PolicyName, PolicySpec};
use wasmspawner_registry::Artifacts;
use wasmspawner_spawner::blueprint_providers::BlueprintProviders;
use wasmspawner_spawner::{SiteRules, preview};

const EXAMPLES: &str = "\
Examples:
  wasmspawner render -c wasmspawner.yaml --user ada --option size=small
  wasmspawner render -c wasmspawner.yaml --user ada --uid 4242 --gid 100 --group staff:500 --explain
  wasmspawner render -c wasmspawner.yaml --user ada | kubectl apply --dry-run=server -f -

Job id and times are zero, so that two renders can be compared. Values in Secrets are never shown.";

/// Prints the Kubernetes objects that a spawn would create, as a stream of YAML documents. The policies are asked as in
/// a real spawn; a cluster is not needed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RenderArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// The user's name in JupyterHub
    #[arg(long, value_name = "NAME")]
    user: String,
    /// The name of the user's server; without it, the default server
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    server: String,
    /// A choice in the spawn form; may be repeated
    #[arg(long = "option", value_name = "NAME=VALUE")]
    options: Vec<Assignment>,
    /// An environment variable as the Hub would send it; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<Assignment>,
    /// The user's uid [default: from auth.identities]
    #[arg(long)]
    uid: Option<u32>,
    /// The gid of the user's primary group [default: from auth.identities]
    #[arg(long)]
    gid: Option<u32>,
    /// A group of the user, with or without its gid; may be repeated [default: from auth.identities]
    #[arg(long = "group", value_name = "NAME[:GID]", value_parser = group)]
    groups: Vec<Group>,
    /// Assume that the user has had a lab before, so that init containers for new users are left out
    #[arg(long)]
    provisioned: bool,
    /// Print first, as comments, which policy or setting decided each field
    #[arg(long)]
    explain: bool,
}

fn group(text: &str) -> Result<Group, String> {
    // A name may have a colon itself, such as that of a team: `org:team`.
    let numbered =
        text.rsplit_once(':').filter(|(_, gid)| gid.starts_with(|first: char| first.is_ascii_digit()));
    let group = match numbered {
        None => Group { name: text.to_owned(), gid: None },
        Some((name, gid)) => {
            let gid = gid.parse().map_err(|_| format!("`{gid}` is not a GID"))?;
            Group { name: name.to_owned(), gid: Some(gid) }
        }
    };
    if group.name.is_empty() { Err("the group has no name".to_owned()) } else { Ok(group) }
}

impl RenderArgs {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<()> {
        let config = Arc::new(self.config.load()?);
        let request = self.request(&config)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (preview, chain) = runtime.block_on(async {
            let specs = PolicySpec::all(&config.policies)?;
            let artifacts = Artifacts::new(config.registries.clone());
            let policies =
                Policies::load(specs, EngineOptions { artifacts, ..EngineOptions::default() }).await?;
            let providers = BlueprintProviders::default();
            let blueprints = SiteBlueprints::configured().now(&config);
            let rules = SiteRules {
                config: Arc::clone(&config),
                policies: &policies,
                blueprints,
                providers: &providers,
            };
            let preview = preview(&rules, request, self.provisioned).await;
            let chain: Vec<PolicyName> = policies.loaded().into_iter().map(|policy| policy.name).collect();
            anyhow::Ok((preview.map_err(|failure| refused(&failure))?, chain))
        })?;
        if self.explain {
            explain::write(out, &chain, &preview.provenance)?;
        }
        write(out, &preview.objects)
    }

    fn request(&self, config: &Config) -> anyhow::Result<SpawnRequest> {
        let user = Username::parse(&self.user)?;
        Ok(SpawnRequest {
            wanted: Wanted::default(),
            requested_by: "render".to_owned(),
            identity: self.identity(&user, config)?,
            key: LabKey::new(user, ServerName::parse(&self.server)?),
            options: assignment::options(&self.options)?,
            env: assignment::env(&self.env)?,
            token: SecretString::new("placeholder"),
        })
    }

    /// Returns the identity from the command line. Missing parts come from `auth.identities`.
    fn identity(&self, user: &Username, config: &Config) -> anyhow::Result<Identity> {
        let known = config.auth.identities.get(user);
        let missing = || {
            format!("nothing is known about `{user}`: give --uid and --gid, or an entry in auth.identities")
        };
        let uid = self.uid.or(known.as_ref().map(|known| known.uid)).with_context(missing)?;
        let gid = self.gid.or(known.as_ref().map(|known| known.gid)).with_context(missing)?;
        let (groups, email, display_name) =
            known.map(|known| (known.groups, known.email, known.display_name)).unwrap_or_default();
        let groups = if self.groups.is_empty() { groups } else { self.groups.clone() };
        Ok(Identity { groups, email, display_name, ..Identity::with_numbers(user.clone(), uid, gid) })
    }
}

fn refused(failure: &Failure) -> anyhow::Error {
    let Failure { reason, message, blame, .. } = failure;
    anyhow!("there would be no lab: {message} ({reason}, to be mended by the {})", mender(*blame))
}

fn mender(blame: wasmspawner_core::lifecycle::Blame) -> &'static str {
    use wasmspawner_core::lifecycle::Blame;
    match blame {
        Blame::User => "user",
        Blame::Policy => "policy's author",
        Blame::Cluster => "cluster's operator",
        Blame::Service => "service's operator",
    }
}

/// Writes the objects in the order of their creation.
fn write(out: &mut impl Write, objects: &LabObjects) -> anyhow::Result<()> {
    for object in objects.redacted() {
        let text = serde_saphyr::to_string(&object)?;
        write!(out, "---\n{}", text.trim_start_matches("---\n"))?;
        if !text.ends_with('\n') {
            writeln!(out)?;
        }
    }
    Ok(())
}
