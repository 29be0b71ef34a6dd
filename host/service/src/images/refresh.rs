use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use jiff::Timestamp;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use wasmspawner_core::config::{Config, ImageRepository, RegistriesConfig};
use wasmspawner_core::images::{Inventory, Refresh, RepositoryImages, Tag, resolved};

use super::stored::StoredInventory;
use wasmspawner_registry::inventory::LiveInventory;
use wasmspawner_registry::{RegistryError, RepositoryReader};
use wasmspawner_spawner::config_part::ConfigPart;

/// The number of tags of one repository that are queried at the same time.
const AT_ONCE: usize = 8;
/// The number of consecutive queries without an answer after which the remaining ones wait for the next refresh.
const FAILURES: usize = 5;

/// The longest time that one refresh of a repository may take.
const MAX_REFRESH: Duration = Duration::from_mins(10);

/// Queries the registries again and again, until `stop`. A registry that does not answer delays neither users nor other
/// registries, and its known images stay. A changed configuration is used at once.
pub async fn keep_fresh(
    config: watch::Receiver<Arc<Config>>,
    inventory: LiveInventory,
    stop: CancellationToken,
) {
    let stored = StoredInventory::new(config.borrow().state_dir.as_deref());
    inventory.replace_registries(stored.read().await);
    let mut configured = ConfigPart::new(config, Questions::from_config);
    while !stop.is_cancelled() {
        let questions = configured.current();
        let known = inventory.registries();
        let kept = |repository: &ImageRepository| known.kept(&repository.name, |tag| repository.has(tag));
        inventory.replace_registries(
            questions.repositories.iter().fold(Inventory::default(), |kept_all, repository| {
                kept_all.with(repository.name.clone(), kept(repository))
            }),
        );
        let following = async {
            let repositories = questions.repositories.iter();
            let each = repositories.map(|repository| follow(repository, &questions, &inventory, &stored));
            join_all(each).await;
        };
        configured.while_it_is(&questions, &stop, following).await;
    }
}

/// The part of the configuration that determines the queries to registries.
#[derive(PartialEq)]
struct Questions {
    repositories: Vec<ImageRepository>,
    every: Duration,
    registries: RegistriesConfig,
}

impl Questions {
    fn from_config(config: &Config) -> Self {
        Self {
            repositories: config.images.repositories.clone(),
            every: Duration::try_from(config.images.refresh_every).unwrap_or(Duration::from_mins(5)),
            registries: config.registries.clone(),
        }
    }
}

/// Queries one repository again and again, and never ends by itself.
async fn follow(
    repository: &ImageRepository,
    questions: &Questions,
    inventory: &LiveInventory,
    stored: &StoredInventory,
) {
    loop {
        let before = inventory.registries().repository(&repository.name).cloned().unwrap_or_default();
        let reading = read(repository, before.clone(), &questions.registries);
        let images = tokio::time::timeout(MAX_REFRESH, reading).await.unwrap_or_else(|_| {
            before.after_failure(
                "the registry takes too long to answer all questions".to_owned(),
                Timestamp::now(),
            )
        });
        let known = Arc::unwrap_or_clone(inventory.registries());
        inventory.replace_registries(known.with(repository.name.clone(), images));
        stored.write(inventory).await;
        tokio::time::sleep(questions.every).await;
    }
}

/// Queries the registry of a repository, and returns the images that are known then.
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
    let reader = RepositoryReader::new(&repository.name, registries)?;
    let tags = reader.tags().await?.into_iter().filter(|tag| repository.has(tag)).collect();
    Ok((reader, tags))
}

/// Queries those tags that may have changed.
async fn ask(reader: &RepositoryReader, before: RepositoryImages, listed: Vec<Tag>) -> RepositoryImages {
    let to_ask = before.to_ask(&listed);
    let mut questions =
        futures::stream::iter(to_ask.into_iter().map(async |tag| (reader.digest(&tag).await, tag)))
            .buffer_unordered(AT_ONCE);
    let (mut answers, mut failures, mut problem) = (BTreeMap::new(), 0, None);
    while let Some((answer, tag)) = questions.next().await {
        let answer = match answer {
            Ok(digest) => {
                failures = 0;
                Refresh::Digest(digest)
            }
            // The tag was deleted after the list was read.
            Err(RegistryError::NotFound) => Refresh::Gone,
            Err(error) => {
                failures += usize::from(error.is_transient());
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

/// Logs the beginning and the end of a problem, and whether the images are known.
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
