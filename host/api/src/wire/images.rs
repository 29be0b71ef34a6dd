//! The answers about images.

use serde::Serialize;
use utoipa::ToSchema;
use wasmspawner_core::images::{
    ImageReference, Inventory, KnownTag, LabNode, NodeImages, OfferedImage, Place, RefreshProblem,
    Repository, RepositoryImages, offer,
};

use wasmspawner_spawner::UserMenu;

/// The images that registries and nodes have.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KnownImages {
    repositories: Vec<RepositoryReport>,
    /// The nodes; empty if the service does not watch them.
    nodes: Vec<NodeReport>,
}

/// A repository, and when its registry was asked.
#[derive(Debug, Serialize, ToSchema)]
struct RepositoryReport {
    /// The repository with its registry.
    name: String,
    /// When the registry last answered all questions; `null` if it never has.
    #[schema(format = DateTime)]
    refreshed_at: Option<String>,
    /// Why the images are not up to date; `null` if they are.
    problem: Option<RegistryProblem>,
    /// Newest first, as far as the tags tell.
    images: Vec<KnownImage>,
}

/// Why a registry has not answered.
#[derive(Debug, Serialize, ToSchema)]
struct RegistryProblem {
    message: String,
    /// Since when, without a complete answer in between.
    #[schema(format = DateTime)]
    since: String,
}

/// A tag, and the image that it means.
#[derive(Debug, Serialize, ToSchema)]
struct KnownImage {
    tag: String,
    /// `sha256:...`; `null` if the registry has not said it yet.
    digest: Option<String>,
    /// How many nodes have the image, of those on which labs can be placed.
    nodes_with: usize,
}

/// A node.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NodeReport {
    name: String,
    /// Why no lab is placed there; `null` if labs are.
    excluded: Option<String>,
}

/// The images from which a user may choose.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct ImageMenu {
    /// Who made the menu: a policy or the configuration. `null` where the site has no menu, so that the form of a policy
    /// offers the images, or every lab has the same.
    source: Option<String>,
    /// In the order in which they are shown.
    images: Vec<OfferedEntry>,
    /// Other names that can be asked for.
    classes: Vec<ClassReport>,
}

/// An image of the menu.
#[derive(Debug, Serialize, ToSchema)]
struct OfferedEntry {
    /// The value of the option `image`.
    name: String,
    reference: String,
    /// `sha256:...`; `null` if it is not known.
    digest: Option<String>,
    label: String,
    description: Option<String>,
    group: Option<String>,
    recommended: bool,
    /// True for the image of users who choose none.
    default: bool,
    shown: ShownAt,
    /// Why the form does not show it.
    hidden_because: Option<String>,
    /// How many nodes have the image, of those on which labs can be placed.
    nodes_with: usize,
}

/// Where the form shows an image. `first`: it is visible at once. `rest`: it can be searched. `hidden`: it is not shown,
/// and can be asked for by name.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ShownAt {
    First,
    Rest,
    Hidden,
}

/// Another name of an image, such as `latest-weekly`.
#[derive(Debug, Serialize, ToSchema)]
struct ClassReport {
    name: String,
    /// The name of the image.
    image: String,
}

impl KnownImages {
    pub(crate) fn new(registries: &Inventory, nodes: &NodeImages) -> Self {
        let repositories = registries.repositories().map(|(name, images)| repository(name, images, nodes));
        Self { repositories: repositories.collect(), nodes: nodes.nodes().map(NodeReport::from).collect() }
    }
}

impl From<(&str, &LabNode)> for NodeReport {
    fn from((name, node): (&str, &LabNode)) -> Self {
        Self { name: name.to_owned(), excluded: node.excluded.clone() }
    }
}

fn repository(name: &Repository, images: &RepositoryImages, nodes: &NodeImages) -> RepositoryReport {
    let problem = |problem: &RefreshProblem| RegistryProblem {
        message: problem.message.clone(),
        since: problem.since.to_string(),
    };
    let image = |known: &KnownTag| {
        let (repository, tag) = (name.clone(), Some(known.tag.clone()));
        KnownImage {
            tag: known.tag.to_string(),
            digest: known.digest.map(|digest| digest.to_string()),
            nodes_with: nodes.with(&ImageReference { repository, tag, digest: known.digest }),
        }
    };
    RepositoryReport {
        name: name.to_string(),
        refreshed_at: images.refreshed_at.map(|time| time.to_string()),
        problem: images.problem.as_ref().map(problem),
        images: images.tags().iter().map(image).collect(),
    }
}

impl ImageMenu {
    pub(crate) fn new(
        UserMenu { source, menu }: &UserMenu,
        registries: &Inventory,
        nodes: &NodeImages,
    ) -> Self {
        let classes = menu.classes.iter();
        Self {
            source: Some(source.to_string()),
            images: offer(menu, registries, nodes).into_iter().map(OfferedEntry::from).collect(),
            classes: classes
                .map(|class| ClassReport { name: class.name.clone(), image: class.entry.clone() })
                .collect(),
        }
    }
}

impl From<OfferedImage<'_>> for OfferedEntry {
    fn from(offered: OfferedImage<'_>) -> Self {
        let entry = offered.entry;
        let (shown, hidden_because) = match offered.place {
            Place::First => (ShownAt::First, None),
            Place::Rest | Place::Automatic => (ShownAt::Rest, None),
            Place::Hidden(reason) => (ShownAt::Hidden, Some(reason)),
        };
        Self {
            name: entry.name.clone(),
            reference: entry.reference.clone(),
            digest: offered.image.and_then(|image| image.digest).map(|digest| digest.to_string()),
            label: entry.label.clone(),
            description: entry.description.clone(),
            group: entry.group.clone(),
            recommended: entry.recommended,
            default: offered.is_default,
            shown,
            hidden_because,
            nodes_with: offered.nodes_with,
        }
    }
}
