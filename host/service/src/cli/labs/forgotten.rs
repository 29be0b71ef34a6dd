//! `wasmspawner labs forgotten`

use std::io::Write;

use clap::Args;
use jiff::SignedDuration;
use serde::Deserialize;

use super::print_json;
use super::service::Service;
use crate::cli::plain::plain;

/// Arguments of `labs forgotten`.
#[derive(Debug, Args)]
pub(super) struct ForgottenArgs {
    /// Answer in JSON, as the service does
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Deserialize)]
struct Report {
    labs: usize,
    forgotten: Vec<Lab>,
    stop_after_seconds: Option<i64>,
    withheld: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Lab {
    username: String,
    server: String,
    started_at: String,
    forgotten_seconds: i64,
    stops_in_seconds: Option<i64>,
}

pub(super) async fn forgotten(
    service: &Service,
    args: &ForgottenArgs,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let answer = service.read(&["forgotten"]).await?;
    if args.json {
        return print_json(out, &answer);
    }
    Ok(print_report(out, &serde_json::from_value(answer)?)?)
}

fn print_report(out: &mut impl Write, report: &Report) -> std::io::Result<()> {
    if report.forgotten.is_empty() {
        let labs = report.labs;
        return writeln!(
            out,
            "None of the {labs} labs that start or run is forgotten (one that has just begun never is)"
        );
    }
    for lab in &report.forgotten {
        let server = if lab.server.is_empty() { String::new() } else { format!("/{}", lab.server) };
        let name = format!("{}{server}", lab.username);
        let started = lab.started_at.split('.').next().unwrap_or_default().trim_end_matches('Z');
        let stop =
            lab.stops_in_seconds.map(|left| format!(", stopped in {}", span(left))).unwrap_or_default();
        let seen = span(lab.forgotten_seconds);
        writeln!(out, "{}  started {}, found forgotten for {seen}{stop}", plain(&name), plain(started))?;
    }
    let none = match (&report.withheld, report.stop_after_seconds) {
        (Some(withheld), _) => plain(withheld).into_owned(),
        (None, None) => "None is stopped automatically; set hub.forgotten.stop_after for that".to_owned(),
        (None, Some(after)) => format!("Each is stopped once it was found forgotten for {}", span(after)),
    };
    writeln!(out, "{} of {} labs are not known to JupyterHub. {none}.", report.forgotten.len(), report.labs)
}

fn span(seconds: i64) -> String {
    format!("{:#}", SignedDuration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn printed(stop_after: Option<i64>, stops_in: Option<i64>, withheld: Option<&str>) -> String {
        let lab = json!({
            "username": "ada\u{1b}[2J", "server": "gpu", "started_at": "2026-01-02T03:04:05.678Z",
            "forgotten_since": "2026-01-03T03:04:05Z", "forgotten_seconds": 5400, "stops_in_seconds": stops_in,
        });
        let report =
            json!({ "labs": 3, "forgotten": [lab], "stop_after_seconds": stop_after, "withheld": withheld });
        let mut out = Vec::new();
        print_report(&mut out, &serde_json::from_value(report).unwrap()).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_list_says_when_each_lab_is_stopped() {
        insta::assert_snapshot!(printed(None, None, None), @r"
        ada\u{1b}[2J/gpu  started 2026-01-02T03:04:05, found forgotten for 1h 30m
        1 of 3 labs are not known to JupyterHub. None is stopped automatically; set hub.forgotten.stop_after for that.
        ");
        insta::assert_snapshot!(printed(Some(86400), Some(81000), None), @r"
        ada\u{1b}[2J/gpu  started 2026-01-02T03:04:05, found forgotten for 1h 30m, stopped in 22h 30m
        1 of 3 labs are not known to JupyterHub. Each is stopped once it was found forgotten for 24h.
        ");
        insta::assert_snapshot!(printed(Some(86400), None, Some("12 of 14 labs look forgotten")), @r"
        ada\u{1b}[2J/gpu  started 2026-01-02T03:04:05, found forgotten for 1h 30m
        1 of 3 labs are not known to JupyterHub. 12 of 14 labs look forgotten.
        ");
        let none = json!({ "labs": 3, "forgotten": [], "stop_after_seconds": null, "withheld": null });
        let mut out = Vec::new();
        print_report(&mut out, &serde_json::from_value(none).unwrap()).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "None of the 3 labs that start or run is forgotten (one that has just begun never is)\n"
        );
    }
}
