use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use wasmspawner_core::names::spawn_key::SpawnKey;

use super::event::EventParser;
use super::narrator::{End, Narrator};
use super::service::Service;

/// The number of connections in a row without a new event after which the command gives up.
const ATTEMPTS: u32 = 5;
/// The pause between two connections. The service asks browsers for the same pause (`retry`).
const PAUSE: Duration = Duration::from_secs(1);

/// Prints the events of a lab or child until the operation is over. After a broken connection, continues after the last
/// event that it has seen.
pub(super) async fn follow(
    service: &Service,
    key: &SpawnKey,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let mut following = Following { narrator: Narrator::default(), last_seen: None };
    let mut in_vain = 0;
    loop {
        let before = following.last_seen.clone();
        match following.once(service, key, out).await {
            Ok(Some(End::Complete)) => return Ok(ExitCode::SUCCESS),
            Ok(Some(End::Failed)) => return Ok(ExitCode::FAILURE),
            Ok(None) => {}
            // The service refused the request or was never reached, so another attempt would not help.
            Err(error) if before.is_none() && following.last_seen.is_none() => return Err(error),
            Err(error) if error.is::<super::refusal::Refusal>() => return Err(error),
            Err(error) => tracing::warn!(error = format!("{error:#}"), "the connection broke"),
        }
        in_vain = if following.last_seen == before { in_vain + 1 } else { 0 };
        if in_vain >= ATTEMPTS {
            bail!("the service ends the stream of {key} again and again before the operation is over");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

struct Following {
    narrator: Narrator,
    last_seen: Option<String>,
}

impl Following {
    /// Reads one event stream. Returns `None` if the stream ended before the operation did.
    async fn once(
        &mut self,
        service: &Service,
        key: &SpawnKey,
        out: &mut impl Write,
    ) -> anyhow::Result<Option<End>> {
        let mut response = service.events(key, self.last_seen.as_deref()).await?;
        let mut parser = EventParser::default();
        while let Some(piece) = response.chunk().await? {
            for event in parser.push(&piece) {
                if let Some(line) = self.narrator.line(&event) {
                    writeln!(out, "{line}")?;
                }
                if let Some(end) = End::from_event(&event) {
                    return Ok(Some(end));
                }
                self.last_seen = Some(event.id);
            }
        }
        Ok(None)
    }
}
