use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use wasmspawner_core::lab::LabKey;

use super::event::EventParser;
use super::narrator::{End, Narrator};
use super::service::Service;

/// Attempts in a row that bring nothing new.
const ATTEMPTS: u32 = 5;
/// Between two attempts; what the service asks browsers to wait.
const PAUSE: Duration = Duration::from_secs(1);

/// Tells what happens to a lab until the operation is over. A broken connection is taken up where it broke.
pub(super) async fn follow(
    service: &Service,
    lab: &LabKey,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let mut following = Following { narrator: Narrator::default(), last_seen: None };
    let mut in_vain = 0;
    loop {
        let before = following.last_seen.clone();
        match following.once(service, lab, out).await {
            Ok(Some(End::Complete)) => return Ok(ExitCode::SUCCESS),
            Ok(Some(End::Failed)) => return Ok(ExitCode::FAILURE),
            Ok(None) => {}
            // Refused, or never reached: another attempt would not help.
            Err(error) if before.is_none() && following.last_seen.is_none() => return Err(error),
            Err(error) if error.is::<super::refusal::Refusal>() => return Err(error),
            Err(error) => tracing::warn!(error = format!("{error:#}"), "the connection broke"),
        }
        in_vain = if following.last_seen == before { in_vain + 1 } else { 0 };
        if in_vain >= ATTEMPTS {
            bail!("the service ends the stream of {lab} again and again before the operation is over");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

struct Following {
    narrator: Narrator,
    last_seen: Option<String>,
}

impl Following {
    /// Reads one answer to its end.
    async fn once(
        &mut self,
        service: &Service,
        lab: &LabKey,
        out: &mut impl Write,
    ) -> anyhow::Result<Option<End>> {
        let mut response = service.events(lab, self.last_seen.as_deref()).await?;
        let mut parser = EventParser::default();
        while let Some(piece) = response.chunk().await? {
            for event in parser.push(&piece) {
                if let Some(line) = self.narrator.line(&event) {
                    writeln!(out, "{line}")?;
                }
                if let Some(end) = End::of(&event) {
                    return Ok(Some(end));
                }
                self.last_seen = Some(event.id);
            }
        }
        Ok(None)
    }
}
