//! Logs of containers: files that processes write to themselves, so that they go on while this program is away.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt, try_unfold};
use rustix::fs::inotify;
use tokio::{
    io::{AsyncReadExt, unix::AsyncFd},
    sync::watch,
};

use super::directory::StateDirectory;
use crate::kubelet::status::{ContainerState, PodRecord};

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
    let changes = if request.follow { Some(changes(&path)?) } else { None };
    let mut file = tokio::fs::File::open(&path).await?;
    tokio::io::AsyncSeekExt::seek(&mut file, SeekFrom::Start(start)).await?;
    Ok(try_unfold(Reader { file, position: start, changes, ended }, Reader::next).boxed())
}

/// Tells whether a run of a container is over.
#[derive(Debug, Clone)]
pub(crate) struct Ended {
    pub(crate) record: watch::Receiver<PodRecord>,
    pub(crate) container: String,
    pub(crate) restarts: u32,
}

impl Ended {
    fn now(&self) -> bool {
        let record = self.record.borrow();
        record.container(&self.container).is_none_or(|container| {
            container.restarts != self.restarts || !matches!(container.state, ContainerState::Running { .. })
        })
    }
}

struct Reader {
    file: tokio::fs::File,
    position: u64,
    changes: Option<AsyncFd<OwnedFd>>,
    ended: Ended,
}

impl Reader {
    async fn next(mut self) -> io::Result<Option<(Bytes, Self)>> {
        loop {
            let over = self.ended.now();
            if self.file.metadata().await?.len() < self.position {
                // The log was cut.
                self.position = tokio::io::AsyncSeekExt::seek(&mut self.file, SeekFrom::Start(0)).await?;
            }
            let mut chunk = vec![0; 32 << 10];
            let length = self.file.read(&mut chunk).await?;
            if length > 0 {
                chunk.truncate(length);
                self.position += length as u64;
                return Ok(Some((Bytes::from(chunk), self)));
            }
            let Some(changes) = self.changes.as_ref().filter(|_| !over) else { return Ok(None) };
            tokio::select! {
                ready = changes.readable() => drain(ready?)?,
                news = self.ended.record.changed() => if news.is_err() {
                    self.changes = None;
                },
            }
        }
    }
}

/// A descriptor that becomes readable when the file is written to.
#[expect(
    deprecated,
    reason = "its replacement is unsafe, and an OwnedFd is what it asks for: open until it is dropped"
)]
fn changes(path: &Path) -> io::Result<AsyncFd<OwnedFd>> {
    let descriptor = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC)?;
    inotify::add_watch(&descriptor, path, inotify::WatchFlags::MODIFY)?;
    AsyncFd::new(descriptor)
}

/// Forgets the notifications: all that matters is that there were some.
fn drain(mut ready: tokio::io::unix::AsyncFdReadyGuard<'_, OwnedFd>) -> io::Result<()> {
    let mut buffer = [0_u8; 4096];
    loop {
        match rustix::io::read(ready.get_inner(), &mut buffer) {
            Ok(0) => return Ok(()),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => {
                ready.clear_ready();
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Where the last `lines` lines of a file begin.
fn tail_offset(path: &Path, lines: u64) -> io::Result<u64> {
    let mut file = File::open(path)?;
    let mut end = file.seek(SeekFrom::End(0))?;
    let length = end;
    let mut missing = lines;
    let mut buffer = vec![0; 64 << 10];
    if lines == 0 {
        return Ok(length);
    }
    while end > 0 {
        let size = end.min(buffer.len() as u64);
        end -= size;
        file.seek(SeekFrom::Start(end))?;
        let chunk = &mut buffer[..usize::try_from(size).map_err(io::Error::other)?];
        file.read_exact(chunk)?;
        for (index, byte) in chunk.iter().enumerate().rev() {
            let position = end + index as u64;
            // The newline at the very end closes the last line, it does not begin another.
            if *byte == b'\n' && position + 1 < length {
                missing -= 1;
                if missing == 0 {
                    return Ok(position + 1);
                }
            }
        }
    }
    Ok(0)
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

    fn running(restarts: u32) -> PodRecord {
        let pod = serde_json::json!({"metadata": {}, "spec": {"containers": [{"name": "notebook"}]}});
        let mut record = PodRecord::of(&serde_json::from_value(pod).unwrap(), String::new());
        record.containers[0].state = ContainerState::Running { since: jiff::Timestamp::UNIX_EPOCH };
        record.containers[0].restarts = restarts;
        record
    }

    fn ended(record: watch::Receiver<PodRecord>) -> Ended {
        Ended { record, container: "notebook".to_owned(), restarts: 0 }
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
