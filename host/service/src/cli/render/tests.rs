//! Tests of the command through its arguments and its output, without a separate process.

use clap::Parser;

use super::RenderArgs;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    render: RenderArgs,
}

const SITE: &str = "
auth:
  modes: [static]
  static: {tokens_file: tokens.yaml}
  identities: {users: {ada: {uid: 4242, gid: 100, groups: [{name: staff, id: 500}, {name: friends}]}}}
lab:
  image: quay.io/jupyter/minimal-notebook:python-3.13
  env: {HOME: '/home/{username}'}
  secrets: [{name: butler, key: creds.yaml}, {name: pull, key: .dockerconfigjson, pull_secret: true}]
";

fn render(arguments: &[&str]) -> Result<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("site.yaml");
    std::fs::write(&config, SITE).unwrap();
    let config = config.display().to_string();
    let words = ["render", "--config", &config];
    let command =
        Command::try_parse_from(words.iter().chain(arguments)).map_err(|error| error.to_string())?;
    let mut out = Vec::new();
    command.render.run(&mut out).map_err(|error| format!("{error:#}"))?;
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn a_lab_without_policies() {
    let env = ["--env", "JUPYTERHUB_API_TOKEN=s3cret", "--env", "LANG=C"];
    let text = render(&[&["--user", "ada", "--explain"], &env[..]].concat()).unwrap();
    assert!(!text.contains("s3cret") && !text.contains("placeholder"), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn rendering_twice_gives_the_same_text() {
    assert_eq!(render(&["--user", "ada"]).unwrap(), render(&["--user", "ada"]).unwrap());
}

#[test]
fn every_document_is_a_kubernetes_object() {
    let text = render(&["--user", "ada.lovelace@example.org", "--uid", "7", "--gid", "8"]).unwrap();
    let kinds: Vec<String> = text
        .split("---\n")
        .skip(1)
        .map(|document| {
            let object: serde_json::Value = serde_saphyr::from_str(document).unwrap();
            assert!(object["apiVersion"].is_string() && object["metadata"]["name"].is_string(), "{document}");
            object["kind"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!((kinds[0].as_str(), kinds[kinds.len() - 1].as_str()), ("Namespace", "Pod"));
}

#[test]
fn an_error_says_which_argument_is_wrong() {
    for (arguments, expected) in [
        (&["--user", "bob"][..], "nothing is known about `bob`: give --uid and --gid"),
        (&["--user", "ada", "--uid", "0"], "labs do not run as root"),
        (&["--user", "a/b"], "username \"a/b\" contains '/'"),
        (&["--user", "ada", "--option", "size"], "write NAME=VALUE"),
        (&["--user", "ada", "--env", "1A=x"], "1A"),
        (&["--user", "ada", "--group", "staff:1x"], "`1x` is not a GID"),
        (&["--user", "ada", "--group", ":5"], "the group has no name"),
    ] {
        let error = render(arguments).unwrap_err();
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}
