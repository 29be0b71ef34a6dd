use super::{ImageMenu, MenuEntry};
use crate::values::options::Options;

/// The option with the chosen image.
pub const IMAGE: &str = "image";
/// The field of the form in which a user searches for an image.
pub const IMAGE_SEARCH: &str = "image_search";
/// The choice in the form that stands for the searched image. The name contains a space, so no entry can have it.
pub const ANOTHER_IMAGE: &str = "another image";

/// Largest number of names of images that an error lists.
const LISTED: usize = 10;

/// The image that a user requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageChoice(Option<String>);

/// The menu has no such image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no image {asked:?}; {there_is}")]
pub struct ChoiceError {
    asked: String,
    there_is: String,
}

impl ImageChoice {
    /// Removes the choice from a submission of the form, or from the options of a request, and returns it.
    pub fn take(options: &mut Options) -> Self {
        let mut taken = |name: &str| {
            options.remove(name).map(|value| value.to_string()).filter(|text| !text.trim().is_empty())
        };
        let (image, searched) = (taken(IMAGE), taken(IMAGE_SEARCH));
        let asked = match image {
            // Without a searched image, the choice keeps its text, which no menu has as a name.
            Some(image) if image == ANOTHER_IMAGE => searched.or(Some(image)),
            image => image.or(searched),
        };
        Self(asked.map(|asked| asked.trim().to_owned()))
    }

    /// Returns the name of the requested entry of the menu, or the text of the request if the menu has no such entry;
    /// `None` if no image is requested.
    pub(crate) fn name_in(self, menu: &ImageMenu) -> Option<String> {
        let asked = self.0?;
        Some(menu.find(&asked).map_or(asked, |entry| entry.name.clone()))
    }

    /// Returns the requested entry of the menu; `None` if the menu is empty and no image is requested.
    ///
    /// # Errors
    ///
    /// Fails if the menu has no such entry, or if several entries match.
    pub fn entry<'a>(&self, menu: &'a ImageMenu) -> Result<Option<&'a MenuEntry>, ChoiceError> {
        let Some(asked) = &self.0 else { return Ok(menu.default_entry()) };
        menu.find(asked).map(Some).ok_or_else(|| ChoiceError { asked: asked.clone(), there_is: listed(menu) })
    }
}

fn listed(menu: &ImageMenu) -> String {
    let mut shown: Vec<_> = menu.entries.iter().filter(|entry| !entry.is_hidden()).collect();
    shown.sort_by_key(|entry| !entry.recommended);
    let mut names = shown.into_iter().map(|entry| entry.name.as_str());
    let listed: Vec<_> = names.by_ref().take(LISTED).collect();
    match (listed.is_empty(), names.count()) {
        (true, _) => "this site has no images at the moment".to_owned(),
        (false, 0) => format!("choose one of {}", listed.join(", ")),
        (false, more) => format!("choose one of {} and {more} others", listed.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::options::Value;

    fn menu() -> ImageMenu {
        serde_saphyr::from_str(
            "
entries:
  - {name: w_40, reference: 'quay.io/lab:w_40', label: Weekly 40}
  - {name: r_1, reference: 'quay.io/lab:r_1', label: Release 1, recommended: true}
  - {name: old, reference: 'quay.io/lab:old', label: Old, place: {hidden: too old}}
classes: [{name: latest-weekly, entry: w_40}]",
        )
        .unwrap()
    }

    fn chosen(options: &[(&str, &str)]) -> Result<String, String> {
        let mut options: Options = options
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Value::Text((*value).to_owned())))
            .collect();
        let menu = menu();
        let choice = ImageChoice::take(&mut options);
        assert!(options.is_empty(), "both are taken: {options:?}");
        choice.entry(&menu).map(|entry| entry.unwrap().name.clone()).map_err(|error| error.to_string())
    }

    #[test]
    fn an_image_is_asked_for_by_name_by_class_or_by_its_own_name() {
        for (options, expected) in [
            (&[][..], "r_1"),
            (&[("image", "")], "r_1"),
            (&[("image", "w_40")], "w_40"),
            (&[("image", "latest-weekly")], "w_40"),
            (&[("image", "quay.io/lab:w_40")], "w_40"),
            (&[("image", "old")], "old"),
            (&[("image", "another image"), ("image_search", " w_40 ")], "w_40"),
            (&[("image_search", "Weekly 40")], "w_40"),
            (&[("image", "r_1"), ("image_search", "w_40")], "r_1"),
            (&[("image_search", "w_40")], "w_40"),
        ] {
            assert_eq!(chosen(options).as_deref(), Ok(expected), "{options:?}");
        }
        assert!(chosen(&[("image", "another image"), ("image_search", "")]).is_err(), "no image is named");
        let refused = chosen(&[("image", "w_41")]).unwrap_err();
        assert_eq!(refused, "there is no image \"w_41\"; choose one of r_1, w_40");
    }

    #[test]
    fn without_images_no_choice_is_none() {
        let none = ImageMenu::default();
        assert_eq!(ImageChoice::default().entry(&none), Ok(None));
        let mut options = Options::from([("image".into(), Value::Integer(3))]);
        let error = ImageChoice::take(&mut options).entry(&none).unwrap_err().to_string();
        assert_eq!(error, "there is no image \"3\"; this site has no images at the moment");
    }
}
