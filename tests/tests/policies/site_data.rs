//! Data of the site, which changes without the policies.

use std::os::unix::fs::PermissionsExt as _;

use axum::Router;
use axum::extract::State;
use axum::response::{Html, IntoResponse as _, Redirect, Response};
use axum::routing::get;
use http::{HeaderMap, StatusCode};
use jiff::SignedDuration;
use tokio_util::sync::CancellationToken;
use wasmspawner_core::config::{DataSource, DocumentConfig};
use wasmspawner_policies::DataReport;

use super::*;

async fn told(policies: &Policies) -> String {
    let answers = policies.customize(&LabRequest::default()).await.unwrap();
    answers[0].customization.working_dir.clone().unwrap()
}

#[tokio::test]
async fn a_policy_reads_the_data_that_is_named_for_it_and_sees_its_changes() {
    let folder = tempfile::tempdir().unwrap();
    let teams = folder.path().join("teams.yaml");
    std::fs::write(&teams, "moon: [ada, eve]").unwrap();
    let with_data = PolicySpec {
        data: [("teams".to_owned(), DataSource::File(teams.clone()))].into(),
        ..hostile("data")
    };
    let neighbour = PolicySpec { name: "other".into(), ..hostile("data") };
    let policies = load(vec![with_data, neighbour]).await;
    assert!(policies.loaded()[0].preparation.prepared);
    let first = told(&policies).await;
    assert!(first.contains(r#"{\"moon\":[\"ada\",\"eve\"]}"#) && first.ends_with("None"), "{first}");
    let answers = policies.customize(&LabRequest::default()).await.unwrap();
    assert_eq!(answers[1].customization.working_dir.as_deref(), Some("None None"), "it is another policy's");

    std::fs::write(&teams, "moon: [ada]").unwrap();
    policies.reload().await.unwrap();
    let second = told(&policies).await;
    assert!(second.contains(r#"{\"moon\":[\"ada\"]}"#), "{second}");
    assert_ne!(first.split(' ').next(), second.split(' ').next(), "the version is another one");

    // A mistake changes nothing, and is reported with its place.
    for (wrong, problem) in
        [("moon: [ada", "line 1"), (&*"x".repeat(2 << 20), "the largest that is read has 1048576")]
    {
        std::fs::write(&teams, wrong).unwrap();
        let error = policies.reload().await.unwrap_err().to_string();
        assert!(error.contains("data.teams: ") && error.contains(problem), "{error}");
        assert_eq!(told(&policies).await, second);
    }
    std::fs::remove_file(&teams).unwrap();
    assert!(policies.reload().await.unwrap_err().to_string().contains("teams.yaml"));
}

#[tokio::test]
async fn a_file_of_csv_is_a_list_of_its_lines() {
    let folder = tempfile::tempdir().unwrap();
    let teams = folder.path().join("teams.csv");
    std::fs::write(&teams, "user,team\nada,moon\n").unwrap();
    let source = DataSource::File(teams);
    let policies =
        load(vec![PolicySpec { data: [("teams".to_owned(), source)].into(), ..hostile("data") }]).await;
    let told = told(&policies).await;
    assert!(told.contains(r#"[{\"team\":\"moon\",\"user\":\"ada\"}]"#), "{told}");
}

/// Another service of the site, which has a document and answers as the test sets.
#[derive(Clone)]
struct Directory {
    answer: Arc<Mutex<&'static str>>,
    /// The `Authorization` of the last request.
    authorization: Arc<Mutex<String>>,
}

impl Directory {
    async fn start() -> (Self, String) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/teams?key=of-the-site", listener.local_addr().unwrap());
        let directory = Self { answer: Arc::new(Mutex::new("moon: [ada]")), authorization: Arc::default() };
        let routes = Router::new().route("/teams", get(answer)).with_state(directory.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        (directory, url)
    }

    fn says(&self, answer: &'static str) {
        *self.answer.lock().unwrap() = answer;
    }
}

async fn answer(State(directory): State<Directory>, headers: HeaderMap) -> Response {
    *directory.authorization.lock().unwrap() = authorization(&headers);
    let answer = *directory.answer.lock().unwrap();
    match answer {
        "<html>" => Html("<title>Sign in</title>").into_response(),
        "redirect" => Redirect::temporary("http://127.0.0.1:1/teams").into_response(),
        "error" => StatusCode::BAD_GATEWAY.into_response(),
        "huge" => "x".repeat(2 << 20).into_response(),
        "binary" => vec![0xff_u8, 0xfe].into_response(),
        "csv" => ([("content-type", "text/csv; charset=utf-8")], "user\nada\n").into_response(),
        "for one token" if authorization(&headers) != "Bearer of-one" => {
            StatusCode::UNAUTHORIZED.into_response()
        }
        text => text.into_response(),
    }
}

fn authorization(headers: &HeaderMap) -> String {
    headers.get("authorization").map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
}

#[tokio::test]
async fn what_was_read_with_one_token_is_not_for_another() {
    let folder = tempfile::tempdir().unwrap();
    let (directory, url) = Directory::start().await;
    directory.says("for one token");
    let with_token = |token: &str| {
        let file = folder.path().join(token);
        std::fs::write(&file, token).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let document =
            DocumentConfig { url: url.clone(), every: SignedDuration::from_mins(1), token_file: Some(file) };
        PolicySpec { data: [("teams".to_owned(), DataSource::Document(document))].into(), ..hostile("data") }
    };
    let options = EngineOptions { cache: Some(folder.path().join("cache")), ..uncached() };
    let policies = Policies::load(vec![with_token("of-one")], options.clone()).await.unwrap();
    let error = policies.replace(vec![with_token("of-another")]).await.unwrap_err().to_string();
    assert!(error.contains("the status 401"), "{error}");
    let error = Policies::load(vec![with_token("of-another")], options).await.err().unwrap().to_string();
    assert!(error.contains("the status 401"), "{error}");
}

/// Waits until the report about the policy's data satisfies `wanted`.
async fn until(policies: &Policies, wanted: impl Fn(&DataReport) -> bool) -> DataReport {
    let look = async || {
        let data = policies.loaded()[0].data[0].clone();
        wanted(&data).then_some(data)
    };
    until_some(look).await
}

#[tokio::test]
async fn a_document_is_read_again_and_what_cannot_be_used_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let token_file = folder.path().join("token");
    std::fs::write(&token_file, "secret-of-the-site\n").unwrap();
    std::fs::set_permissions(&token_file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let (directory, url) = Directory::start().await;
    let document = DocumentConfig {
        url: url.clone(),
        every: SignedDuration::from_millis(100),
        token_file: Some(token_file.clone()),
    };
    let source = DataSource::Document(document);
    let spec = PolicySpec { data: [("teams".to_owned(), source)].into(), ..hostile("data") };
    let cache = folder.path().join("cache");
    let kept = || EngineOptions { cache: Some(cache.clone()), ..uncached() };
    let policies = Policies::load(vec![spec.clone()], kept()).await.unwrap();
    let first = told(&policies).await;
    assert!(first.contains(r#"{\"moon\":[\"ada\"]}"#), "{first}");
    assert_eq!(*directory.authorization.lock().unwrap(), "Bearer secret-of-the-site");

    let stop = CancellationToken::new();
    let following = tokio::spawn({
        let (policies, stop) = (policies.clone(), stop.clone());
        async move { policies.follow_data(stop).await }
    });
    let version = policies.loaded()[0].data[0].version.clone();
    directory.says("moon: [ada, eve]");
    let changed = until(&policies, |data| data.version != version).await;
    let second = told(&policies).await;
    assert!(
        second.contains(r#"{\"moon\":[\"ada\",\"eve\"]}"#) && second.contains(&changed.version),
        "{second}"
    );

    for (answer, problem) in [
        ("<html>", "a web page"),
        ("redirect", "a redirection"),
        ("error", "the status 502"),
        ("huge", "larger than 1048576 bytes"),
        ("binary", "not text"),
        ("moon: [ada", "line 1"),
    ] {
        directory.says(answer);
        let data = until(&policies, |data| data.problem.as_ref().is_some_and(|text| text.contains(problem)));
        let data = data.await;
        assert_eq!((&data.name[..], &data.version), ("teams", &changed.version));
        assert_eq!(told(&policies).await, second);
    }
    // A reload of the policies does not need the document either.
    policies.reload().await.unwrap();
    assert_eq!(told(&policies).await, second);
    std::fs::set_permissions(&token_file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let exposed = until(&policies, |data| data.problem.as_ref().is_some_and(|text| text.contains("644")));
    assert!(!exposed.await.problem.unwrap().contains("secret-of-the-site"));
    std::fs::set_permissions(&token_file, std::fs::Permissions::from_mode(0o600)).unwrap();
    directory.says("csv");
    until(&policies, |data| data.problem.is_none()).await;
    let third = told(&policies).await;
    assert!(third.contains(r#"[{\"user\":\"ada\"}]"#), "{third}");
    stop.cancel();
    following.await.unwrap();
    drop(policies);

    // The next start happens without the service that has the document.
    directory.says("error");
    let policies = Policies::load(vec![spec.clone()], kept()).await.unwrap();
    assert_eq!(told(&policies).await, third);
    assert!(policies.loaded()[0].data[0].problem.as_ref().unwrap().contains("the status 502"));
    let documents = || std::fs::read_dir(cache.join("documents")).unwrap().count();
    assert_eq!(documents(), 1);
    policies.replace(vec![hostile("data")]).await.unwrap();
    assert_eq!(documents(), 0, "no policy reads it any more");
    let error = Policies::load(vec![spec], uncached()).await.err().unwrap().to_string();
    assert!(error.contains("data.teams: http://127.0.0.1") && error.contains("the status 502"), "{error}");
    assert!(!error.contains("of-the-site"), "what follows the path may be secret: {error}");
}
