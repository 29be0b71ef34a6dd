use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::tag_order::NewestFirst;
use super::{ImageReference, Repository, Tag};
use crate::values::digest::Digest;

/// The images in registries that are known to the service. The inventory can be stored as JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inventory {
    repositories: BTreeMap<Repository, RepositoryImages>,
}

/// The images of one repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredImages", into = "StoredImages")]
pub struct RepositoryImages {
    tags: Vec<KnownTag>,
    /// The index in `tags` of each tag.
    places: HashMap<Tag, usize>,
    /// The time at which the registry last answered all requests; absent if it never has.
    pub refreshed_at: Option<Timestamp>,
    /// The reason why the images are not up to date.
    pub problem: Option<RefreshProblem>,
}

/// The images of one repository as they are stored.
#[derive(Serialize, Deserialize)]
struct StoredImages {
    tags: Vec<KnownTag>,
    refreshed_at: Option<Timestamp>,
    problem: Option<RefreshProblem>,
}

impl From<StoredImages> for RepositoryImages {
    fn from(StoredImages { tags, refreshed_at, problem }: StoredImages) -> Self {
        Self::new(tags, refreshed_at, problem)
    }
}

impl From<RepositoryImages> for StoredImages {
    fn from(RepositoryImages { tags, refreshed_at, problem, .. }: RepositoryImages) -> Self {
        Self { tags, refreshed_at, problem }
    }
}

/// A tag, and the image that it referred to when the registry was last asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownTag {
    /// The tag.
    pub tag: Tag,
    /// The digest of the image's manifest, or of the index of its platforms.
    pub digest: Option<Digest>,
    /// The time at which the registry was last asked about this tag.
    pub checked_at: Timestamp,
    /// True if the tag has referred to another image before.
    pub has_moved: bool,
}

/// The reason why the registry has not answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefreshProblem {
    /// The error in words.
    pub message: String,
    /// The time of the first failure since the last answer.
    pub since: Timestamp,
}

impl Inventory {
    /// Returns the entry of a repository, reduced to the tags for which `is_meant` returns true.
    #[must_use]
    pub fn kept(&self, repository: &Repository, is_meant: impl Fn(&Tag) -> bool) -> RepositoryImages {
        let RepositoryImages { tags, refreshed_at, problem, .. } =
            self.repositories.get(repository).cloned().unwrap_or_default();
        let tags = tags.into_iter().filter(|known| is_meant(&known.tag)).collect();
        RepositoryImages::new(tags, refreshed_at, problem)
    }

    /// Returns true if nothing is known about one of the repositories, because its registry has not answered yet.
    pub fn is_incomplete(&self) -> bool {
        self.repositories.values().any(|images| images.refreshed_at.is_none() && images.tags.is_empty())
    }

    /// Returns true if no request about one of the repositories was made yet, not even a failed one.
    pub fn is_unread(&self) -> bool {
        let is_unread = |images: &RepositoryImages| images.problem.is_none() && images.refreshed_at.is_none();
        self.repositories.values().any(|images| images.tags.is_empty() && is_unread(images))
    }

    /// Replaces the entry of one repository.
    #[must_use]
    pub fn with(mut self, repository: Repository, images: RepositoryImages) -> Self {
        self.repositories.insert(repository, images);
        self
    }

    /// Returns the repositories with their images.
    pub fn repositories(&self) -> impl Iterator<Item = (&Repository, &RepositoryImages)> {
        self.repositories.iter()
    }

    /// Returns the entry of a repository.
    pub fn repository(&self, name: &Repository) -> Option<&RepositoryImages> {
        self.repositories.get(name)
    }

    /// Returns the digest in the reference, or else the digest that the image had when the registry was last asked.
    pub fn digest(&self, image: &ImageReference) -> Option<Digest> {
        image.digest.or_else(|| self.repository(&image.repository)?.find(image.tag())?.digest)
    }
}

impl RepositoryImages {
    /// Creates the entry of a repository with these tags, which may be in any order.
    pub(super) fn new(
        tags: Vec<KnownTag>,
        refreshed_at: Option<Timestamp>,
        problem: Option<RefreshProblem>,
    ) -> Self {
        let mut order: Vec<_> =
            tags.iter().map(|known| NewestFirst::from_tag(&known.tag)).enumerate().collect();
        order.sort_by(|(_, a), (_, b)| a.cmp(b));
        let order: Vec<usize> = order.into_iter().map(|(at, _)| at).collect();
        let mut unsorted: Vec<_> = tags.into_iter().map(Some).collect();
        let tags: Vec<_> = order.into_iter().filter_map(|at| unsorted[at].take()).collect();
        let places = tags.iter().enumerate().map(|(at, known)| (known.tag.clone(), at)).collect();
        Self { tags, places, refreshed_at, problem }
    }

    /// Returns the tags, newest first if their names show an order.
    pub fn tags(&self) -> &[KnownTag] {
        &self.tags
    }

    /// Returns the entry of a tag.
    pub fn find(&self, tag: &str) -> Option<&KnownTag> {
        self.places.get(tag).map(|at| &self.tags[*at])
    }

    /// Returns the same images with a note that the registry did not answer.
    #[must_use]
    pub fn after_failure(mut self, message: String, now: Timestamp) -> Self {
        let since = self.problem.map_or(now, |problem| problem.since);
        self.problem = Some(RefreshProblem { message, since });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inventory_survives_being_stored() {
        let (now, digest) = (Timestamp::UNIX_EPOCH, Some(Digest::sha256(b"image")));
        let known =
            |tag: &str| KnownTag { tag: Tag::parse(tag).unwrap(), digest, checked_at: now, has_moved: true };
        let images = RepositoryImages::new(vec![known("1.9"), known("1.10")], Some(now), None);
        let inventory = Inventory::default()
            .with("quay.io/lab".parse().unwrap(), images)
            .with("lab".parse().unwrap(), RepositoryImages::default().after_failure("away".into(), now));
        let stored = serde_json::to_string(&inventory).unwrap();
        let read: Inventory = serde_json::from_str(&stored).unwrap();
        assert_eq!(read, inventory);
        assert_eq!(read.digest(&"quay.io/lab:1.10".parse().unwrap()), digest);
    }
}
