//! Forms and the HTML that they render to: `tests/golden/form/NAME.case.yaml` must render to exactly `NAME.html`.
//! `UPDATE_GOLDEN=1` rewrites the HTML files.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::Path;

use wasmspawner_core::policy::form::{Form, check, render};

const EVERY_KIND: &str = include_str!("golden/form/every-kind.case.yaml");

fn every_kind() -> String {
    render(&serde_saphyr::from_str(EVERY_KIND).unwrap())
}

#[test]
fn every_kind_of_field_renders_as_the_golden_file() {
    let html = every_kind();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/form/every-kind.html");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &html).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), html);
    assert_eq!(check(&serde_saphyr::from_str(EVERY_KIND).unwrap()), Ok(()));
}

/// The attributes of every tag of this name, as written.
fn tags<'a>(html: &'a str, name: &str) -> Vec<&'a str> {
    let start = format!("<{name} ");
    html.split(start.as_str()).skip(1).map(|rest| rest.split('>').next().unwrap()).collect()
}

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = tag.split_once(&format!("{name}=\""))?;
    rest.split('"').next()
}

#[test]
fn every_input_has_a_label() {
    let html = every_kind();
    let labelled: Vec<_> = tags(&html, "label").into_iter().filter_map(|tag| attribute(tag, "for")).collect();
    let inputs = [tags(&html, "input"), tags(&html, "select")].concat();
    assert_eq!(inputs.len(), 11);
    for input in inputs {
        assert!(labelled.contains(&attribute(input, "id").unwrap()), "{input}");
    }
}

#[test]
fn every_id_is_unique_and_every_reference_has_its_id() {
    let html = every_kind();
    let mut ids = BTreeMap::new();
    for id in html.split(" id=\"").skip(1) {
        *ids.entry(id.split('"').next().unwrap()).or_insert(0) += 1;
    }
    assert!(ids.values().all(|count| *count == 1), "{ids:?}");
    for reference in ["for=\"", "aria-describedby=\"", "aria-labelledby=\""] {
        for id in html.split(reference).skip(1) {
            let id = id.split('"').next().unwrap();
            assert!(ids.contains_key(id), "{reference}{id}");
        }
    }
}

/// A browser submits one value for each key of an untouched form.
#[test]
fn every_key_is_submitted_once() {
    let html = every_kind();
    let mut submitted = BTreeMap::new();
    for input in tags(&html, "input") {
        let silent =
            matches!(attribute(input, "type"), Some("radio" | "checkbox")) && !input.contains(" checked");
        if !silent {
            *submitted.entry(attribute(input, "name").unwrap()).or_insert(0) += 1;
        }
    }
    for select in tags(&html, "select") {
        *submitted.entry(attribute(select, "name").unwrap()).or_insert(0) += 1;
    }
    assert!(submitted.values().all(|count| *count == 1), "{submitted:?}");
    let keys: Vec<_> = submitted.into_keys().collect();
    assert_eq!(
        keys,
        ["debug", "gpus", "image", "note", "ratio", "size", "tag"],
        "consent is the user's to give"
    );
}

#[test]
fn text_of_a_policy_never_becomes_markup() {
    let html = every_kind();
    assert_eq!(html.matches("<script").count(), 1, "the form's own");
    assert!(!html.contains("<b>") && !html.contains("<i>") && !html.contains("<x>"));
}

#[test]
fn a_form_without_conditions_has_no_script() {
    let form: Form = serde_saphyr::from_str("fields: [{name: a, label: A, kind: {text: {}}}]").unwrap();
    assert!(!render(&form).contains("script"));
}

#[test]
fn a_form_without_options_renders_as_nothing() {
    assert_eq!(render(&Form::without_options()), "");
}

#[test]
fn the_html_of_a_policy_is_not_changed() {
    let html = "<select name='x'></select>";
    assert_eq!(render(&Form::Html(html.to_owned())), html);
}
