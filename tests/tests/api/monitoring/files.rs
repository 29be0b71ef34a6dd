//! The files of `deploy/monitoring` as Prometheus reads them.

use std::fmt::Write as _;
use std::process::Command;

use super::queries::{of_alerts, of_dashboard};
use super::{installed, path, read};

fn succeeds(command: &mut Command) {
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&text));
}

#[test]
fn the_alerts_fire_when_they_should_and_not_otherwise() {
    let Some(mut promtool) = installed("promtool") else { return };
    succeeds(promtool.args(["test", "rules"]).arg(path("alerts.test.yaml")));
}

#[test]
fn every_alert_is_tested_and_says_what_to_do() {
    let (rules, tests): (serde_json::Value, _) =
        (serde_saphyr::from_str(&read("alerts.yaml")).unwrap(), read("alerts.test.yaml"));
    for rule in rules["groups"][0]["rules"].as_array().unwrap() {
        let name = rule["alert"].as_str().unwrap();
        assert!(tests.contains(&format!("alertname=\"{name}\"")), "no test lets {name} fire");
        assert!(matches!(rule["labels"]["severity"].as_str(), Some("critical" | "warning")), "{name}");
        for part in ["summary", "description", "action"] {
            let text = rule["annotations"][part].as_str().unwrap_or_default();
            assert!(text.ends_with('.'), "{name} has no {part} that is a sentence: {text:?}");
        }
    }
}

#[test]
fn every_query_can_be_parsed() {
    let Some(mut promtool) = installed("promtool") else { return };
    let mut rules = "groups:\n- name: queries\n  rules:\n".to_owned();
    for (number, query) in of_dashboard("5m").into_iter().chain(of_alerts()).enumerate() {
        let expression = serde_json::Value::from(query.expression);
        writeln!(rules, "  - {{record: 'query:{number}', expr: {expression}}}").unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rules.yaml");
    std::fs::write(&file, rules).unwrap();
    succeeds(promtool.args(["check", "rules"]).arg(file));
}
