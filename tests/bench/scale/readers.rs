//! Many readers of one lab's events.

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use serde_json::json;
use tokio::task::JoinSet;
use wasmspawner_tests::api::{Client, PREFIX};
use wasmspawner_tests::events::{Event, Events};
use wasmspawner_tests::guests;

use crate::site;
use crate::usage::Usage;

/// Number of readers with which the many readers are compared.
const FEW: usize = 20;

/// Number of connections that are opened in parallel.
const AT_ONCE: usize = 64;

/// The times and costs of readers of one operation.
struct Reading {
    readers: usize,
    events: usize,
    /// Milliseconds from the end of the operation until half of the readers had received it.
    half: f64,
    /// Milliseconds until the last reader had received it.
    last: f64,
    /// True if the operation ended before all readers were connected, on a busy machine: then the times are
    /// meaningless.
    late: bool,
    before: Usage,
    connected: Usage,
    after: Usage,
}

/// Measures few and then many readers, and prints the times.
pub(crate) async fn measure(many: usize) -> anyhow::Result<()> {
    let stagehand = json!({ "name": "stagehand", "path": guests::component("guest-stagehand") });
    let service = site::one_machine(stagehand).await?;
    let pid = service.pid().context("the service has no process")?;
    let admin = service.admin()?;
    println!("readers of one starting lab; from `complete` until it was read, in milliseconds");
    println!("readers  events    half    last   memory per reader   CPU per reader");
    // The first run warms up. The labs' names set how long the simulated pods take, which lets all readers connect.
    read_together(&admin, pid, "ready.1s", FEW).await?;
    let few = read_together(&admin, pid, "ready.2s", FEW).await?;
    few.print();
    let many = read_together(&admin, pid, "ready.15s", many).await?;
    many.print();
    println!(
        "ratio of the last {:.1} for {:.0}x the readers",
        many.last / few.last,
        fraction(many.readers, few.readers)
    );
    println!(
        "memory of service and cluster: {} MiB before, {} MiB with {} readers, {} MiB after\n",
        many.before.resident_kib / 1024,
        many.connected.resident_kib / 1024,
        many.readers,
        many.after.resident_kib / 1024
    );
    Ok(())
}

async fn read_together(admin: &Client, pid: u32, lab: &str, readers: usize) -> anyhow::Result<Reading> {
    let before = Usage::from_process(pid)?;
    let answer = admin.spawn(lab).await?;
    anyhow::ensure!(answer.status == 303, "the spawn was refused: {answer:?}");
    let connecting = stream::iter(0..readers).map(|_| admin.events(lab)).buffer_unordered(AT_ONCE);
    let streams: Vec<Events> = connecting.try_collect().await?;
    let connected_at = Timestamp::now();
    let connected = Usage::from_process(pid)?;

    let mut reading: JoinSet<_> = streams.into_iter().map(read).collect();
    let mut seen: Option<Vec<Event>> = None;
    let mut read_at = Vec::with_capacity(readers);
    while let Some(read) = reading.join_next().await {
        let (events, at) = read??;
        let first = seen.get_or_insert_with(|| events.clone());
        anyhow::ensure!(*first == events, "two readers received different events: {first:#?} {events:#?}");
        read_at.push(at);
    }
    let after = Usage::from_process(pid)?;
    let seen = seen.context("no readers")?;
    in_order(&seen)?;
    let history = admin.get(&format!("{PREFIX}/labs/{lab}/history")).await?.json()?;
    let ended: Timestamp = history[0]["ended_at"].as_str().context("no end in the history")?.parse()?;
    let late = connected_at > ended;
    read_at.sort_unstable();
    let since = |at: Timestamp| at.duration_since(ended).as_secs_f64() * 1e3;
    let (half, last) = (since(read_at[readers / 2]), since(read_at[readers - 1]));
    Ok(Reading { readers, events: seen.len(), half, last, late, before, connected, after })
}

/// Reads all events. Returns them with the time at which `complete` was received.
async fn read(mut stream: Events) -> anyhow::Result<(Vec<Event>, Timestamp)> {
    let (mut events, mut complete) = (Vec::new(), None);
    while let Some(event) = stream.next().await? {
        if event.kind == "complete" {
            complete = Some(Timestamp::now());
        }
        events.push(event);
    }
    Ok((events, complete.context("a stream without `complete`")?))
}

/// Checks that the ids count from 1 without gaps and that `complete` is last.
fn in_order(events: &[Event]) -> anyhow::Result<()> {
    for (event, number) in events.iter().zip(1_usize..) {
        let (_, id) = event.id.rsplit_once('-').context("an id without a number")?;
        anyhow::ensure!(id.parse::<usize>()? == number, "the ids are not consecutive: {events:#?}");
    }
    anyhow::ensure!(
        events.last().is_some_and(|last| last.kind == "complete"),
        "`complete` is not the last event: {events:#?}"
    );
    Ok(())
}

impl Reading {
    fn print(&self) {
        let memory = self.connected.resident_kib.saturating_sub(self.before.resident_kib);
        let cpu = self.after.cpu_millis - self.before.cpu_millis;
        #[expect(clippy::cast_precision_loss, reason = "counts are small")]
        let each = |sum: u64| sum as f64 / self.readers as f64;
        println!(
            "{:7}  {:6}  {:6.1}  {:6.1}   {:13.1} KiB   {:11.2} ms{}",
            self.readers,
            self.events,
            self.half,
            self.last,
            each(memory),
            each(cpu),
            if self.late { "   too late: not all were connected when it ended" } else { "" }
        );
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn fraction(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}
