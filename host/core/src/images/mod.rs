//! Container images: the images in registries, the images that users choose from, and the digest to which a lab is
//! pinned.

mod choice;
mod inventory;
mod menu;
mod node_images;
mod offer;
mod plain_menu;
mod prepull;
mod refresh;
mod repository;
mod tag;
mod tag_order;
mod wanted;

pub use choice::{ANOTHER_IMAGE, ChoiceError, IMAGE, IMAGE_SEARCH, ImageChoice};
pub use inventory::{Inventory, KnownTag, RefreshProblem, RepositoryImages};
pub use menu::{ImageClass, ImageMenu, MenuEntry, Place};
pub use node_images::{LabNode, NodeImages, NodeRules};
pub use offer::{OfferedImage, offer};
pub use plain_menu::plain_menu;
pub use prepull::{
    DailyHours, Ending, FailedPull, InvalidHours, NeededImage, Needs, PrepullLimits, Pull, PullHistory,
    PullPlan, PullPod, PullPodTemplate, PullState, plan, prepull_selector,
};
pub use refresh::{Refresh, resolved};
pub use repository::{ImageReference, InvalidReference, Repository};
pub use tag::{InvalidTag, Tag};
pub use wanted::{WantedImage, check_wanted};
