//! `policy push` and `policy pull`, with a real registry and with one that has been taken over.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use base64::Engine as _;
use http::{Method, StatusCode, header};
use serde_json::{Value, json};
use wasmspawner_tests::api::Client;
use wasmspawner_tests::registry::Registry;

use super::{command, component, refusal, run, told};

const PASSWORD: &str = "right-password";
/// `htpasswd -Bbn puller right-password`
const LOGINS: &str = "puller:$2y$05$3GGjVD16xqO.2E/XyZ8H0uxK104q1SisFjeGxKk5EATJzg6SRqZz2\n";

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Writes the file of `docker login`, in a folder for `DOCKER_CONFIG`.
fn log_in(folder: &Path, registry: &str, password: &str) {
    let encoded = base64::engine::general_purpose::STANDARD.encode(format!("puller:{password}"));
    std::fs::create_dir_all(folder.join("docker")).unwrap();
    let file = folder.join("docker/config.json");
    std::fs::write(&file, json!({ "auths": { registry: { "auth": encoded } } }).to_string()).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_goes_into_a_registry_and_comes_out_of_it() {
    let Some(registry) = Registry::start(None).await.unwrap() else { return };
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let plain = registry.address.as_str();
    let (door, sizes) = (component("policy-deny-group"), component("policy-sizes-by-group"));
    let tag = format!("{plain}/site/policies/door:1.0");

    let push = ["push", &door, &tag, "--plain-http", plain, "--json"];
    let first = json_of(&told(here, &push));
    let bytes = std::fs::read(&door).unwrap();
    assert_eq!(first["bytes"], bytes.len());
    let pinned = first["oci"].as_str().unwrap().to_owned();
    assert!(pinned.starts_with(&format!("{plain}/site/policies/door@sha256:")), "{pinned}");

    // The format that other programs read: the guidance of the CNCF.
    let client = Client::new(plain.parse().unwrap());
    let read = async |path: &str| {
        let request = client.request(Method::GET, &format!("/v2/site/policies/door/{path}"));
        let request = request.header(header::ACCEPT, "application/vnd.oci.image.manifest.v1+json");
        json_of(&client.send(request).await.unwrap().body)
    };
    let (_, digest) = pinned.split_once('@').unwrap();
    let manifest = read(&format!("manifests/{digest}")).await;
    assert_eq!(manifest["config"]["mediaType"], "application/vnd.wasm.config.v0+json");
    assert_eq!(manifest["layers"][0]["mediaType"], "application/wasm");
    assert_eq!(manifest["layers"][0]["digest"], first["digest"]);
    assert_eq!(manifest["annotations"]["org.opencontainers.image.title"], "deny-group");
    let about = read(&format!("blobs/{}", manifest["config"]["digest"].as_str().unwrap())).await;
    assert_eq!((&about["architecture"], &about["os"]), (&json!("wasm"), &json!("wasip2")));
    assert_eq!(about["layerDigests"], json!([first["digest"]]));
    let exports = about["component"]["exports"].as_array().unwrap();
    assert!(exports.contains(&json!("wasmspawner:policy/authorize@0.1.0")), "{about}");
    assert!(
        about["component"]["imports"].as_array().unwrap().contains(&json!("wasmspawner:policy/host@0.1.0"))
    );

    // A pull returns the pushed component, and overwrites no file.
    let pulled = told(here, &["pull", &tag, "--plain-http", plain]);
    assert!(pulled.contains(&format!("oci: {pinned}\n")), "{pulled}");
    assert_eq!(std::fs::read(here.join("door.wasm")).unwrap(), bytes);
    std::fs::write(here.join("mine.wasm"), "mine").unwrap();
    let to_mine = ["pull", &tag, "--plain-http", plain, "--output", "mine.wasm"];
    assert!(
        refusal(here, &to_mine)
            .contains("mine.wasm exists; give another file with --output, or replace it with --force")
    );
    assert_eq!(std::fs::read(here.join("mine.wasm")).unwrap(), b"mine");
    told(here, &[&to_mine[..], &["--force"]].concat());
    assert_eq!(std::fs::read(here.join("mine.wasm")).unwrap(), bytes);

    // The tag moves, and the digest does not.
    let second = told(here, &["push", &sizes, &tag, "--plain-http", plain]);
    assert!(second.starts_with(&format!("{tag} is policy-sizes-by-group ")), "{second}");
    let again = json_of(&told(here, &[&to_mine[..], &["--force", "--json"]].concat()));
    assert_ne!(again["digest"], first["digest"]);
    let old =
        json_of(&told(here, &["pull", &pinned, "--plain-http", plain, "--output", "old.wasm", "--json"]));
    assert_eq!(old, first);

    // A service accepts the printed reference.
    let config = json!({
        "auth": { "modes": ["jupyterhub"], "jupyterhub": { "api_url": "http://hub:8081/hub/api" } },
        "registries": { "plain_http": [plain] },
        "policies": [{ "name": "door", "oci": pinned, "digest": first["digest"], "config": { "deny": ["guests"] } }],
    });
    std::fs::write(here.join("site.yaml"), config.to_string()).unwrap();
    let mut check = std::process::Command::new(super::BINARY);
    let checked = check.args(["check", "--config", "site.yaml"]).current_dir(here).output().unwrap();
    assert!(checked.status.success(), "{checked:?}");

    // With a given time the artifact is always the same.
    let mut pushes = Vec::new();
    for tag in ["a", "b"] {
        let reference = format!("{plain}/site/policies/door:{tag}");
        let mut push = command(here, &["push", &door, &reference, "--plain-http", plain, "--json"]);
        pushes.push(push.env("SOURCE_DATE_EPOCH", "1767225600").output().unwrap().stdout);
    }
    assert!(pushes[0] == pushes[1] && !pushes[0].is_empty());
}

#[test]
fn what_is_no_policy_is_not_pushed() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    // No registry is contacted: nothing listens there.
    let push = |file: &str, reference: &str| {
        refusal(here, &["push", file, reference, "--plain-http", "127.0.0.1:1"])
    };
    std::fs::write(here.join("core.wasm"), wat::parse_str("(module)").unwrap()).unwrap();
    std::fs::write(here.join("other.wasm"), wat::parse_str("(component)").unwrap()).unwrap();
    std::fs::write(here.join("text.wasm"), "fn main() {}").unwrap();
    std::fs::File::create(here.join("huge.wasm")).unwrap().set_len((32 << 20) + 1).unwrap();
    for (file, expected) in [
        (
            "core.wasm",
            "core.wasm is not pushed: policy `policy`: is a core WebAssembly module and not a component; build it",
        ),
        ("text.wasm", "is not WebAssembly; `wasmspawner policy build` makes a component"),
        ("other.wasm", "does not export wasmspawner:policy/metadata"),
        ("huge.wasm", "it has 33554433 bytes; the largest that is read has 33554432"),
        ("missing.wasm", "cannot read missing.wasm"),
    ] {
        let said = push(file, "127.0.0.1:1/x:1");
        assert!(said.contains(expected), "{said}");
    }
    let door = component("policy-deny-group");
    for (reference, expected) in [
        (
            format!("127.0.0.1:1/x@sha256:{}", "0".repeat(64)),
            "the digest follows from what is pushed; give a tag",
        ),
        ("A Policy".to_owned(), "is not a reference such as ghcr.io/site/policy:1.2"),
        ("127.0.0.1:1/x:1".to_owned(), "the registry does not answer: it cannot be reached"),
    ] {
        let said = push(&door, &reference);
        assert!(said.contains(expected), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_registry_wants_a_login_which_is_never_printed() {
    let Some(registry) = Registry::start(Some(LOGINS)).await.unwrap() else { return };
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let door = component("policy-deny-group");
    let reference = format!("{}/door:1.0", registry.address);
    let push = ["push", &door, &reference, "--plain-http", &registry.address];
    let pull = ["pull", &reference, "--plain-http", &registry.address, "--force"];

    for command in [&push[..], &pull] {
        let said = refusal(here, command);
        assert!(said.contains("a private registry needs a login in `--credentials-file`"), "{said}");
    }
    log_in(here, &registry.address, "wrong-password");
    for command in [&push[..], &pull] {
        let said = refusal(here, command);
        assert!(said.contains("the login in `--credentials-file` may be wrong"), "{said}");
        assert!(!said.contains("wrong-password"), "{said}");
    }
    log_in(here, &registry.address, PASSWORD);
    for command in [&push[..], &pull] {
        let said = told(here, command);
        assert!(said.contains("digest: sha256:") && !said.contains(PASSWORD), "{said}");
    }
    // The same file by its name, readable for others.
    let file = here.join("docker/config.json");
    std::fs::rename(&file, here.join("logins.json")).unwrap();
    told(here, &[&pull[..], &["--credentials-file", "logins.json"]].concat());
    std::fs::set_permissions(here.join("logins.json"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let said = refusal(here, &[&pull[..], &["--credentials-file", "logins.json"]].concat());
    assert!(
        said.contains("--credentials-file: logins.json: others than its owner have access to it"),
        "{said}"
    );
    // The option that permits this registry without TLS is missing.
    let said = refusal(here, &push[..3]);
    assert!(said.contains("a registry without TLS is listed in `--plain-http`"), "{said}");
}

/// A registry that has been taken over. The name of the repository selects its behaviour. It records the credentials
/// that it receives.
#[derive(Clone, Default)]
struct Hostile {
    got: Arc<Mutex<Vec<String>>>,
    /// The scopes in requests to its token service.
    scopes: Arc<Mutex<Vec<String>>>,
    elsewhere: String,
}

/// A manifest with a file of this size, whose digest differs from that of the content that this registry sends.
fn manifest(size: u64) -> String {
    let digest = format!("sha256:{}", "0".repeat(64));
    let file = json!({ "mediaType": "application/wasm", "digest": digest, "size": size });
    json!({ "schemaVersion": 2, "config": file, "layers": [file] }).to_string()
}

async fn answer(State(hostile): State<Hostile>, request: Request) -> Response {
    // The whole body is read before the answer. Otherwise the client may find the connection closed while it sends.
    let (request, body) = request.into_parts();
    axum::body::to_bytes(body, usize::MAX).await.unwrap();
    if let Some(credential) = request.headers.get(header::AUTHORIZATION) {
        hostile.got.lock().unwrap().push(credential.to_str().unwrap().to_owned());
    }
    let path = request.uri.path().to_owned();
    let what = path.trim_start_matches("/v2/").split('/').next().unwrap().to_owned();
    let with = |status: StatusCode, name: header::HeaderName, value: &str| {
        Response::builder().status(status).header(name, value).body(String::new().into()).unwrap()
    };
    let with_body = |status: StatusCode, body: &str| {
        Response::builder().status(status).body(body.to_owned().into()).unwrap()
    };
    if what == "tokens" {
        hostile.scopes.lock().unwrap().push(request.uri.query().unwrap().to_owned());
        return with_body(StatusCode::OK, "{\"token\": \"of-an-hour\"}");
    }
    let host = request.headers[header::HOST].to_str().unwrap().to_owned();
    let known = request.headers.contains_key(header::AUTHORIZATION);
    match (&request.method, what.as_str()) {
        _ if !known && what == "elsewhere" => {
            with(StatusCode::UNAUTHORIZED, header::WWW_AUTHENTICATE, "Basic realm=\"x\"")
        }
        _ if !known && what == "bearer" => {
            let realm = format!("Bearer realm=\"http://{host}/v2/tokens/\",service=\"x\"");
            with(StatusCode::UNAUTHORIZED, header::WWW_AUTHENTICATE, &realm)
        }
        (&Method::HEAD, _) | (&Method::POST, "unknown") => with_body(StatusCode::NOT_FOUND, ""),
        (&Method::POST, "nowhere") => with_body(StatusCode::ACCEPTED, ""),
        (&Method::POST, "elsewhere") => with(StatusCode::ACCEPTED, header::LOCATION, &hostile.elsewhere),
        (&Method::POST, "broken") => with_body(StatusCode::BAD_GATEWAY, "<html>"),
        (&Method::POST, "escape") => {
            with_body(StatusCode::BAD_REQUEST, &json!({ "errors": [{ "code": "\u{1b}[2J" }] }).to_string())
        }
        (&Method::POST, "read-only") => with_body(
            StatusCode::METHOD_NOT_ALLOWED,
            &json!({ "errors": [{ "code": "UNSUPPORTED" }] }).to_string(),
        ),
        (&Method::POST, _) => with(StatusCode::ACCEPTED, header::LOCATION, "uploads/1"),
        (&Method::PUT, "other") if path.contains("/manifests/") => {
            with(StatusCode::CREATED, "docker-content-digest".parse().unwrap(), "sha256:00")
        }
        (&Method::PUT, _) => with_body(StatusCode::CREATED, ""),
        _ if what == "huge" => with_body(StatusCode::OK, &manifest(1 << 40)),
        _ if what == "exchanged" => with_body(StatusCode::OK, &manifest(9)),
        _ => with_body(StatusCode::OK, "<html>Please log in</html>"),
    }
}

async fn listen(hostile: Hostile) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let router = Router::new().fallback(answer).with_state(hostile);
    tokio::spawn(async { axum::serve(listener, router).await });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_that_was_taken_over_learns_nothing_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let other = Hostile::default();
    let elsewhere = format!("http://{}/upload", listen(other.clone()).await);
    let hostile = Hostile { elsewhere, ..Hostile::default() };
    let address = listen(hostile.clone()).await;
    log_in(here, &address, PASSWORD);
    let door = component("policy-deny-group");
    for (what, expected) in [
        ("nowhere", "the registry does not say where it wants the file"),
        ("unknown", "the registry has no such repository, and makes none by itself"),
        ("broken", "the registry does not answer: its answer has the status 502"),
        ("escape", "the registry does not store it: 400 Bad Request\n"),
        ("read-only", "the registry does not store it: 405 Method Not Allowed, UNSUPPORTED"),
        ("other", "the registry has stored something else than it was sent"),
    ] {
        let reference = format!("{address}/{what}:1");
        let said = refusal(here, &["push", &door, &reference, "--plain-http", &address]);
        assert!(said.contains(expected), "{what}: {said}");
        let said = refusal(here, &["pull", &reference, "--plain-http", &address]);
        assert!(said.contains("the registry has sent something that is no manifest"), "{said}");
        assert!(!here.join(format!("{what}.wasm")).exists());
    }
    for (what, expected) in [
        ("huge", "it has 1099511627776 bytes; 33554432 are allowed"),
        ("exchanged", "the registry has sent something else than was asked for"),
    ] {
        let said = refusal(here, &["pull", &format!("{address}/{what}:1"), "--plain-http", &address]);
        assert!(said.contains(expected) && !here.join(format!("{what}.wasm")).exists(), "{said}");
    }
    assert_eq!(hostile.got.lock().unwrap().len(), 0, "nobody has asked for credentials");
    // The file goes to the place that the registry names, but the password does not.
    let reference = format!("{address}/elsewhere:1");
    let pushed = run(here, &["push", &door, &reference, "--plain-http", &address]);
    assert!(pushed.status.success(), "{pushed:?}");
    assert!(!hostile.got.lock().unwrap().is_empty());
    assert_eq!(other.got.lock().unwrap().len(), 0);
    // A token service is asked for the scope of the command.
    told(here, &["push", &door, &format!("{address}/bearer:1"), "--plain-http", &address]);
    refusal(here, &["pull", &format!("{address}/bearer:1"), "--plain-http", &address]);
    let scope = |actions: &str| format!("service=x&scope=repository%3Abearer%3A{actions}");
    assert_eq!(*hostile.scopes.lock().unwrap(), [scope("pull%2Cpush"), scope("pull")]);
}
