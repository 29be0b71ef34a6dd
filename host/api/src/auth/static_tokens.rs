//! Authentication with tokens from a file. The file may change while the service runs.

use std::collections::HashSet;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use subtle::ConstantTimeEq;
use tokio::sync::Mutex;
use tokio::time::Instant;
use wasmspawner_core::users::access::Rights;
use wasmspawner_core::users::token::{TokenDigest, TokenEntry};
use wasmspawner_core::values::secret::SecretString;

use super::caller::Provider;
use super::{AuthError, AuthSetupError, Caller};
use wasmspawner_files::secret_file::exposed_mode;

/// The period of the check for changes of the file. A removed token may work for this long.
const RECHECK: Duration = Duration::from_secs(1);
/// The size limit of the token file, in bytes.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// The tokens of a file. The file is checked for changes once a second, and at once when a token is unknown, because it
/// may just have been added.
pub(super) struct StaticTokens {
    path: PathBuf,
    recheck: Duration,
    tokens: ArcSwap<Vec<TokenEntry>>,
    /// All tokens that have been in the file since the start. A removed token may come back, so no other method may see
    /// it.
    ever: std::sync::Mutex<HashSet<TokenDigest>>,
    seen: Mutex<Seen>,
}

/// The version of the file that was read, and the time of its last comparison with the file on disk.
struct Seen {
    version: Version,
    checked: Instant,
}

#[derive(PartialEq, Eq, Clone, Copy)]
struct Version {
    inode: u64,
    length: u64,
    modified: (i64, i64),
    mode: u32,
}

impl StaticTokens {
    pub(super) async fn open(path: PathBuf) -> Result<Self, AuthSetupError> {
        let unreadable = |error| AuthSetupError::Unreadable { path: path.clone(), error };
        let metadata = tokio::fs::metadata(&path).await.map_err(unreadable)?;
        let tokens = read(&path, &metadata).await?;
        let seen = Mutex::new(Seen { version: Version::from_metadata(&metadata), checked: Instant::now() });
        let ever = std::sync::Mutex::new(digests(&tokens).collect());
        Ok(Self { path, recheck: RECHECK, tokens: ArcSwap::from_pointee(tokens), ever, seen })
    }

    /// True if the token is in the file, or was in it at any time since the start.
    pub(super) fn have_had(&self, token: &SecretString) -> bool {
        self.ever
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(&TokenDigest::from_token(token.expose()))
    }

    pub(super) async fn caller(&self, token: &SecretString) -> Result<Caller, AuthError> {
        self.refresh(self.recheck).await;
        let digest = TokenDigest::from_token(token.expose());
        let mut found = self.find(digest);
        if found.is_none() {
            self.refresh(Duration::ZERO).await;
            found = self.find(digest);
        }
        let entry = found.ok_or(AuthError::UnknownToken)?;
        match entry.expired_at(Timestamp::now()) {
            Some(at) => Err(AuthError::ExpiredToken(at)),
            None => Ok(described(entry, token)),
        }
    }

    /// Finds the entry with this digest. All entries are compared, each in constant time, so that timing reveals
    /// nothing.
    fn find(&self, digest: TokenDigest) -> Option<TokenEntry> {
        let mut found = None;
        for entry in self.tokens.load().iter() {
            if bool::from(entry.sha256.as_bytes().ct_eq(digest.as_bytes())) {
                found = Some(entry.clone());
            }
        }
        found
    }

    /// Reads the file again if it has changed. Does nothing if the file was checked within `younger`. A client that
    /// hangs up cancels its request at any `await`. The check is therefore recorded only when it is complete: otherwise
    /// such a client could hide added tokens, and keep a removed token valid.
    async fn refresh(&self, younger: Duration) {
        let mut seen = self.seen.lock().await;
        if seen.checked.elapsed() < younger {
            return;
        }
        let checked = Instant::now();
        let version = self.read_if_changed(seen.version).await;
        *seen = Seen { version, checked };
    }

    /// Reads the file if it has changed, and returns its current version. While the file cannot be read, the old tokens
    /// stay valid: it may be in the middle of an edit, which should not lock out any caller.
    async fn read_if_changed(&self, known: Version) -> Version {
        let metadata = match tokio::fs::metadata(&self.path).await {
            Ok(metadata) => metadata,
            Err(error) => {
                tracing::warn!(path = %self.path.display(), %error, "cannot read the metadata of the token file");
                return known;
            }
        };
        let version = Version::from_metadata(&metadata);
        if version != known {
            match read(&self.path, &metadata).await {
                Ok(tokens) => {
                    self.ever.lock().unwrap_or_else(PoisonError::into_inner).extend(digests(&tokens));
                    self.tokens.store(Arc::new(tokens));
                }
                Err(error) => {
                    tracing::warn!(%error, "the token file changed and cannot be used; the old tokens stay");
                }
            }
        }
        version
    }
}

fn digests(tokens: &[TokenEntry]) -> impl Iterator<Item = TokenDigest> {
    tokens.iter().map(|entry| entry.sha256)
}

fn described(entry: TokenEntry, token: &SecretString) -> Caller {
    Caller {
        identity: entry.identity().ok_or_else(|| AuthError::UnknownIdentity(entry.user.clone())),
        username: entry.user,
        rights: Rights::from(entry.scopes),
        token: token.clone(),
        authenticated_by: Provider::TokensFile,
        slot: None,
    }
}

