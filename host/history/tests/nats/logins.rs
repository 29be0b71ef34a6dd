//! Logins and TLS.

use std::os::unix::fs::PermissionsExt as _;

use crate::server::{NatsServer, SKIPPED};
use crate::setup::{Process, begin, config, note, own_address, until};

fn secret(server: &NatsServer, name: &str, text: &str) -> String {
    let path = server.folder().join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path.display().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_may_be_replaced_while_the_service_runs() {
    let with = |password: &str| format!("authorization {{ user: hub, password: {password} }}");
    let Some(mut server) = NatsServer::start(own_address(), &with("first")) else {
        return println!("{SKIPPED}");
    };
    let file = secret(&server, "password", "wrong");
    let login = format!(", \"user\": \"hub\", \"password_file\": \"{file}\"");
    let process = Process::of("hub", config(&server.url(), &login));
    process.begin_to_lead(1);
    note(&begin(&process.history, "ada", 1), 1);
    let known = tokio::time::timeout(std::time::Duration::from_secs(1), process.history.complete()).await;
    assert!(known.is_err() && process.history.is_failing());
    secret(&server, "password", "first");
    process.flush().await;
    server.kill();
    server.configure(&with("second"));
    secret(&server, "password", "second");
    server.run();
    note(&begin(&process.history, "eve", 2), 1);
    until(|| !process.history.is_failing()).await;
    process.flush().await;
    assert_eq!(process.history.dropped(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_over_tls_with_an_authority_of_the_site() {
    let address = own_address();
    let certified = rcgen::generate_simple_self_signed(vec![address.to_string()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&cert, certified.cert.pem()).unwrap();
    std::fs::write(&key, certified.signing_key.serialize_pem()).unwrap();
    let server = format!(
        "tls {{ cert_file: \"{}\", key_file: \"{}\" }}\nauthorization {{ token: s3cret }}",
        cert.display(),
        key.display()
    );
    let Some(server) = NatsServer::start(address, &server) else { return println!("{SKIPPED}") };
    let file = secret(&server, "token", "s3cret\n");
    let url = server.url().replace("nats://", "tls://");
    let trusting = format!(", \"token_file\": \"{file}\", \"ca_file\": \"{}\"", cert.display());
    let process = Process::of("hub", config(&url, &trusting));
    process.lead(1).await;
    let distrustful = Process::of("hub", config(&url, &format!(", \"token_file\": \"{file}\"")));
    let known = tokio::time::timeout(std::time::Duration::from_secs(1), distrustful.history.complete()).await;
    assert!(
        known.is_err() && !distrustful.history.is_shared(),
        "the certificate is not of a known authority"
    );
}

/// A login is never sent without TLS to a server that is written with `tls://`.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_tls_is_refused_where_tls_is_asked_for() {
    let Some(server) = NatsServer::start(own_address(), "authorization { token: s3cret }") else {
        return println!("{SKIPPED}");
    };
    let login = format!(", \"token_file\": \"{}\"", secret(&server, "token", "s3cret"));
    let process = Process::of("hub", config(&server.url().replace("nats://", "tls://"), &login));
    process.begin_to_lead(1);
    let known = tokio::time::timeout(std::time::Duration::from_secs(1), process.history.complete()).await;
    assert!(known.is_err() && process.history.is_failing());
}
