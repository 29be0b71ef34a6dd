//! `wasmspawner labs retained`

use std::io::Write;

use clap::Args;
use serde::Deserialize;

use super::print_json;
use super::service::Service;
use crate::cli::plain::plain;

/// Arguments of `labs retained`.
#[derive(Debug, Args)]
pub(super) struct RetainedArgs {
    /// Only what no lab uses
    #[arg(long)]
    unused: bool,
    /// Answer in JSON, as the service does
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Deserialize)]
struct RetainedObject {
    cluster: Option<String>,
    kind: String,
    namespace: Option<String>,
    name: String,
    owners: Vec<String>,
    in_use: bool,
    message: String,
}

pub(super) async fn retained(
    service: &Service,
    args: &RetainedArgs,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let mut answer = service.read(&["retained"]).await?;
    if let (true, Some(all)) = (args.unused, answer.as_array_mut()) {
        all.retain(|one| one["in_use"] == false);
    }
    if args.json {
        return print_json(out, &answer);
    }
    let kept: Vec<RetainedObject> = serde_json::from_value(answer)?;
    for object in &kept {
        writeln!(out, "{}", line(object))?;
    }
    if kept.is_empty() {
        writeln!(out, "nothing stays when the labs have ended")?;
    }
    Ok(())
}

fn line(object: &RetainedObject) -> String {
    let RetainedObject { cluster, kind, namespace, name, owners, in_use, message } = object;
    let place = namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
    let cluster = cluster.as_ref().map(|secret| format!(" in the cluster of the Secret {secret}"));
    let owners = if owners.is_empty() { String::new() } else { format!(" of {}", owners.join(", ")) };
    let used = if *in_use { ", in use" } else { "" };
    let text = format!("{kind} {place}{name}{}{owners}{used}: {message}", cluster.unwrap_or_default());
    plain(&text).into_owned()
}
