//! The options of a lab that a blueprint sets.

use super::Resolved;
use crate::values::options::{Options, Value};

/// The option of the spawn form with which a user chooses a blueprint.
pub const CHOICE: &str = "blueprint";

/// The option with which a user names a repository. The lab then uses the repository's own blueprint.
pub const REPOSITORY: &str = "repo";

impl Resolved {
    /// Sets the options of the blueprints in the submitted ones. Options of the chosen blueprint replace submitted
    /// values; options of the platform's blueprints only fill in missing ones.
    pub fn change(&self, options: &mut Options) {
        let text = |text: &String| Value::Text(text.clone());
        let own = self
            .spec
            .options
            .iter()
            .map(|(name, value)| (format!("options.{name}"), name.as_str(), value.clone()));
        let image = self.spec.image.iter().map(|image| ("image".to_owned(), "image", text(image)));
        let size = self.spec.size.iter().map(|size| ("size".to_owned(), "size", text(size)));
        for (field, name, value) in own.chain(image).chain(size) {
            if self.defaults.contains(&field) {
                options.entry(name.to_owned()).or_insert(value);
            } else {
                options.insert(name.to_owned(), value);
            }
        }
    }
}
