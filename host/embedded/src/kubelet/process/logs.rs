//! Logs of containers. The processes write to the files themselves, so that logs continue while this program does not
//! run.

use std::fs::{self, OpenOptions};
use std::io::{self, SeekFrom};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt, try_unfold};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

use super::directory::{ContainerDirectory, StateDirectory};
use super::record::ProcessRecord;

/// The time between two checks of a followed log for new output.
const FOLLOW_PERIOD: Duration = Duration::from_millis(100);

/// Opens the log of the container's run number `restarts`, from the beginning or at its last lines. A log that is
/// followed ends with its run.
pub(crate) async fn open_log(
    directory: ContainerDirectory,
    restarts: i32,
    follow: bool,
    tail_lines: Option<u64>,
) -> io::Result<BoxStream<'static, io::Result<Bytes>>> {
    let path = directory.log(restarts);
    // Logs are cut before they become too large to be read at once.
    let position = match tail_lines {
        Some(lines) => tail_offset(&tokio::fs::read(&path).await?, lines),
        None => 0,
    };
    let mut file = File::open(&path).await?;
    file.seek(SeekFrom::Start(position)).await?;
    let reader = Reader { file, position, follow, directory, restarts };
    Ok(try_unfold(reader, Reader::next).boxed())
}

struct Reader {
    file: File,
    position: u64,
    follow: bool,
    directory: ContainerDirectory,
    restarts: i32,
}

impl Reader {
    async fn next(mut self) -> io::Result<Option<(Bytes, Self)>> {
        loop {
            // This is checked before the read, so that the last output is not missed.
            let more_may_come = self.follow && self.is_running();
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
            if !more_may_come {
                return Ok(None);
            }
            tokio::time::sleep(FOLLOW_PERIOD).await;
        }
    }

    fn is_running(&self) -> bool {
        ProcessRecord::read(&self.directory)
            .is_some_and(|record| record.restarts == self.restarts && record.alive().is_some())
    }
}

/// Returns the offset at which the last `lines` lines of a text begin.
fn tail_offset(text: &[u8], lines: u64) -> u64 {
    let lines = usize::try_from(lines).unwrap_or(usize::MAX);
    if lines == 0 {
        return text.len() as u64;
    }
    // The newline at the very end closes the last line; it does not begin another.
    let inner = &text[..text.len().saturating_sub(1)];
    let newlines = inner.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    newlines.map(|(at, _)| at as u64 + 1).nth(lines - 1).unwrap_or(0)
}

/// The largest part of a log that the kubelet takes for the message of a container that has failed: lines, and bytes.
const MESSAGE_LINES: u64 = 80;
const MESSAGE_BYTES: usize = 2048;

/// Returns the end of a log, as the kubelet's `FallbackToLogsOnError` does.
pub(super) fn message_from_log(log: &[u8]) -> String {
    let lines = usize::try_from(tail_offset(log, MESSAGE_LINES)).unwrap_or_default();
    let begin = lines.max(log.len().saturating_sub(MESSAGE_BYTES));
    String::from_utf8_lossy(&log[begin..]).into_owned()
}

/// Cuts every log that is longer than the limit. The old part is kept in a file beside it, and the process continues at
/// the start of the log.
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

    #[test]
    fn the_last_lines_are_found() {
        for (lines, expect) in [(0, 14), (1, 8), (2, 4), (3, 0), (9, 0)] {
            assert_eq!(tail_offset(b"one\ntwo\nthree\n", lines), expect, "{lines}");
        }
        assert_eq!((tail_offset(b"one\ntwo", 1), tail_offset(b"", 1)), (4, 0));
    }

    #[test]
    fn the_message_of_a_failed_container_is_the_end_of_its_log() {
        assert_eq!(message_from_log(b"one\ntwo\n"), "one\ntwo\n");
        assert_eq!(message_from_log(&[b'\n'; 100]).len(), 80);
        assert_eq!(message_from_log(&[b'x'; 5000]).len(), 2048);
    }

    #[tokio::test]
    async fn a_log_is_followed_over_a_cut_to_the_end_of_its_run() {
        let root = tempfile::tempdir().unwrap();
        let state = StateDirectory::new(root.path());
        let container = state.pod("u").container("notebook");
        fs::create_dir_all(container.path()).unwrap();
        let mut record = ProcessRecord::of_this_process();
        record.write(&container).unwrap();
        let mut log = OpenOptions::new().create(true).append(true).open(container.log(0)).unwrap();
        log.write_all(b"a long line\n").unwrap();
        let mut stream = open_log(container.clone(), 0, true, None).await.unwrap();
        assert_eq!(stream.try_next().await.unwrap().unwrap(), "a long line\n");
        cut_logs(&state, 5).unwrap();
        assert_eq!(fs::read(container.cut_log(0)).unwrap(), b"a long line\n");
        let (next, ()) = tokio::join!(stream.try_next(), async { log.write_all(b"new\n").unwrap() });
        assert_eq!(next.unwrap().unwrap(), "new\n");
        log.write_all(b"last\n").unwrap();
        record.restarts = 1;
        record.write(&container).unwrap();
        assert_eq!(stream.try_next().await.unwrap().unwrap(), "last\n");
        assert_eq!(stream.try_next().await.unwrap(), None);
    }
}
