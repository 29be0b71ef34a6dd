//! A policy that was built for a published version of the WIT package works as it did then.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;
use wasmspawner_core::names::{NameTemplates, NamesConfig, ServerName, Username};
use wasmspawner_core::policy::form::FormContext;
use wasmspawner_core::policy::{
    Action, AuthorizeRequest, Grants, Group, Happening, InjectRequest, LabEvent, LabRequest, Options,
    SeenContainer, SeenVolume, SeenWorkload, Subject, User, Value,
};
use wasmspawner_core::users::quota::{Usage, UserQuota};
use wasmspawner_core::workload::Workload;
use wasmspawner_policies::{Policies, PolicySpec};

use crate::load;

const COMPONENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/guests/published-0.1.0/policy.wasm");

async fn published() -> Policies {
    let grants = Grants { raw_html: true, ..Grants::default() };
    load(vec![PolicySpec { grants, ..spec() }]).await
}

/// The policy without grants.
pub(crate) fn spec() -> PolicySpec {
    PolicySpec { config: json!({"site": "example"}), ..PolicySpec::new("published", COMPONENT) }
}

fn ada() -> User {
    User {
        name: "ada".into(),
        uid: Some(1000),
        gid: Some(100),
        groups: vec![
            Group { name: "staff".into(), gid: Some(200) },
            Group { name: "guests".into(), gid: None },
        ],
        email: Some("ada@example.org".into()),
        display_name: Some("Ada".into()),
        quota: Some(UserQuota { cpu_millis: Some(9000), memory_bytes: None, spawn: true }),
    }
}

fn options() -> Options {
    Options::from([
        ("boolean".into(), Value::Boolean(true)),
        ("integer".into(), Value::Integer(-3)),
        ("number".into(), Value::Number(1.5)),
        ("text".into(), Value::Text("ä".into())),
    ])
}

fn form_for(user: User, server: &str) -> FormContext {
    FormContext { user, server: server.into() }
}

#[tokio::test]
async fn a_published_policy_describes_itself() {
    let loaded = published().await.loaded();
    assert_eq!(loaded[0].wit_version, "wasmspawner:policy@0.1.0");
    assert_eq!(loaded[0].title, "published");
    assert_eq!(
        loaded[0].hooks,
        [
            "config",
            "prepare",
            "form",
            "quota",
            "authorize",
            "inject",
            "events",
            "build-pod",
            "lab-server",
            "images",
        ]
    );
}

#[tokio::test]
async fn a_published_policy_renders_and_parses_its_form() {
    let policies = published().await;
    let context = form_for(ada(), "gpu");
    insta::assert_debug_snapshot!("form", policies.render_form(&context).await.unwrap().unwrap().value);
    let html = form_for(User { name: "html".into(), ..ada() }, "gpu");
    insta::assert_debug_snapshot!("html", policies.render_form(&html).await.unwrap().unwrap().value);
    let parsed = policies.parse_submission(&options(), &context).await.unwrap().unwrap();
    assert_eq!(parsed.value, options(), "values of every type pass both ways");
}

#[tokio::test]
async fn a_published_policy_gives_its_limits() {
    let limits = published().await.limits(&ada(), Usage { labs: 2 }, &Subject::default()).await.unwrap();
    insta::assert_debug_snapshot!("limits", limits[0].value);
}

#[tokio::test]
async fn a_published_policy_gives_its_verdicts() {
    let policies = published().await;
    for action in [Action::Spawn, Action::Stop, Action::StartKernel, Action::DaskPool, Action::Scale] {
        let request = AuthorizeRequest {
            action,
            user: ada(),
            server: "gpu".into(),
            options: options(),
            subject: Subject::default(),
        };
        let verdicts = policies.authorize(&request).await.unwrap();
        insta::assert_debug_snapshot!(format!("verdict_on_{action:?}"), verdicts[0].value);
    }
}

#[tokio::test]
async fn a_published_policy_customizes_the_pod() {
    let policies = published().await;
    let names = NameTemplates::parse(&NamesConfig::default()).unwrap();
    for server in ["", "spread", "pack"] {
        let lab = names.resolve(&Username::parse("ada").unwrap(), &ServerName::parse(server).unwrap(), None);
        let request = LabRequest {
            user: ada(),
            server: server.into(),
            options: options(),
            fields: Some(lab.unwrap().fields.into()),
            subject: Subject::default(),
        };
        let answers = policies.customize(&request).await.unwrap();
        let customization = &answers[0].customization;
        if server.is_empty() {
            insta::assert_debug_snapshot!("pod", customization);
        } else {
            insta::assert_debug_snapshot!(format!("affinity_{server}"), customization.affinity);
        }
    }
}

