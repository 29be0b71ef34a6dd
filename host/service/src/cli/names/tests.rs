//! Tests of the command through its arguments and its output, without a separate process.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser;
use serde_json::{Value, json};

use super::NamesArgs;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    names: NamesArgs,
}

struct CommandResult {
    code: ExitCode,
    out: String,
    remarks: String,
}

fn names(arguments: &[&str], input: &str) -> CommandResult {
    let command = Command::try_parse_from(["names"].iter().chain(arguments)).unwrap();
    let (mut out, mut remarks) = (Vec::new(), Vec::new());
    let code = command.names.run(input.as_bytes(), &mut out, &mut remarks).unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    CommandResult { code, out: text(out), remarks: text(remarks) }
}

#[test]
fn with_one_scheme_the_json_is_one_object() {
    let result = names(&["--user", "Ada", "--scheme", "safe", "--template", "x-{username}", "--json"], "");
    assert_eq!(result.code, ExitCode::SUCCESS);
    let report: Value = serde_json::from_str(&result.out).unwrap();
    let keys: Vec<&String> = report.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["defaults", "fields", "labels", "rendered"]);
    assert_eq!(report["rendered"], "x-ada---99a563ab");
    assert_eq!(report["fields"]["userid"], 42);
}

#[test]
fn without_a_scheme_the_json_has_both() {
    let result = names(&["--user", "Ada", "--server", "gpu", "--json"], "");
    let report: Value = serde_json::from_str(&result.out).unwrap();
    assert_eq!(report["safe"]["fields"]["username"], "ada---99a563ab");
    assert_eq!(report["escape"]["fields"]["user_server"], "-41da--gpu");
}

#[test]
fn people_get_a_table() {
    insta::assert_snapshot!(names(&["--user", "ada.lovelace@example.org", "--scheme", "safe"], "").out);
}

#[test]
fn a_bad_template_or_name_is_an_error() {
    for (arguments, part) in [
        (["--user", "ada", "--template", "{nope}"], "unknown field {nope}"),
        (["--user", "", "--template", "x"], "the username is empty"),
        (["--user", "\u{4}1", "--template", "x"], "control character"),
    ] {
        let result = names(&[&arguments[..], &["--json"]].concat(), "");
        assert_eq!(result.code, ExitCode::FAILURE);
        let answer: Value = serde_json::from_str(&result.out).unwrap();
        assert!(answer["error"].as_str().unwrap().contains(part), "{answer}");
        let result = names(&arguments, "");
        assert!(result.out.is_empty() && result.remarks.starts_with("error: "), "{}", result.remarks);
    }
}

#[test]
fn a_name_this_service_refuses_is_answered_with_a_note() {
    let result = names(&["--user", "../../etc", "--scheme", "safe", "--json"], "");
    assert_eq!(result.code, ExitCode::SUCCESS);
    assert!(
        result.remarks.contains("refuses this name: username \"../../etc\" contains '/'"),
        "{}",
        result.remarks
    );
}

#[test]
fn a_batch_is_answered_line_by_line() {
    let input =
        "{\"username\": \"ada\", \"servername\": \"\"}\n\nnot json\n{\"username\": \"bob\", \"userid\": 7}\n";
    let result = names(&["--batch", "-", "--scheme", "safe", "--template", "{userid}"], input);
    let lines: Vec<Value> = result.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0]["defaults"]["pod_name"], "jupyter-ada");
    assert!(lines[1]["error"].as_str().unwrap().starts_with("line 3: "));
    assert_eq!(lines[2]["rendered"], "7");
    assert_eq!(
        (result.code, result.remarks.as_str()),
        (ExitCode::FAILURE, "1 lines refused, 0 names shared\n")
    );
}

#[test]
fn names_that_two_users_would_share_are_reported() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for username in ["adam", "adah"] {
        writeln!(file, "{}", json!({"username": username, "servername": ""})).unwrap();
    }
    let path = file.path().to_str().unwrap();
    let result = names(&["--batch", path, "--scheme", "safe", "--template", "home-{username:.3}"], "");
    assert_eq!(result.code, ExitCode::FAILURE);
    let expected = "collision, scheme safe: rendered \"home-ada\" would be shared by \"adah\" and \"adam\"\n";
    assert!(result.remarks.starts_with(expected), "{}", result.remarks);
}