impl Version {
    fn from_metadata(metadata: &Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            mode: metadata.mode(),
        }
    }
}

async fn read(path: &PathBuf, metadata: &Metadata) -> Result<Vec<TokenEntry>, AuthSetupError> {
    let unreadable = |error| AuthSetupError::Unreadable { path: path.clone(), error };
    if let Some(mode) = exposed_mode(metadata) {
        return Err(AuthSetupError::Exposed { path: path.clone(), mode });
    }
    if metadata.len() > MAX_FILE_BYTES {
        return Err(unreadable(io::Error::other("it is larger than 16 MiB")));
    }
    let text = tokio::fs::read_to_string(path).await.map_err(unreadable)?;
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(Vec::new());
    }
    serde_saphyr::from_str(&text).map_err(|error| {
        // Only the first line of the error is kept, because the others quote the file.
        let problem = error.to_string().lines().next().unwrap_or_default().to_owned();
        AuthSetupError::Malformed { path: path.clone(), problem }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    use std::path::Path;
    use std::task::Poll;
    use tokio::time::advance;
    use wasmspawner_core::names::Username;
    use wasmspawner_core::users::access::Scope;

    fn line(token: &str, user: &str) -> String {
        let entry = TokenEntry {
            sha256: TokenDigest::from_token(token),
            user: Username::parse(user).unwrap(),
            scopes: [Scope::ExecNotebook].into(),
            expires: None,
            uid: None,
            gid: None,
            groups: vec![],
        };
        entry.to_line().unwrap()
    }

    fn append(path: &Path, text: &str) {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    async fn open(path: &Path) -> Result<StaticTokens, AuthSetupError> {
        StaticTokens::open(path.to_owned()).await
    }

    async fn user(tokens: &StaticTokens, token: &str) -> Result<String, AuthError> {
        tokens.caller(&SecretString::new(token)).await.map(|caller| caller.username.to_string())
    }

    #[tokio::test]
    async fn a_token_works_as_soon_as_it_is_appended() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.yaml");
        append(&path, "# none yet\n");
        let tokens = open(&path).await.unwrap();
        assert_eq!(user(&tokens, "one").await, Err(AuthError::UnknownToken));
        append(&path, &line("one", "ada"));
        assert_eq!(user(&tokens, "one").await.unwrap(), "ada");
        append(&path, &line("two", "bob"));
        assert_eq!(user(&tokens, "two").await.unwrap(), "bob");
    }

    #[tokio::test]
    async fn a_client_that_hangs_up_hides_no_token() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.yaml");
        append(&path, "# none yet\n");
        let tokens = open(&path).await.unwrap();
        for polls in 0..4 {
            let token = format!("token-{polls}");
            append(&path, &line(&token, "ada"));
            poll_at_most(polls, user(&tokens, &token)).await;
            assert_eq!(user(&tokens, &token).await.unwrap(), "ada", "hung up after {polls} polls");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_hangs_up_keeps_no_token() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.yaml");
        append(&path, &line("removed", "ada"));
        for polls in 0..4 {
            let tokens = open(&path).await.unwrap();
            std::fs::write(&path, line("other", "somebody")).unwrap();
            advance(RECHECK).await;
            poll_at_most(polls, user(&tokens, "removed")).await;
            let answer = user(&tokens, "removed").await;
            assert_eq!(answer, Err(AuthError::UnknownToken), "hung up after {polls} polls");
            std::fs::write(&path, line("removed", "ada")).unwrap();
        }
    }

    /// Polls `work` at most `polls` times and then drops it.
    async fn poll_at_most(mut polls: usize, work: impl Future) {
        let mut work = std::pin::pin!(work);
        std::future::poll_fn(|context| {
            if polls == 0 {
                return Poll::Ready(());
            }
            polls -= 1;
            work.as_mut().poll(context).map(drop)
        })
        .await;
    }

    #[tokio::test]
    async fn a_removed_token_stops_working_at_the_next_check() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.yaml");
        append(&path, &line("one", "ada"));
        let mut tokens = open(&path).await.unwrap();
        assert_eq!(user(&tokens, "one").await.unwrap(), "ada");
        std::fs::write(&path, line("two", "bob")).unwrap();
        tokens.recheck = Duration::ZERO;
        assert_eq!(user(&tokens, "one").await, Err(AuthError::UnknownToken));
    }

    #[tokio::test]
    async fn after_a_broken_edit_the_earlier_tokens_are_still_accepted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.yaml");
        append(&path, &line("one", "ada"));
        let tokens = open(&path).await.unwrap();
        append(&path, "- {half");
        assert_eq!(user(&tokens, "nobody's").await, Err(AuthError::UnknownToken));
        assert_eq!(user(&tokens, "one").await.unwrap(), "ada");
    }

    #[tokio::test]
    async fn a_file_that_others_can_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.yaml");
        append(&path, &line("one", "ada"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let error = open(&path).await.err().unwrap().to_string();
        assert!(error.contains("has mode 0640") && error.contains("chmod 600"), "{error}");
    }

    #[tokio::test]
    async fn the_error_about_a_missing_file_names_it() {
        let error = open(Path::new("/nonexistent/tokens")).await.err().unwrap().to_string();
        assert!(error.starts_with("auth.static.tokens_file: cannot read /nonexistent/tokens"), "{error}");
    }
}
