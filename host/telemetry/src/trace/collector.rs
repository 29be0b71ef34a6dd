//! The HTTP client that sends traces to the collector.

use std::path::{Path, PathBuf};
use std::pin::Pin;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use opentelemetry_http::{HttpClient, HttpError};
use tokio::runtime::Handle;
use wasmspawner_core::config::OtlpConfig;

use super::error::OtlpError;
use wasmspawner_files::secret_file::exposed_mode;
use wasmspawner_outgoing as outgoing;

/// The maximum size of an answer, in bytes. An answer contains a few numbers and a message.
const ANSWER: usize = 64 << 10;

/// Sends requests on the threads of the service. Only the thread of the exporter waits for them.
#[derive(Debug)]
pub(super) struct Collector {
    http: reqwest::Client,
    headers_file: Option<PathBuf>,
    runtime: Handle,
}

impl Collector {
    pub(super) fn new(config: &OtlpConfig, runtime: Handle) -> Result<Self, OtlpError> {
        let plain = config.endpoint.as_str().starts_with("http://");
        // A redirect could lead the credential to another host.
        let builder = outgoing::builder(plain, config.timeout.unsigned_abs());
        let collector = Self { http: builder.build()?, headers_file: config.headers_file.clone(), runtime };
        if let Some(file) = &collector.headers_file {
            read(file)?;
        }
        Ok(collector)
    }
}

impl HttpClient for Collector {
    fn send_bytes<'this, 'sending>(
        &'this self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'sending>>
    where
        'this: 'sending,
        Self: 'sending,
    {
        let (http, headers_file) = (self.http.clone(), self.headers_file.clone());
        let sending = self.runtime.spawn(async move {
            let mut request = request;
            if let Some(file) = headers_file {
                request.headers_mut().extend(tokio::task::spawn_blocking(move || read(&file)).await??);
            }
            let answer = http.execute(request.try_into()?).await?;
            let status = answer.status();
            let mut response = Response::new(outgoing::body(answer, ANSWER).await?);
            *response.status_mut() = status;
            Ok(response)
        });
        Box::pin(async move { sending.await? })
    }
}

/// Reads the headers in the file, one `Name: value` per line.
fn read(file: &Path) -> Result<HeaderMap, OtlpError> {
    let unreadable = |source| OtlpError::Unreadable { path: file.to_owned(), source };
    if let Some(mode) = exposed_mode(&std::fs::metadata(file).map_err(unreadable)?) {
        return Err(OtlpError::Exposed { path: file.to_owned(), mode });
    }
    let text = std::fs::read_to_string(file).map_err(unreadable)?;
    let lines = text.lines().map(str::trim).enumerate();
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|(index, line)| {
            header(line).ok_or_else(|| OtlpError::Header { path: file.to_owned(), line: index + 1 })
        })
        .collect()
}

fn header(line: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = line.split_once(':')?;
    let mut value = HeaderValue::from_str(value.trim()).ok()?;
    value.set_sensitive(true);
    Some((HeaderName::from_bytes(name.trim().as_bytes()).ok()?, value))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn headers_come_from_a_private_file_and_errors_do_not_quote_them() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("headers");
        for (text, mode, expected) in [
            ("# ours\nAuthorization: Bearer s3cret\n\nX-Site: a\n", 0o600, Ok(2)),
            ("Authorization: Bearer s3cret\n", 0o644, Err("mode 0644")),
            ("X-Site: a\nBearer s3cret\n", 0o600, Err("line 2")),
        ] {
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            match (read(&file), expected) {
                (Ok(headers), Ok(count)) => assert_eq!(headers.len(), count),
                (Err(error), Err(part)) => {
                    let error = error.to_string();
                    assert!(error.contains(part) && !error.contains("s3cret"), "{error}");
                }
                (result, _) => panic!("{result:?} for {text:?}"),
            }
        }
    }
}
