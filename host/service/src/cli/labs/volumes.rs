//! `wasmspawner labs volumes`

use std::io::Write;

use clap::Args;
use serde::Deserialize;
use serde_json::Value;

use super::service::Service;
use super::{LabArgs, print_json};
use crate::cli::plain::plain;

/// Arguments of `labs volumes`.
#[derive(Debug, Args)]
pub(super) struct VolumesArgs {
    #[command(flatten)]
    lab: LabArgs,
    /// Delete them, as JupyterHub does when it deletes a server; claims that the policy keeps or that another server
    /// uses stay
    #[arg(long)]
    release: bool,
    /// Answer in JSON, as the service does
    #[arg(long)]
    json: bool,
}

/// A volume claim in an answer of the service. Its fields depend on the request.
#[derive(Debug, Deserialize)]
struct Claim {
    namespace: String,
    name: String,
    #[serde(default)]
    on_server_deletion: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    used_by: Option<String>,
}

pub(super) async fn volumes(
    service: &Service,
    args: &VolumesArgs,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let lab = args.lab.key()?;
    let answer =
        if args.release { service.release_volumes(&lab).await? } else { service.volumes(&lab).await? };
    if args.json {
        return print_json(out, &answer);
    }
    let mut printed = 0;
    for (list, action) in [("claims", ""), ("deleted", "deleted"), ("kept", "kept")] {
        for claim in claims(&answer, list)? {
            printed += 1;
            writeln!(out, "{}", line(&claim, action))?;
        }
    }
    if printed == 0 {
        writeln!(out, "nothing is remembered of {lab}: it has used no volume claim that outlives a lab")?;
    }
    Ok(())
}

fn claims(answer: &Value, list: &str) -> serde_json::Result<Vec<Claim>> {
    match answer.get(list) {
        Some(claims) => serde_json::from_value(claims.clone()),
        None => Ok(Vec::new()),
    }
}

fn line(claim: &Claim, action: &str) -> String {
    let name = plain(&format!("{}/{}", claim.namespace, claim.name)).into_owned();
    match (action, &claim.used_by) {
        ("", _) if claim.on_server_deletion == "delete" => {
            format!("{name}  goes with the last server that uses it")
        }
        ("", _) => format!("{name}  stays"),
        (action, Some(other)) => format!("{name}  {action}, used by {}", plain(other)),
        (action, None) if claim.reason.is_empty() => format!("{name}  {action}"),
        (action, None) => format!("{name}  {action}, {}", claim.reason),
    }
}
