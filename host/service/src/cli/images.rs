//! `wasmspawner images`

use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::Value;
use wasmspawner_core::names::Username;

use super::labs::{ConnectionArgs, Service, print_json};
use super::plain::plain;

const EXAMPLES: &str = "\
Examples:
  wasmspawner images list --state-dir DIR       what registries have, and since when the service knows it
  wasmspawner images menu ada                   what ada may choose, and why an image is hidden
  wasmspawner images prepulls                   which nodes have what they are to have, and what fails
  wasmspawner images prepulls --wait 900        the same, once all nodes have all images; 15 minutes at most";

/// The interval at which `--wait` checks.
const LOOK: Duration = Duration::from_secs(2);

/// Shows the images that a running service knows.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ImagesArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(subcommand)]
    command: ImagesCommand,
}

#[derive(Debug, Subcommand)]
enum ImagesCommand {
    /// List the images of the repositories in `images.repositories`
    List(ListArgs),
    /// List the images from which a user chooses
    Menu(MenuArgs),
    /// List the images that nodes pull before somebody asks for them
    Prepulls(PrepullsArgs),
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Answer in JSON, as the service does
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct PrepullsArgs {
    /// Wait until all nodes have all images, at most this many seconds; then fail if one is still missing
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "600")]
    wait: Option<u64>,
    /// Answer in JSON, as the service does
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct MenuArgs {
    /// The user who chooses
    user: String,
    /// Answer in JSON, as the service does
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Deserialize)]
struct Known {
    repositories: Vec<Repository>,
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Repository {
    name: String,
    refreshed_at: Option<String>,
    problem: Option<Problem>,
    images: Vec<Image>,
}

#[derive(Debug, Deserialize)]
struct Problem {
    message: String,
    since: String,
}

#[derive(Debug, Deserialize)]
struct Image {
    tag: String,
    digest: Option<String>,
    nodes_with: usize,
}

#[derive(Debug, Deserialize)]
struct Node {
    name: String,
    excluded: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Prepulls {
    enabled: bool,
    problem: Option<String>,
    images: Vec<Wanted>,
    running: Vec<Running>,
    failed: Vec<Failed>,
    failed_count: usize,
    excluded_nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Wanted {
    reference: String,
    digest: Option<String>,
    node_selector: BTreeMap<String, String>,
    nodes: usize,
    nodes_with: usize,
}

#[derive(Debug, Deserialize)]
struct Running {
    node: String,
    image: String,
    since: String,
}

#[derive(Debug, Deserialize)]
struct Failed {
    node: String,
    image: String,
    reason: String,
    attempts: u32,
    again_at: String,
}

#[derive(Debug, Deserialize)]
struct Menu {
    source: Option<String>,
    images: Vec<Offered>,
}

#[derive(Debug, Deserialize)]
struct Offered {
    name: String,
    label: String,
    default: bool,
    shown: String,
    hidden_because: Option<String>,
    digest: Option<String>,
}

impl ImagesArgs {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<()> {
        let service = self.connection.open()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (answer, as_json) = match &self.command {
            ImagesCommand::List(args) => (runtime.block_on(service.read(&["images"]))?, args.json),
            ImagesCommand::Menu(args) => {
                let user = Username::parse(&args.user)?;
                (runtime.block_on(service.read(&["images", user.as_str()]))?, args.json)
            }
            ImagesCommand::Prepulls(args) => (runtime.block_on(warm(&service, args.wait))?, args.json),
        };
        match self.command {
            _ if as_json => print_json(out, &answer),
            ImagesCommand::List(_) => list(out, serde_json::from_value(answer)?),
            ImagesCommand::Menu(_) => menu(out, serde_json::from_value(answer)?),
            ImagesCommand::Prepulls(_) => prepulls(out, serde_json::from_value(answer)?),
        }
    }
}

fn list(out: &mut impl Write, known: Known) -> anyhow::Result<()> {
    if known.repositories.is_empty() {
        writeln!(out, "the service reads no repository; name some in `images.repositories`")?;
    }
    let eligible = known.nodes.iter().filter(|node| node.excluded.is_none()).count();
    for Repository { name, refreshed_at, problem, images } in known.repositories {
        let read = refreshed_at.map_or("not read yet".to_owned(), |time| format!("read at {time}"));
        writeln!(out, "{}: {} tags, {}", plain(&name), images.len(), plain(&read))?;
        if let Some(Problem { message, since }) = problem {
            writeln!(out, "  since {}: {}", plain(&since), plain(&message))?;
        }
        for Image { tag, digest, nodes_with } in images {
            let nodes =
                if eligible > 0 { format!("  on {nodes_with} of {eligible} nodes") } else { String::new() };
            writeln!(out, "  {:<32}  {}{nodes}", plain(&tag), plain(digest.as_deref().unwrap_or("-")))?;
        }
    }
    excluded(out, known.nodes)
}

/// Prints the nodes on which no lab is placed.
fn excluded(out: &mut impl Write, nodes: Vec<Node>) -> anyhow::Result<()> {
    for Node { name, excluded } in nodes {
        if let Some(reason) = excluded {
            writeln!(out, "node {}: no lab is placed there, because {}", plain(&name), plain(&reason))?;
        }
    }
    Ok(())
}

/// Reads the images that nodes pull in advance. With `wait`, waits until all nodes have them, and fails if that takes
/// longer than so many seconds.
async fn warm(service: &Service, wait: Option<u64>) -> anyhow::Result<Value> {
    let begun = Instant::now();
    loop {
        let answer = service.read(&["prepulls"]).await?;
        let Some(seconds) = wait else { return Ok(answer) };
        let Prepulls { enabled, problem, images, .. } = Prepulls::deserialize(&answer)?;
        let missing: usize = images.iter().map(|image| image.nodes - image.nodes_with).sum();
        if !enabled || (missing == 0 && problem.is_none()) {
            return Ok(answer);
        }
        if begun.elapsed() > Duration::from_secs(seconds) {
            let problem = problem.map(|problem| format!("; {problem}")).unwrap_or_default();
            anyhow::bail!(
                "after {seconds} seconds, {missing} images are still missing on nodes{problem}; `wasmspawner images prepulls` \
                 shows which"
            );
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn prepulls(out: &mut impl Write, prepulls: Prepulls) -> anyhow::Result<()> {
    if !prepulls.enabled {
        return Ok(writeln!(
            out,
            "nodes pull nothing in advance; see `images.prepull` in the configuration"
        )?);
    }
    if let Some(problem) = prepulls.problem {
        writeln!(out, "problem: {}", plain(&problem))?;
    }
    if prepulls.images.is_empty() {
        writeln!(out, "no image is wanted on nodes, or it is not known yet")?;
    }
    for Wanted { reference, digest, node_selector, nodes, nodes_with } in prepulls.images {
        let pairs: Vec<_> = node_selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let which = if pairs.is_empty() { String::new() } else { format!(" with {}", pairs.join(",")) };
        writeln!(
            out,
            "{}  {}  on {nodes_with} of {nodes} nodes{}",
            plain(&reference),
            plain(shortened(digest.as_deref())),
            plain(&which)
        )?;
    }
    for Running { node, image, since } in prepulls.running {
        writeln!(out, "node {}: pulls {} since {}", plain(&node), plain(&image), plain(&since))?;
    }
    let listed = prepulls.failed.len();
    for Failed { node, image, reason, attempts, again_at } in prepulls.failed {
        let times = if attempts == 1 { "once".to_owned() } else { format!("{attempts} times") };
        writeln!(
            out,
            "node {}: could not pull {} ({times}), again after {}: {}",
            plain(&node),
            plain(&image),
            plain(&again_at),
            plain(&reason)
        )?;
    }
    if prepulls.failed_count > listed {
        writeln!(out, "and {} more that could not be pulled", prepulls.failed_count - listed)?;
    }
    excluded(out, prepulls.excluded_nodes)
}

fn menu(out: &mut impl Write, menu: Menu) -> anyhow::Result<()> {
    let Some(source) = menu.source else {
        return Ok(writeln!(
            out,
            "this site has no menu: every lab has the same image, or a policy's form offers some"
        )?);
    };
    writeln!(out, "the menu of {}", plain(&source))?;
    for Offered { name, label, default, shown, hidden_because, digest } in menu.images {
        let place = match hidden_because {
            Some(reason) => format!("hidden: {reason}"),
            None if default => format!("{shown}, default"),
            None => shown,
        };
        writeln!(
            out,
            "  {:<32}  {:<19}  {}  ({})",
            plain(&name),
            plain(shortened(digest.as_deref())),
            plain(&label),
            plain(&place)
        )?;
    }
    Ok(())
}

/// Returns the beginning of a digest, by which people tell digests apart.
fn shortened(digest: Option<&str>) -> &str {
    const LENGTH: usize = "sha256:".len() + 12;
    digest.map_or("not pinned", |digest| &digest[..digest.len().min(LENGTH)])
}
