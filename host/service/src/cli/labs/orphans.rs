//! `wasmspawner labs orphans`

use std::io::Write;

use clap::Args;
use serde::Deserialize;

use super::print_json;
use super::service::Service;
use crate::cli::plain::plain;

/// Arguments of `labs orphans`.
#[derive(Debug, Args)]
pub(super) struct OrphansArgs {
    /// Delete those in the service's own cluster; deleting a namespace deletes the volume claims in it
    #[arg(long)]
    delete: bool,
    /// Answer in JSON, as the service does
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Deserialize)]
struct Orphan {
    cluster: Option<String>,
    kind: String,
    namespace: Option<String>,
    name: String,
}

pub(super) async fn orphans(
    service: &Service,
    args: &OrphansArgs,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let answer = service.orphans(args.delete).await?;
    if args.json {
        return print_json(out, &answer);
    }
    let orphans: Vec<Orphan> = serde_json::from_value(answer)?;
    for Orphan { cluster, kind, namespace, name } in &orphans {
        let place = namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        let cluster = cluster.as_ref().map(|secret| format!("  in the cluster of the Secret {secret}"));
        let what = plain(&format!("{kind} {place}{name}{}", cluster.unwrap_or_default())).into_owned();
        writeln!(out, "{what}{}", if args.delete { "  deleted" } else { "" })?;
    }
    if orphans.is_empty() {
        writeln!(out, "nothing with this service's labels belongs to no lab")?;
    }
    Ok(())
}
