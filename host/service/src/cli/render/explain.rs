//! `--explain`: which policy or setting decided each field, as comments above the objects.

use std::io::{self, Write};

use wasmspawner_core::policy::compose::Provenance;

use crate::cli::plain::plain;
use wasmspawner_policies::PolicyName;

/// Writes the origin of each decision; every line is a YAML comment. `chain` contains the policies in the order in
/// which they are asked.
pub(super) fn write(out: &mut impl Write, chain: &[PolicyName], provenance: &Provenance) -> io::Result<()> {
    let asked: Vec<String> =
        chain.iter().zip(1..).map(|(policy, position)| format!("{position}. {policy}")).collect();
    section(out, "Policies, in the order in which they are asked", &asked)?;
    writeln!(out, "# Who decided what:")?;
    let width = provenance.sources.keys().map(|field| plain(field).len()).max().unwrap_or_default();
    for (field, source) in &provenance.sources {
        writeln!(out, "#   {:<width$}  {}", plain(field), plain(&source.to_string()))?;
    }
    let conflicts: Vec<String> = provenance.conflicts.iter().map(ToString::to_string).collect();
    section(out, "Where deciders disagreed", &conflicts)?;
    let grant = |used: &wasmspawner_core::policy::compose::GrantUse| {
        format!("{}: policy `{}`, by its grant {}", used.field, used.policy, used.grant)
    };
    let grants: Vec<String> = provenance.grants.iter().map(grant).collect();
    section(out, "What needed a grant", &grants)?;
    section(out, "What was changed to fit the operator's limits", &provenance.notes)
}

fn section(out: &mut impl Write, title: &str, lines: &[String]) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(out, "# {title}:")?;
    lines.iter().try_for_each(|line| writeln!(out, "#   {}", plain(line)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasmspawner_core::policy::Grant;
    use wasmspawner_core::policy::compose::{Conflict, GrantUse, Source};

    #[test]
    fn the_explanation_consists_of_yaml_comments() {
        let policy = |name: &str| Source::Policy(name.to_owned());
        let provenance = Provenance {
            sources: [
                ("image".to_owned(), policy("site")),
                ("env.HOME".to_owned(), Source::Configuration),
                ("env.X\n---\nkind: Pod".to_owned(), Source::Request),
            ]
            .into(),
            conflicts: vec![Conflict {
                field: "env.SIZE".into(),
                earlier: policy("default"),
                later: policy("site"),
            }],
            grants: vec![GrantUse {
                policy: "default".into(),
                field: "volumes[0].source.host_path".into(),
                grant: Grant::HostPath,
            }],
            notes: vec!["time_limits.spawn_seconds: cut".into()],
            components: std::collections::BTreeMap::new(),
        };
        let mut out = Vec::new();
        write(&mut out, &["default".into(), "site".into()], &provenance).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.lines().all(|line| line.starts_with('#')), "{text}");
        insta::assert_snapshot!(text, @r#"
        # Policies, in the order in which they are asked:
        #   1. default
        #   2. site
        # Who decided what:
        #   env.HOME               configuration
        #   env.X\n---\nkind: Pod  request
        #   image                  policy `site`
        # Where deciders disagreed:
        #   env.SIZE: policy `site` replaces the value of policy `default`
        # What needed a grant:
        #   volumes[0].source.host_path: policy `default`, by its grant host-path
        # What was changed to fit the operator's limits:
        #   time_limits.spawn_seconds: cut
        "#);
    }
}
