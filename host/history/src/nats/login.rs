//! The login of the service at NATS, from files that are read again for each connection.

use std::path::Path;

use async_nats::Auth;
use nkeys::KeyPair;
use wasmspawner_core::config::NatsLogin;
use wasmspawner_files::secret_file::exposed_mode;

use super::error::NatsError;

/// The greatest size of a file with a login.
const MAX_BYTES: u64 = 64 * 1024;

/// Reads the login, and signs the server's `nonce` with it if it has a key.
pub(super) fn answer(login: &NatsLogin, nonce: &[u8]) -> Result<Auth, NatsError> {
    let mut auth = Auth::new();
    match login {
        NatsLogin::None => {}
        NatsLogin::User { name, password_file } => {
            auth.username = Some(name.clone());
            auth.password = Some(one_line("password_file", password_file, "password in its one line")?);
        }
        NatsLogin::Token(file) => {
            auth.token = Some(one_line("token_file", file, "token in its one line")?);
        }
        NatsLogin::Credentials(file) => {
            let text = read("credentials_file", file)?;
            let no_login = || NatsError::NoLogin {
                key: "credentials_file",
                path: file.clone(),
                expected: "JWT and key of a user, as `nsc generate creds` writes them",
            };
            let jwt = block(&text, "NATS USER JWT").ok_or_else(no_login)?;
            let seed = block(&text, "USER NKEY SEED").ok_or_else(no_login)?;
            let key = KeyPair::from_seed(seed).map_err(|_| no_login())?;
            auth.jwt = Some(jwt.to_owned());
            auth.signature = Some(key.sign(nonce).map_err(|_| no_login())?);
        }
    }
    Ok(auth)
}

fn one_line(key: &'static str, path: &Path, expected: &'static str) -> Result<String, NatsError> {
    let text = read(key, path)?;
    let line = text.trim();
    if line.is_empty() || line.contains(['\n', '\r', '\0']) {
        return Err(NatsError::NoLogin { key, path: path.to_owned(), expected });
    }
    Ok(line.to_owned())
}

fn read(key: &'static str, path: &Path) -> Result<String, NatsError> {
    let unreadable = |problem: String| NatsError::Unreadable { key, path: path.to_owned(), problem };
    let metadata = std::fs::metadata(path).map_err(|error| unreadable(error.to_string()))?;
    if let Some(mode) = exposed_mode(&metadata) {
        return Err(NatsError::Exposed { key, path: path.to_owned(), mode });
    }
    if metadata.len() > MAX_BYTES {
        return Err(unreadable(format!("it has more than {MAX_BYTES} bytes")));
    }
    std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))
}

/// Returns the line between the marks of a block in a file of credentials.
fn block<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, after) = text.split_once(&format!("BEGIN {name}"))?;
    let (_, inside) = after.split_once('\n')?;
    let line = inside.lines().next()?.trim();
    (!line.is_empty() && !line.starts_with('-')).then_some(line)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::PathBuf;

    use tempfile::TempDir;

    use super::*;

    fn file(folder: &TempDir, text: &str, mode: u32) -> PathBuf {
        let path = folder.path().join("login");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn credentials_are_the_jwt_and_a_signature_by_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let user = KeyPair::new_user();
        let text = format!(
            "-----BEGIN NATS USER JWT-----\r\neyJ0.x.y\r\n------END NATS USER JWT------\r\n\r\nkeep it secret\n\n\
             -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
            user.seed().unwrap()
        );
        let auth = answer(&NatsLogin::Credentials(file(&folder, &text, 0o600)), b"nonce").unwrap();
        assert_eq!(auth.jwt.as_deref(), Some("eyJ0.x.y"));
        user.verify(b"nonce", &auth.signature.unwrap()).unwrap();
    }

    #[test]
    fn a_file_without_a_login_is_refused_and_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let seedless = "-----BEGIN NATS USER JWT-----\ns3cret\n------END NATS USER JWT------\n";
        for (text, mode, expected) in [
            ("", 0o600, "has no JWT and key"),
            (seedless, 0o600, "has no JWT and key"),
            ("-----BEGIN USER NKEY SEED-----\ns3cret\n", 0o600, "has no JWT and key"),
            (seedless, 0o644, "has mode 0644"),
        ] {
            let login = NatsLogin::Credentials(file(&folder, text, mode));
            let error = answer(&login, b"").err().unwrap().to_string();
            assert!(
                error.starts_with("history.nats.credentials_file: ") && error.contains(expected),
                "{error}"
            );
            assert!(!error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn a_token_or_a_password_is_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let token =
            |text: &str| answer(&NatsLogin::Token(file(&folder, text, 0o600)), b"").map(|auth| auth.token);
        assert_eq!(token("s3cret\n").unwrap().as_deref(), Some("s3cret"));
        assert!(token("two\nlines").is_err() && token(" \n").is_err());
        let missing = NatsLogin::User { name: "a".into(), password_file: folder.path().join("none") };
        let error = answer(&missing, b"").err().unwrap().to_string();
        assert!(error.starts_with("history.nats.password_file: cannot read"), "{error}");
        assert_eq!(answer(&NatsLogin::None, b"").unwrap().token, None);
    }
}
