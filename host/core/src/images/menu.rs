use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{ImageReference, Inventory};
use crate::values::digest::Digest;
use crate::values::field_error::FieldError;

/// The largest number of entries of a menu.
const MAX_ENTRIES: usize = 10_000;

/// The images from which a user chooses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageMenu {
    /// The images, in the order in which they are shown.
    pub entries: Vec<MenuEntry>,
    /// Other names of entries, such as `latest-weekly`.
    #[serde(default)]
    pub classes: Vec<ImageClass>,
}

/// An image of the menu.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MenuEntry {
    /// The value of the option `image`.
    pub name: String,
    /// The image with its tag.
    pub reference: String,
    /// The digest that pins the image. If it is absent, the digest that the service knows is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The text that is shown.
    pub label: String,
    /// A second line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Title of the group in the list of all other images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// True for the images that the site recommends.
    #[serde(default)]
    pub recommended: bool,
    /// The place of the entry in the form.
    #[serde(default)]
    pub place: Place,
}

/// The place of an entry in the form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Among the first if the entry is recommended, or if every node has its image; otherwise with the rest.
    #[default]
    Automatic,
    /// Among the first entries.
    First,
    /// In the list of all other images.
    Rest,
    /// Nowhere; the text is the reason.
    Hidden(String),
}

/// An alternative name of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageClass {
    /// The alternative name.
    pub name: String,
    /// The name of the entry.
    pub entry: String,
}

impl ImageMenu {
    /// Checks the menu of a policy. Names must be unique and without spaces, and every class must have an entry.
    pub fn check(&self) -> Result<(), Vec<FieldError>> {
        let mut errors = Vec::new();
        if self.entries.len() > MAX_ENTRIES {
            let problem = format!("has {} entries; a menu may have {MAX_ENTRIES}", self.entries.len());
            return Err(vec![FieldError::new("entries", problem)]);
        }
        let mut names = BTreeSet::new();
        for (at, entry) in self.entries.iter().enumerate() {
            let mut refuse = |key: &str, problem: String| {
                errors.push(FieldError::new(format!("entries[{at}].{key}"), problem));
            };
            if let Some(problem) = wrong_name(&entry.name, &mut names) {
                refuse("name", problem);
            }
            if let Err(error) = entry.reference.parse::<ImageReference>() {
                refuse("reference", error.to_string());
            }
            if let Some(Err(error)) = entry.digest.as_deref().map(str::parse::<Digest>) {
                refuse("digest", error.to_string());
            }
            if entry.label.is_empty() {
                refuse("label", "is empty".to_owned());
            }
        }
        for (at, class) in self.classes.iter().enumerate() {
            let mut refuse = |key: &str, problem: String| {
                errors.push(FieldError::new(format!("classes[{at}].{key}"), problem));
            };
            if let Some(problem) = wrong_name(&class.name, &mut names) {
                refuse("name", problem);
            }
            if self.entry(&class.entry).is_none() {
                refuse("entry", format!("there is no entry {:?}", class.entry));
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// Returns the entry of this name.
    pub(super) fn entry(&self, name: &str) -> Option<&MenuEntry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// Finds the requested entry: by its name or class, or else, if only one entry matches, by its image, its tag or
    /// its displayed text.
    pub(super) fn find(&self, asked: &str) -> Option<&MenuEntry> {
        let of_class = || self.entry(&self.classes.iter().find(|class| class.name == asked)?.entry);
        self.entry(asked).or_else(of_class).or_else(|| self.only(asked))
    }

    fn only(&self, asked: &str) -> Option<&MenuEntry> {
        let image: Option<ImageReference> = asked.parse().ok();
        let fits = |entry: &&MenuEntry| {
            let reference: Option<ImageReference> = entry.reference.parse().ok();
            let has_tag = reference.as_ref().is_some_and(|reference| reference.tag() == asked);
            entry.label == asked || has_tag || (image.is_some() && reference == image)
        };
        let mut fitting = self.entries.iter().filter(fits);
        fitting.next().filter(|_| fitting.next().is_none())
    }

    /// Returns the entry for users who choose none: the first recommended one, or else the first that is shown.
    pub(super) fn default_entry(&self) -> Option<&MenuEntry> {
        let mut shown = self.entries.iter().filter(|entry| !entry.is_hidden());
        let first = shown.clone().next();
        shown.find(|entry| entry.recommended).or(first)
    }
}

impl MenuEntry {
    /// Returns the image, with its digest if that is known.
    pub fn reference_in(&self, inventory: &Inventory) -> Option<ImageReference> {
        let reference: ImageReference = self.reference.parse().ok()?;
        let pinned = self.digest.as_deref().and_then(|digest| digest.parse().ok());
        let digest = pinned.or_else(|| inventory.digest(&reference));
        Some(ImageReference { digest, ..reference })
    }

    /// Returns true if the form does not show the entry.
    pub(super) fn is_hidden(&self) -> bool {
        matches!(self.place, Place::Hidden(_))
    }
}

fn wrong_name<'a>(name: &'a str, names: &mut BTreeSet<&'a str>) -> Option<String> {
    if name.is_empty() || name.contains(char::is_whitespace) {
        return Some(format!("{name:?} is empty or has a space"));
    }
    (!names.insert(name)).then(|| format!("{name:?} is the name of another entry or class too"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn menu(yaml: &str) -> ImageMenu {
        serde_saphyr::from_str(yaml).unwrap()
    }

    #[test]
    fn a_menu_that_cannot_be_used_is_refused_by_field() {
        let menu = menu(
            "
entries:
  - {name: '', reference: lab, label: A}
  - {name: a, reference: 'Lab:1', label: A}
  - {name: a, reference: 'lab:1', label: ''}
  - {name: 'b c', reference: 'lab:1', digest: 'sha256:1', label: B}
classes: [{name: a, entry: a}, {name: newest, entry: nothing}]",
        );
        let errors = menu.check().unwrap_err();
        let fields: Vec<_> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(
            fields,
            [
                "entries[0].name",
                "entries[1].reference",
                "entries[2].name",
                "entries[2].label",
                "entries[3].name",
                "entries[3].digest",
                "classes[0].name",
                "classes[1].entry"
            ]
        );
        assert_eq!(ImageMenu::default().check(), Ok(()));
    }
}
