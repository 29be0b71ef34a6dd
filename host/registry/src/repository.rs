//! The tags of one repository, and the images that they point to.

use std::collections::BTreeSet;

use oci_client::Reference;
use serde::Deserialize;
use wasmspawner_core::config::RegistriesConfig;
use wasmspawner_core::images::{Repository, Tag};
use wasmspawner_core::values::digest::Digest;

use super::RegistryError;
use super::connection::{Access, Connection};

/// The number of tags in one page.
const PAGE: usize = 1000;
/// The maximum number of tags in one repository.
const MAX_TAGS: usize = 20_000;

/// The maximum number of pages. Some may be empty.
const PAGES: usize = 1000;

/// A reader of one repository.
#[derive(Debug)]
pub struct RepositoryReader(Connection);

/// A page of the list of tags. Registries may send `null` for a repository without tags.
#[derive(Deserialize)]
struct Page {
    tags: Option<Vec<String>>,
}

impl RepositoryReader {
    /// Creates a reader of this repository. Sends no request yet.
    ///
    /// # Errors
    ///
    /// [`RegistryError::File`] if the configuration names a file that cannot be used.
    pub fn new(repository: &Repository, config: &RegistriesConfig) -> Result<Self, RegistryError> {
        let (registry, path) = (repository.registry().to_owned(), repository.path().to_owned());
        let reference = Reference::with_tag(registry, path, "latest".to_owned());
        Connection::new(&reference, config, Access::Read).map(Self)
    }

    /// Reads all tags. Skips names that are not valid tags, and the tags of signatures.
    ///
    /// # Errors
    ///
    /// [`RegistryError`], also if there are more than 20,000 tags, or if the pages do not end.
    pub async fn tags(&self) -> Result<Vec<Tag>, RegistryError> {
        let (mut tags, mut asked) = (BTreeSet::new(), BTreeSet::new());
        let mut query = format!("n={PAGE}");
        loop {
            let (page, next) = self.0.tags(&query).await?;
            let page: Page = serde_json::from_slice(&page).map_err(|_| {
                RegistryError::unusable("the registry has sent something that is no list of tags")
            })?;
            let images = page.tags.unwrap_or_default().into_iter().filter(|tag| !is_signature(tag));
            tags.extend(images.filter_map(|tag| Tag::parse(tag).ok()));
            asked.insert(query);
            let Some(next) = next else { break };
            if asked.contains(&next) || asked.len() >= PAGES {
                return Err(RegistryError::unusable("the registry's list of tags does not end"));
            }
            if tags.len() > MAX_TAGS {
                return Err(RegistryError::unusable(format!(
                    "the repository has more than {MAX_TAGS} tags; give images a repository of their own"
                )));
            }
            query = next;
        }
        Ok(tags.into_iter().collect())
    }

    /// Returns the digest of the image that a tag points to. The registry's answer is not verified here: whoever pulls
    /// the image by its digest verifies it.
    ///
    /// # Errors
    ///
    /// [`RegistryError`]
    pub async fn digest(&self, tag: &Tag) -> Result<Digest, RegistryError> {
        match self.0.announced_digest(tag.as_str()).await? {
            Some(digest) => {
                digest.parse().map_err(|_| RegistryError::unusable("the registry has sent a wrong digest"))
            }
            None => Ok(Digest::sha256(&self.0.manifest(tag.as_str()).await?)),
        }
    }
}

/// Returns true for the tags under which signatures and attestations of an image are stored: `sha256-` and the digits.
fn is_signature(tag: &str) -> bool {
    let digits = tag.strip_prefix("sha256-").and_then(|rest| rest.get(..64));
    digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
