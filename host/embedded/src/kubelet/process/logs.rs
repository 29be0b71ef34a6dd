//! Logs of containers: files that processes write to themselves, so that they go on while this program is away.

use std::fs::{self, OpenOptions};
use std::io::{self, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt, try_unfold};
use k8s_openapi::api::core::v1::PodStatus;
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio::sync::watch;

use super::directory::StateDirectory;
use crate::kubelet::status::{container, running_since};

/// How often a log that is followed is read for more.
const FOLLOW_PERIOD: Duration = Duration::from_millis(100);

/// Which part of a log is wanted.
#[derive(Debug, Clone, Default)]
pub(crate) struct LogPart {
    pub(crate) follow: bool,
    pub(crate) tail_lines: Option<u64>,
}

/// Opens one run's log. It is followed until the run has ended, if asked.
pub(crate) async fn open_log(
    path: PathBuf,
    request: LogPart,
    ended: Ended,
) -> io::Result<BoxStream<'static, io::Result<Bytes>>> {
    let start = match request.tail_lines {
        Some(lines) => {
            let path = path.clone();
            tokio::task::spawn_blocking(move || tail_offset(&path, lines))
                .await
                .map_err(io::Error::other)??
        }
        None => 0,
    };
    let mut file = tokio::fs::File::open(&path).await?;
    file.seek(SeekFrom::Start(start)).await?;
    Ok(try_unfold(Reader { file, position: start, follow: request.follow, ended }, Reader::next).boxed())
}

/// Finds out whether a run of a container is over.
#[derive(Debug, Clone)]
pub(crate) struct Ended {
    pub(crate) status: watch::Receiver<PodStatus>,
    pub(crate) container: String,
    pub(crate) restarts: i32,
}

impl Ended {
    fn now(&self) -> bool {
        container(&self.status.borrow(), &self.container).is_none_or(|container| {
            container.restart_count != self.restarts || running_since(container).is_none()
        })
    }
}

struct Reader {
    file: tokio::fs::File,
    position: u64,
    follow: bool,
    ended: Ended,
}

impl Reader {
    async fn next(mut self) -> io::Result<Option<(Bytes, Self)>> {
        loop {
            let over = self.ended.now();
            if self.file.metadata().await?.len() < self.position {
                // The log was cut.
                self.position = self.file.seek(SeekFrom::Start(0)).await?;
            }
            let mut chunk = vec![0; 32 << 10];
            let length = self.file.read(&mut chunk).await?;
            if length > 0 {
                chunk.truncate(length);
                self.position += length as u64;
                return Ok(Some((Bytes::from(chunk), self)));
            }
            if over || !self.follow {
                return Ok(None);
            }
            tokio::select! {
                () = tokio::time::sleep(FOLLOW_PERIOD) => {}
                news = self.ended.status.changed() => self.follow = news.is_ok(),
            }
        }
    }
}

/// Where the last `lines` lines of a file begin. Logs are cut before they become too large to be read at once.
fn tail_offset(path: &Path, lines: u64) -> io::Result<u64> {
    let text = fs::read(path)?;
    let lines = usize::try_from(lines).unwrap_or(usize::MAX);
    if lines == 0 {
        return Ok(text.len() as u64);
    }
    // The newline at the very end closes the last line; it does not begin another.
    let inner = &text[..text.len().saturating_sub(1)];
    let newlines = inner.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    Ok(newlines.map(|(at, _)| at as u64 + 1).nth(lines - 1).unwrap_or(0))
}

/// Cuts every log that is longer than the limit: the old part is kept beside it, the process writes on at the start.
pub(crate) fn cut_logs(state: &StateDirectory, limit: u64) -> io::Result<()> {
    for (_, pod) in state.all_pods()? {
        for container in pod.all_containers()? {
            for entry in fs::read_dir(container.path())?.flatten() {
                let path = entry.path();
                let is_log = path.extension().is_some_and(|extension| extension == "log");
                if is_log && entry.metadata()?.len() > limit {
                    fs::copy(&path, path.with_extension("log.1"))?;
                    OpenOptions::new().write(true).truncate(true).open(&path)?;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use futures::TryStreamExt;

    use super::*;

    fn running(restarts: i32) -> PodStatus {
        let state = serde_json::json!({"containerStatuses": [{
            "name": "notebook", "image": "", "imageID": "", "ready": true, "restartCount": restarts,
            "state": {"running": {"startedAt": "2024-01-01T00:00:00Z"}}}]});
        serde_json::from_value(state).unwrap()
    }

    fn ended(status: watch::Receiver<PodStatus>) -> Ended {
        Ended { status, container: "notebook".to_owned(), restarts: 0 }
    }

    #[test]
    fn the_last_lines() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "one\ntwo\nthree\n").unwrap();
        for (lines, expect) in [(0, 14), (1, 8), (2, 4), (3, 0), (9, 0)] {
            assert_eq!(tail_offset(file.path(), lines).unwrap(), expect, "{lines}");
        }
        fs::write(file.path(), "one\ntwo").unwrap();
        assert_eq!(tail_offset(file.path(), 1).unwrap(), 4);
        fs::write(file.path(), "").unwrap();
        assert_eq!(tail_offset(file.path(), 1).unwrap(), 0);
    }

    #[tokio::test]
    async fn a_log_is_followed_to_the_end_of_its_run() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "one\n").unwrap();
        let (sender, record) = watch::channel(running(0));
        let request = LogPart { follow: true, tail_lines: None };
        let mut stream = open_log(file.path().to_owned(), request, ended(record)).await.unwrap();
        assert_eq!(stream.try_next().await.unwrap().unwrap(), "one\n");
        let mut log = OpenOptions::new().append(true).open(file.path()).unwrap();
        let (next, ()) = tokio::join!(stream.try_next(), async { log.write_all(b"two\n").unwrap() });
        assert_eq!(next.unwrap().unwrap(), "two\n");
        log.write_all(b"three\n").unwrap();
        sender.send(running(1)).unwrap();
        assert_eq!(stream.try_next().await.unwrap().unwrap(), "three\n");
        assert_eq!(stream.try_next().await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_cut_log_is_read_on_from_its_start() {
        let root = tempfile::tempdir().unwrap();
        let state = StateDirectory::new(root.path());
        let container = state.pod("u").container("notebook");
        fs::create_dir_all(container.path()).unwrap();
        let path = container.log(0);
        let mut log = OpenOptions::new().create(true).append(true).open(&path).unwrap();
        log.write_all(b"a long line\n").unwrap();
        let (_sender, record) = watch::channel(running(0));
        let request = LogPart { follow: true, tail_lines: None };
        let mut stream = open_log(path.clone(), request, ended(record)).await.unwrap();
        assert_eq!(stream.try_next().await.unwrap().unwrap(), "a long line\n");
        cut_logs(&state, 5).unwrap();
        assert_eq!(fs::read(container.cut_log(0)).unwrap(), b"a long line\n");
        let (next, ()) = tokio::join!(stream.try_next(), async { log.write_all(b"new\n").unwrap() });
        assert_eq!(next.unwrap().unwrap(), "new\n");
    }
}
