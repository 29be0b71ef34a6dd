//! Prints labs as tables.

use std::io::{self, Write};

use serde_json::Value;
use wasmspawner_core::names::Username;
use wasmspawner_core::names::spawn_key::SpawnKey;

use super::lab::{Group, Lab};
use crate::cli::columns;
use crate::cli::plain::plain;

const NOTHING: &str = "-";

/// The labs of one user, as the list shows them.
pub(super) enum Row {
    /// The lab of the default server.
    Lab(Box<Lab>),
    /// The statuses of named servers, for a user who has no other one.
    NamedServers(Vec<&'static str>),
}

/// Prints one line per user.
pub(super) fn list(out: &mut impl Write, labs: &[(Username, Row)]) -> io::Result<()> {
    let mut rows =
        vec![["USER", "STATUS", "STAGE", "PROGRESS", "STARTED", "IMAGE"].map(str::to_owned).to_vec()];
    rows.extend(labs.iter().map(|(user, lab)| row(user, lab).to_vec()));
    columns::print(out, &rows)
}

fn row(user: &Username, row: &Row) -> [String; 6] {
    let user = plain(user.as_str()).into_owned();
    let lab = match row {
        Row::Lab(lab) => lab,
        Row::NamedServers(statuses) => {
            let status = format!("{} (named servers)", statuses.join(", ")).trim_start().to_owned();
            return [user, status, NOTHING.into(), NOTHING.into(), NOTHING.into(), NOTHING.into()];
        }
    };
    let shown = |text: Option<&str>| text.map_or_else(|| NOTHING.to_owned(), |text| plain(text).into_owned());
    [
        user,
        plain(&lab.status).into_owned(),
        shown(lab.stage.as_deref()),
        format!("{}%", lab.progress),
        shown(lab.started_at.as_deref()),
        shown(lab.image.as_ref().map(|image| image.reference.as_str())),
    ]
}

/// Prints everything about one lab, one property per line.
pub(super) fn show(out: &mut impl Write, lab: &Lab) -> io::Result<()> {
    let server = if lab.server.is_empty() { String::new() } else { format!("/{}", lab.server) };
    let groups: Vec<String> = lab.groups.iter().map(group).collect();
    let single = [
        ("lab", Some(format!("{}{server}", lab.username))),
        ("status", Some(format!("{}, pod {}, {}%", lab.status, lab.pod, lab.progress))),
        ("stage", lab.stage.clone()),
        ("reason", lab.reason.clone()),
        ("message", lab.message.clone()),
        ("url", lab.url.clone()),
        ("image", lab.image.as_ref().map(|image| image.reference.clone())),
        ("digest", lab.image.as_ref().and_then(|image| image.digest.clone())),
        ("started", lab.started_at.clone()),
        ("user", Some(format!("uid {}, gid {}", lab.uid, lab.gid))),
        ("groups", Some(groups.join(", ")).filter(|groups| !groups.is_empty())),
        ("job", lab.job_id.clone()),
    ];
    for (name, value) in single {
        if let Some(value) = value {
            line(out, name, &value)?;
        }
    }
    for (name, value) in &lab.options {
        line(out, "option", &format!("{name} = {value}"))?;
    }
    for (policy, position) in lab.policy.iter().zip(1..) {
        line(out, "policy", &format!("{position}. {} {}", policy.name, policy.digest))?;
    }
    for (source, fields) in &lab.decided_by {
        line(out, "decided", &format!("{source}: {}", fields.join(", ")))?;
    }
    lab.env.iter().try_for_each(|(name, value)| line(out, "env", &format!("{name} = {value}")))
}

/// Prints everything about a kernel or pool, one property per line.
pub(super) fn show_child(out: &mut impl Write, key: &SpawnKey, child: &Value) -> io::Result<()> {
    let mut rows = vec![vec!["lab".to_owned(), plain(&key.lab.to_string()).into_owned()]];
    for (name, value) in child.as_object().into_iter().flatten() {
        let text = match value {
            Value::Null => continue,
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        rows.push(vec![plain(name).into_owned(), plain(&text).into_owned()]);
    }
    columns::print(out, &rows)
}

fn group(group: &Group) -> String {
    group.id.map_or_else(|| group.name.clone(), |id| format!("{} ({id})", group.name))
}

fn line(out: &mut impl Write, name: &str, value: &str) -> io::Result<()> {
    writeln!(out, "{name:<8}  {}", plain(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lab() -> Lab {
        Lab::parse(json!({
            "username": "ada", "server": "gpu", "status": "starting", "pod": "present", "options": {"size": "small", "debug": true},
            "env": {"HOME": "/home/ada", "TOKEN": "<redacted>"}, "uid": 7, "gid": 8, "quotas": null,
            "groups": [{"name": "staff", "id": 9}, {"name": "friends"}], "url": null, "stage": "Pulling",
            "reason": "Pulling", "message": "Pulling\u{1b}[2J the image", "progress": 35, "job_id": "j",
            "image": {"reference": "quay.io/x:1", "digest": "sha256:aa", "description": null},
            "started_at": "2026-01-02T03:04:05Z", "policy": [{"name": "default", "digest": "sha256:bb"}],
            "decided_by": {"policy `default`": ["image", "resources.cpu_limit_millis"], "configuration": ["env.HOME"]},
        }))
        .unwrap()
    }

    fn text(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_kernel_is_shown_without_what_it_does_not_have() {
        let lab = wasmspawner_core::names::lab::LabKey::default_server(Username::parse("ada").unwrap());
        let key = SpawnKey::kernel(lab, wasmspawner_core::names::ChildName::parse("k").unwrap());
        let kernel = json!({"id": "k", "image": null, "message": "a\u{1b}[2Jb", "process": {"number": 1}});
        insta::assert_snapshot!(text(|out| show_child(out, &key, &kernel)), @r#"
        lab      ada
        id       k
        message  a\u{1b}[2Jb
        process  {"number":1}
        "#);
    }

    #[test]
    fn the_columns_of_a_list_are_aligned() {
        let user = |name: &str| Username::parse(name).unwrap();
        let named = Row::NamedServers(vec!["starting", "running"]);
        let labs = [(user("ada"), Row::Lab(Box::new(lab()))), (user("ada.lovelace@example.org"), named)];
        insta::assert_snapshot!(text(|out| list(out, &labs)), @r"
        USER                      STATUS                             STAGE    PROGRESS  STARTED               IMAGE
        ada                       starting                           Pulling  35%       2026-01-02T03:04:05Z  quay.io/x:1
        ada.lovelace@example.org  starting, running (named servers)  -        -         -                     -
        ");
    }

    #[test]
    fn a_lab_is_shown_with_one_line_per_field() {
        insta::assert_snapshot!(text(|out| show(out, &lab())), @r#"
        lab       ada/gpu
        status    starting, pod present, 35%
        stage     Pulling
        reason    Pulling
        message   Pulling\u{1b}[2J the image
        image     quay.io/x:1
        digest    sha256:aa
        started   2026-01-02T03:04:05Z
        user      uid 7, gid 8
        groups    staff (9), friends
        job       j
        option    debug = true
        option    size = "small"
        policy    1. default sha256:bb
        decided   configuration: env.HOME
        decided   policy `default`: image, resources.cpu_limit_millis
        env       HOME = /home/ada
        env       TOKEN = <redacted>
        "#);
    }
}
