//! The menu of images as fields of the spawn form.

use super::{Choice, ChoiceInput, Condition, Field, FieldKind};
use crate::images::{ANOTHER_IMAGE, IMAGE, IMAGE_SEARCH, MenuEntry, OfferedImage, Place};

/// The largest number of first images that are shown as cards. More of them are shown as a list.
const CARDS: usize = 4;
const SLOW: &str = "It may take longer to start, because not every machine has it yet.";

/// Returns the fields with which a user chooses an image: the first images, and a searchable list of all others.
pub fn image_fields(offer: &[OfferedImage<'_>]) -> Vec<Field> {
    let at = |place: Place| offer.iter().filter(move |offered| offered.place == place);
    let mut choices: Vec<Choice> = at(Place::First).map(|offered| choice(offered.entry)).collect();
    let rest: Vec<Choice> = at(Place::Rest).map(|offered| in_list(offered.entry)).collect();
    let default =
        at(Place::First).find(|offered| offered.is_default).map(|offered| offered.entry.name.clone());
    if !rest.is_empty() && !choices.is_empty() {
        let description = Some(SLOW.to_owned());
        choices.push(Choice {
            value: ANOTHER_IMAGE.to_owned(),
            label: "Another image".to_owned(),
            description,
        });
    }
    let mut fields = Vec::new();
    let search_is_all = choices.is_empty();
    if !choices.is_empty() {
        let kind = if choices.len() > CARDS { FieldKind::Select } else { FieldKind::Radio };
        fields
            .push(Field { required: true, ..field(IMAGE, "Image", kind(ChoiceInput { choices, default })) });
    }
    if !rest.is_empty() {
        let search = FieldKind::Search(ChoiceInput { choices: rest, default: None });
        let condition = Condition { field: IMAGE.to_owned(), values: vec![ANOTHER_IMAGE.to_owned()] };
        fields.push(Field {
            help: Some(
                if search_is_all { SLOW } else { "Type a part of its name, and choose one." }.to_owned(),
            ),
            // A page without scripts also shows this field to users who have chosen one of the first images.
            required: search_is_all,
            visible_when: (!search_is_all).then_some(condition),
            ..field(IMAGE_SEARCH, if search_is_all { "Image" } else { "Search all images" }, search)
        });
    }
    fields
}

fn field(name: &str, label: &str, kind: FieldKind) -> Field {
    Field {
        name: name.to_owned(),
        label: label.to_owned(),
        help: None,
        group: None,
        required: false,
        visible_when: None,
        kind,
        notice: None,
    }
}

fn choice(entry: &MenuEntry) -> Choice {
    Choice { value: entry.name.clone(), label: entry.label.clone(), description: entry.description.clone() }
}

/// Returns the line of an image in the list. It also contains the image's group.
fn in_list(entry: &MenuEntry) -> Choice {
    let more = [entry.group.as_deref(), entry.description.as_deref()];
    let description = more.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let description = (!description.is_empty()).then_some(description);
    Choice { value: entry.name.clone(), label: entry.label.clone(), description }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::images::{ImageMenu, Inventory, NodeImages, offer};
    use crate::policy::form::{Form, check, render};

    fn fields(menu: &str) -> Vec<Field> {
        let menu: ImageMenu = serde_saphyr::from_str(menu).unwrap();
        let fields = image_fields(&offer(&menu, &Inventory::default(), &NodeImages::default()));
        assert_eq!(check(&Form::Fields(fields.clone())), Ok(()));
        fields
    }

    #[test]
    fn few_images_are_cards_and_the_rest_is_searched() {
        let entries = "
entries:
  - {name: r_1, reference: 'lab:r_1', label: Release 1, recommended: true}
  - {name: w_9, reference: 'lab:w_9', label: <Weekly 9>, group: Weekly, description: new, place: rest}";
        let [image, search] = &fields(entries)[..] else { panic!("two fields") };
        let FieldKind::Radio(cards) = &image.kind else { panic!("cards") };
        assert_eq!(
            cards.choices.iter().map(|card| card.value.as_str()).collect::<Vec<_>>(),
            ["r_1", ANOTHER_IMAGE]
        );
        assert_eq!(cards.default.as_deref(), Some("r_1"));
        assert_eq!(search.visible_when.as_ref().unwrap().values, [ANOTHER_IMAGE]);
        let html = render(&Form::Fields(fields(entries)));
        assert!(html.contains("<option value=\"w_9\">&lt;Weekly 9&gt; – Weekly, new</option>"), "{html}");
        assert!(html.contains("It may take longer"), "{html}");
    }

    #[test]
    fn many_images_are_a_list_and_none_is_no_field() {
        let entry =
            |n: usize| format!("  - {{name: r_{n}, reference: 'lab:r_{n}', label: R, place: first}}\n");
        let many = format!("entries:\n{}", (0..5).map(entry).collect::<String>());
        assert!(matches!(fields(&many)[..], [Field { kind: FieldKind::Select(_), .. }]));
        assert!(fields("entries: []").is_empty());
        let only_rest = fields("entries: [{name: a, reference: a, label: A, place: rest}]");
        assert_eq!(only_rest[0].name, IMAGE_SEARCH);
        assert!(only_rest[0].visible_when.is_none());
    }
}