#[tokio::test]
async fn a_published_policy_says_how_its_labs_are_reached() {
    let policies = published().await;
    for server in ["tcp", "none", "http"] {
        let request = LabRequest {
            user: ada(),
            server: server.into(),
            options: options(),
            fields: None,
            subject: Subject::default(),
        };
        let answers = policies.customize(&request).await.unwrap();
        insta::assert_debug_snapshot!(format!("reached_by_{server}"), answers[0].server);
    }
}

#[tokio::test]
async fn a_published_policy_opens_workloads() {
    let policies = published().await;
    for name in ["open", "closed"] {
        let request = InjectRequest {
            user: ada(),
            server: "gpu".into(),
            options: options(),
            workload: SeenWorkload {
                workload: Workload::parse(&format!("deployment/shop/{name}")).unwrap(),
                containers: vec![SeenContainer { name: "web".into(), image: "web:1".into() }],
                volumes: vec![SeenVolume { name: "files".into(), source: "configMap".into() }],
            },
        };
        let verdicts = policies.inject(&request, &Subject::default()).await.unwrap();
        insta::assert_debug_snapshot!(format!("workload_{name}"), verdicts[0].value);
    }
}

#[tokio::test]
async fn a_published_policy_has_images_and_hears_of_events() {
    let policies = published().await;
    let menu = policies.image_menu(&form_for(ada(), "gpu")).await.unwrap().unwrap();
    insta::assert_debug_snapshot!("menu", menu.value);
    assert!(policies.image_menu(&form_for(ada(), "no-menu")).await.unwrap().is_none());
    insta::assert_debug_snapshot!("prepull", policies.prepull().await.unwrap());
    let event = LabEvent {
        what: Happening::Failed,
        at: "2026-01-01T00:00:00Z".parse().unwrap(),
        username: "ada".into(),
        server: "gpu".into(),
        operation: Some("an-operation".into()),
        image: None,
        took: Some(Duration::from_secs(1)),
        reason: Some("ImagePullBackOff".into()),
        message: Some("in words".into()),
        subject: Subject::default(),
    };
    assert_eq!(policies.on_event(&event).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_published_policy_gives_its_refusals() {
    let policies = published().await;
    for name in ["denied", "invalid", "later", "internal"] {
        let user = User { name: name.into(), ..ada() };
        let refusal = policies.limits(&user, Usage::default(), &Subject::default()).await.unwrap_err();
        insta::assert_debug_snapshot!(format!("refusal_{name}"), refusal.kind);
    }
    let context = form_for(User { name: "invalid".into(), ..ada() }, "");
    let refusal = policies.parse_submission(&options(), &context).await.unwrap_err();
    insta::assert_debug_snapshot!("refusal_of_a_submission", refusal.kind);
}

/// The interfaces of a WIT file with their declarations, without comments.
fn interfaces(wit: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut interfaces = BTreeMap::new();
    let mut open = None;
    for line in wit.lines().filter(|line| !line.trim().is_empty() && !line.trim().starts_with("///")) {
        if let Some(name) = line.strip_prefix("interface ") {
            open = Some(name.trim_end_matches(" {"));
        } else if line == "}" {
            open = None;
        } else if let Some(name) = open {
            interfaces.entry(name).or_insert_with(Vec::new).push(line.trim());
        }
    }
    interfaces
}

/// A new hook is a new interface, and `host` may get new functions. All other changes need a new version of the
/// package.
#[test]
fn the_types_of_a_published_version_do_not_change() {
    let published = interfaces(include_str!("../../guests/published-0.1.0/wit/policy.wit"));
    let present = interfaces(include_str!("../../../wit/policy.wit"));
    assert_eq!(published.len(), 13, "{:?}", published.keys());
    for (name, published) in published {
        let mut present = present[name].clone();
        if name == "host" {
            present.retain(|line| published.contains(line));
        }
        assert_eq!(
            present, published,
            "the interface `{name}` of wit/policy.wit has other declarations than the published version; make them in \
             a new version of the package"
        );
    }
}
