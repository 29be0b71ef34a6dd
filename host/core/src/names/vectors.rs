//! Compares names with values that were computed by running KubeSpawner 7.1.0 (`tests/vectors`).

use serde::Deserialize;
use serde_json::{Value, json};

use super::kubespawner::{KubeSpawner, NameQuery};
use super::slug;
use super::{Compat, LabelValue, ObjectName, SlugScheme};

#[derive(Deserialize)]
struct File {
    vectors: Vec<Vector>,
    documented_examples: Vec<Documented>,
    template_cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Vector {
    username: String,
    servername: String,
    scheme: SlugScheme,
    fields: Value,
    defaults: Value,
    labels: Value,
    legacy_templates: std::collections::BTreeMap<String, String>,
    slug_functions: std::collections::BTreeMap<String, String>,
    pod_name_rfc1035: bool,
}

#[derive(Deserialize)]
struct Documented {
    username: String,
    servername: String,
    scheme: SlugScheme,
    template: String,
    #[serde(rename = "documented")]
    page: String,
    #[serde(rename = "actual_7_1_0")]
    release: String,
}

#[derive(Deserialize)]
struct Case {
    username: String,
    servername: String,
    scheme: SlugScheme,
    template: String,
    result: Option<String>,
    error: Option<String>,
}

fn file() -> File {
    serde_json::from_str(include_str!("../../tests/vectors/kubespawner-7.1.0-names.json")).unwrap()
}

/// KubeSpawner gives this name a label that Kubernetes refuses (U+017F folds to an ASCII letter).
const LABEL_NOT_COPIED: &str = "a\u{17f}b";

#[test]
fn every_field_default_and_label_is_that_of_kubespawner() {
    let names = KubeSpawner::new(None).unwrap();
    let vectors = file().vectors;
    assert_eq!(vectors.len(), 114);
    for vector in vectors {
        let question = NameQuery::new(&vector.username, &vector.servername, vector.scheme);
        let mut expected = json!({
            "fields": vector.fields, "defaults": vector.defaults, "labels": vector.labels,
        });
        if vector.username == LABEL_NOT_COPIED {
            expected["labels"]["hub.jupyter.org/username"] = "a-b---19a815e3".into();
        }
        let report = serde_json::to_value(names.answer(&question).unwrap()).unwrap();
        assert_eq!(report, expected, "{:?} {:?} {:?}", vector.username, vector.servername, vector.scheme);
    }
}

#[test]
fn legacy_templates_give_the_names_of_kubespawner() {
    for vector in file().vectors {
        let question = NameQuery::new(&vector.username, &vector.servername, vector.scheme);
        for (template, expected) in &vector.legacy_templates {
            let report = KubeSpawner::new(Some(template)).unwrap().answer(&question).unwrap();
            assert_eq!(report.rendered.as_ref(), Some(expected), "{template} for {:?}", vector.username);
        }
    }
}

#[test]
fn slugs_are_those_of_kubespawner() {
    for vector in file().vectors {
        let (user, server) = (vector.username.as_str(), vector.servername.as_str());
        for (function, expected) in &vector.slug_functions {
            let slug = match function.as_str() {
                "safe_slug_32" => slug::safe(user, slug::is_object, None),
                "safe_slug_48" => slug::safe(user, slug::is_object, Some(48)),
                "label_slug" if user == LABEL_NOT_COPIED => continue,
                "label_slug" => LabelValue::for_name(user).to_string(),
                "escape_slug" => slug::escape(user),
                "multi_slug_48" => slug::multi(&[user, server], 48),
                other => panic!("the vectors have a function {other}"),
            };
            assert_eq!(slug, *expected, "{function} of {user:?}");
        }
    }
}

#[test]
fn a_pod_name_that_is_an_rfc1035_label_is_accepted() {
    for vector in file().vectors {
        let pod = vector.defaults["pod_name"].as_str().unwrap().to_owned();
        if vector.pod_name_rfc1035 {
            assert!(ObjectName::parse(&pod).is_ok(), "{pod}");
        }
    }
}

#[test]
fn each_compat_setting_gives_the_names_of_its_source() {
    for example in file().documented_examples {
        let names = KubeSpawner::new(Some(&example.template)).unwrap();
        for (compat, expected) in [(Compat::V7_1_0, &example.release), (Compat::Documented, &example.page)] {
            let question = NameQuery {
                compat,
                ..NameQuery::new(&example.username, &example.servername, example.scheme)
            };
            let rendered = names.answer(&question).unwrap().rendered;
            assert_eq!(
                rendered.as_ref(),
                Some(expected),
                "{compat:?} {} {:?}",
                example.template,
                example.username
            );
        }
    }
}

/// "The result always starts with a letter or number", and "if a name is safe, it is used unmodified".
#[test]
fn a_name_that_begins_with_a_digit_is_kept_as_the_page_says() {
    for (server, compat, expected) in [
        ("", Compat::Documented, "99bottles"),
        ("7th", Compat::Documented, "99bottles--7th"),
        ("Big", Compat::Documented, "x-99bottles--big---"),
        ("", Compat::V7_1_0, "x-99bottles---"),
    ] {
        let names = KubeSpawner::new(Some("{user_server}")).unwrap();
        let question = NameQuery { compat, ..NameQuery::new("99bottles", server, SlugScheme::Safe) };
        let rendered = names.answer(&question).unwrap().rendered.unwrap();
        let expected_length = if expected.ends_with("---") { expected.len() + 8 } else { expected.len() };
        assert!(rendered.starts_with(expected) && rendered.len() == expected_length, "{compat:?} {rendered}");
    }
}

#[test]
fn templates_render_as_in_python() {
    let cases = file().template_cases;
    assert_eq!(cases.len(), 39);
    for case in cases {
        let names = KubeSpawner::new(Some(&case.template));
        // KubeSpawner allows access to attributes and elements. It is refused here, because it reaches into the
        // interpreter.
        let refused =
            case.error.is_some() || case.template.contains(['.', '[']) && case.template.contains("{username");
        if refused && !case.template.contains(":.") {
            assert!(names.is_err(), "{:?} is accepted", case.template);
            continue;
        }
        let question = NameQuery::new(&case.username, &case.servername, case.scheme);
        let rendered = names.unwrap().answer(&question).unwrap().rendered;
        assert_eq!(rendered, case.result, "{:?} for {:?}", case.template, case.username);
    }
}
