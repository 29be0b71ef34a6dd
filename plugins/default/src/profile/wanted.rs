//! The images of profiles that nodes pull before anyone asks for them.

use std::iter;

use wasmspawner_sdk::Pair;
use wasmspawner_sdk::images::WantedImage;
use wasmspawner_sdk::pod::Customization;

use super::option::ProfileOption;
use super::overrides::Overrides;
use super::{Profile, Profiles};

impl Profiles {
    /// The images of all profiles and of the choices in them, or that of every lab if there are no profiles. `node_selector` is that of the site.
    pub(crate) fn wanted(&self, node_selector: &[Pair]) -> Vec<WantedImage> {
        let site = Customization { node_selector: node_selector.to_vec(), ..Customization::default() };
        let site = with(&site, &self.site);
        if self.is_empty() {
            return image_of(site).into_iter().collect();
        }
        self.list.iter().flat_map(|profile| profile.wanted(&site)).collect()
    }
}

impl Profile {
    /// The image of the profile, and then that of each choice. A choice without an image has that of the profile, on
    /// the nodes that the choice selects. Choices of two options are not combined: there may be very many combinations.
    fn wanted(&self, site: &Customization) -> Vec<WantedImage> {
        let lab = with(site, &self.overrides);
        let choices = self.options.values().flat_map(ProfileOption::without_typed_text);
        let labs: Vec<_> = choices.map(|overrides| with(&lab, &overrides)).collect();
        iter::once(lab).chain(labs).filter_map(image_of).collect()
    }
}

fn with(lab: &Customization, overrides: &Overrides) -> Customization {
    let mut lab = lab.clone();
    overrides.apply(&mut lab);
    lab
}

/// The image of the lab. `None` if the lab has the service's `lab.image`, which this policy does not know.
fn image_of(lab: Customization) -> Option<WantedImage> {
    Some(WantedImage { reference: lab.image?.reference, node_selector: lab.node_selector })
}
