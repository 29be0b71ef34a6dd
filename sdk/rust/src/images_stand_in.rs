//! Stands in for the host in native tests: the images of repositories, and the number of nodes.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::bindings::host::KnownImage;

thread_local! {
    static KNOWN: RefCell<KnownImages> = RefCell::default();
}

/// The service's knowledge of images, for tests.
#[derive(Clone, Debug, Default)]
pub struct KnownImages {
    repositories: BTreeMap<String, Vec<KnownImage>>,
    lab_nodes: u32,
}

impl KnownImages {
    /// Adds a repository. Tags are given in the order of the service, newest first, with their digests; no node has
    /// any of them.
    #[must_use]
    pub fn repository<'a>(mut self, name: &str, tags: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let image = |(tag, digest): (&str, &str)| KnownImage {
            tag: tag.into(),
            digest: Some(digest.into()),
            size_bytes: None,
            nodes_with: 0,
        };
        self.repositories.insert(name.into(), tags.into_iter().map(image).collect());
        self
    }

    /// Sets the number of nodes on which labs can run.
    #[must_use]
    pub fn lab_nodes(mut self, number: u32) -> Self {
        self.lab_nodes = number;
        self
    }
}

/// Runs `hook` while the service knows these images.
pub(crate) fn with<T>(known: &KnownImages, hook: impl FnOnce() -> T) -> T {
    KNOWN.set(known.clone());
    let result = hook();
    KNOWN.take();
    result
}

pub(crate) fn images(repository: &str) -> Vec<KnownImage> {
    KNOWN.with_borrow(|known| known.repositories.get(repository).cloned().unwrap_or_default())
}

pub(crate) fn lab_nodes() -> u32 {
    KNOWN.with_borrow(|known| known.lab_nodes)
}
