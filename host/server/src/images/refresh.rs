use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use wasmspawner_core::config::{Config, ImageRepository, ImagesConfig, RegistriesConfig};
use wasmspawner_core::images::{Refresh, RepositoryImages, Tag, resolved};

use crate::inventory::LiveInventory;
use crate::registry::{RegistryError, RepositoryReader};

/// How many tags of one repository are asked about at the same time.
const AT_ONCE: usize = 8;
/// After so many questions without an answer the others are not asked before the next refresh.
const FAILURES: usize = 5;
/// How soon a change of the configuration is noticed.
pub(super) const LOOK: Duration = Duration::from_secs(2);

/// Asks the registries again and again, until `stop`. The configuration is read each time. A registry that does not
/// answer delays nobody: what was known stays.
pub async fn keep_fresh(config: impl Fn() -> Arc<Config>, inventory: LiveInventory, stop: CancellationToken) {
    while !stop.is_cancelled() {
        let current = config();
        if stop.run_until_cancelled(refresh(&current, &inventory)).await.is_none() {
            return;
        }
        let waiting = wait_for_turn(&current.images, &config);
        if stop.run_until_cancelled(waiting).await.is_none() {
            return;
        }
    }
}

/// Waits until the next refresh, which is at once if the configuration has changed.
async fn wait_for_turn(images: &ImagesConfig, config: &impl Fn() -> Arc<Config>) {
    let every = Duration::try_from(images.refresh_every).unwrap_or(Duration::from_mins(5));
    let next = tokio::time::Instant::now() + every;
    let mut look = tokio::time::interval(LOOK);
    while tokio::time::Instant::now() < next {
        look.tick().await;
        if config().images != *images {
            return;
        }
    }
}

/// Asks about all repositories once. A slow registry delays only its own repositories.
async fn refresh(config: &Config, inventory: &LiveInventory) {
    let repositories = &config.images.repositories;
    inventory.replace_registries(
        inventory.registries().of(repositories.iter().map(|repository| &repository.name)),
    );
    let refreshing = repositories.iter().map(async |repository| {
        let before = inventory.registries().repository(&repository.name).cloned().unwrap_or_default();
        let images = read(repository, before, &config.registries).await;
        let known = Arc::unwrap_or_clone(inventory.registries());
        inventory.replace_registries(known.with(repository.name.clone(), images));
    });
    join_all(refreshing).await;
}

/// What is known about a repository after its registry was asked.
async fn read(
    repository: &ImageRepository,
    before: RepositoryImages,
    registries: &RegistriesConfig,
) -> RepositoryImages {
    let images = match listed(repository, registries).await {
        Ok((reader, tags)) => ask(&reader, before.clone(), tags).await,
        Err(error) => before.clone().after_failure(error.to_string(), Timestamp::now()),
    };
    report(repository, &before, &images);
    images
}

async fn listed(
    repository: &ImageRepository,
    registries: &RegistriesConfig,
) -> Result<(RepositoryReader, Vec<Tag>), RegistryError> {
    let mut reader = RepositoryReader::new(&repository.name, registries)?;
    let tags = reader.tags().await?.into_iter().filter(|tag| repository.has(tag)).collect();
    Ok((reader, tags))
}

/// Asks about those of the tags that may have changed.
async fn ask(reader: &RepositoryReader, before: RepositoryImages, listed: Vec<Tag>) -> RepositoryImages {
    let to_ask = before.to_ask(&listed);
    let mut questions = futures::stream::iter(to_ask.into_iter().map(|tag| {
        let mut reader = reader.clone();
        async move { (reader.digest(&tag).await, tag) }
    }))
    .buffer_unordered(AT_ONCE);
    let (mut answers, mut failures, mut problem) = (BTreeMap::new(), 0, None);
    while let Some((answer, tag)) = questions.next().await {
        let answer = match answer {
            Ok(digest) => Refresh::Digest(digest),
            // The tag was deleted after the list was read.
            Err(RegistryError::NotFound) => Refresh::Gone,
            Err(error) => {
                failures += 1;
                problem = Some(format!("tag {tag}: {error}"));
                Refresh::Failed
            }
        };
        answers.insert(tag, answer);
        if failures == FAILURES {
            break;
        }
    }
    drop(questions);
    resolved(&before, listed, &answers, problem, Timestamp::now())
}

/// Logs when a problem begins and when it ends, and what is new.
fn report(repository: &ImageRepository, before: &RepositoryImages, images: &RepositoryImages) {
    let (name, tags) = (&repository.name, images.tags().len());
    match (&before.problem, &images.problem) {
        (None, Some(problem)) => {
            let kept = if before.refreshed_at.is_some() { "; what was known stays" } else { "" };
            tracing::warn!(repository = %name, problem = problem.message, "the images cannot be read{kept}");
        }
        (Some(_), None) => tracing::info!(repository = %name, tags, "the images can be read again"),
        (None, None) if before.refreshed_at.is_none() => {
            tracing::info!(repository = %name, tags, "the images are known");
        }
        _ => tracing::debug!(repository = %name, tags, "the images were read again"),
    }
}
