//! `images`: offers images to users, and names those that nodes should have.

use serde_json::Value;
use wasmspawner_core::config::grants::Grants;
use wasmspawner_core::images::{self, ImageClass, ImageMenu, MenuEntry, Place, WantedImage};
use wasmspawner_core::policy::form::FormContext;

use super::{Asked, Exports, Question, call, input, refusal};
use crate::contract::bindings::hooks::images as wit;
use crate::contract::convert::user;
use crate::contract::guest::Calling;
use crate::errors::CallErrorKind;
use crate::limits::Limits;
use crate::names::hook::Hook;
use crate::names::policy_name::PolicyName;

/// The maximum size of a menu, in bytes: a menu of ten thousand images is larger than other answers.
const MENU_BYTES: usize = 8 << 20;

/// Asks for a user's menu of images. The last policy that has one answers. A policy is never skipped, because its menu
/// may be what keeps users from an image.
#[derive(Clone)]
pub(crate) struct OfferImages(pub(crate) FormContext);

impl Question for OfferImages {
    const HOOK: Hook = Hook::new("images.menu");
    const ASKED: Asked = Asked::LastFirst;

    type Interface = wit::GuestIndices;
    /// `None` if the policy has the hook, but no menu.
    type Answer = Option<ImageMenu>;

    fn interface(exports: &Exports) -> Option<&wit::GuestIndices> {
        exports.images.as_ref()
    }

    fn call(&self, interface: &wit::GuestIndices) -> Calling<Option<ImageMenu>> {
        let request = wit::Request { user: user(&self.0.user), server: self.0.server.clone() };
        call!(interface, |exports, store| exports.call_menu(&mut store, &request), |answer| {
            answer.map(|menu| menu.map(image_menu)).map_err(refusal)
        })
    }

    fn limits(limits: Limits) -> Limits {
        Limits { answer_bytes: limits.answer_bytes.max(MENU_BYTES), ..limits }
    }

    /// Checks that users can choose from the menu.
    fn check(
        menu: Option<ImageMenu>,
        _: &PolicyName,
        _: &Grants,
    ) -> Result<Option<ImageMenu>, CallErrorKind> {
        menu.as_ref().map_or(Ok(()), ImageMenu::check).map_err(CallErrorKind::unusable_menu)?;
        Ok(menu)
    }

    fn is_last(menu: &Option<ImageMenu>) -> bool {
        menu.is_some()
    }

    fn input(&self) -> Option<Value> {
        Some(input::of_user(&self.0.user, &self.0.server))
    }
}

/// Asks which images nodes should have.
#[derive(Clone)]
pub(crate) struct Prepull;

impl Question for Prepull {
    const HOOK: Hook = Hook::new("images.prepull");
    const SKIPPABLE: bool = true;

    type Interface = wit::GuestIndices;
    type Answer = Vec<WantedImage>;

    fn interface(exports: &Exports) -> Option<&wit::GuestIndices> {
        exports.images.as_ref()
    }

    fn call(&self, interface: &wit::GuestIndices) -> Calling<Vec<WantedImage>> {
        call!(interface, |exports, store| exports.call_prepull(&mut store), |answer| {
            answer.map(wanted_images).map_err(refusal)
        })
    }

    /// Checks that nodes can pull the images.
    fn check(
        wanted: Vec<WantedImage>,
        _: &PolicyName,
        _: &Grants,
    ) -> Result<Vec<WantedImage>, CallErrorKind> {
        images::check_wanted(&wanted).map_err(CallErrorKind::unusable_menu)?;
        Ok(wanted)
    }
}

fn image_menu(menu: wit::ImageMenu) -> ImageMenu {
    let class = |class: wit::Class| ImageClass { name: class.name, entry: class.entry };
    ImageMenu {
        entries: menu.entries.into_iter().map(entry).collect(),
        classes: menu.classes.into_iter().map(class).collect(),
    }
}

fn entry(entry: wit::Entry) -> MenuEntry {
    MenuEntry {
        name: entry.name,
        reference: entry.reference,
        digest: entry.digest,
        label: entry.label,
        description: entry.description,
        group: entry.group,
        recommended: entry.recommended,
        place: match entry.place {
            wit::Place::Automatic => Place::Automatic,
            wit::Place::First => Place::First,
            wit::Place::Rest => Place::Rest,
            wit::Place::Hidden(reason) => Place::Hidden(reason),
        },
    }
}

fn wanted_images(wanted: Vec<wit::WantedImage>) -> Vec<WantedImage> {
    let image = |image: wit::WantedImage| WantedImage {
        reference: image.reference,
        node_selector: image.node_selector.into_iter().map(|pair| (pair.name, pair.value)).collect(),
    };
    wanted.into_iter().map(image).collect()
}
