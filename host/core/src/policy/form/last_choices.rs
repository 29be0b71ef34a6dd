//! The choices of the user's last lab, as the initial values of the next form.

use regex_lite::Regex;

use super::{ChoiceInput, Field, FieldKind, NumberInput, TextInput};
use crate::images::{ANOTHER_IMAGE, IMAGE, IMAGE_SEARCH, ImageChoice, ImageMenu};
use crate::values::options::{Options, Value};

/// The number of characters of a value that a notice shows.
const SHOWN: usize = 64;

/// Selects the last choices in the fields. A field that has none keeps its default. So does a field that no longer
/// allows the last choice; its notice says so. Options without a field have no effect.
pub fn preselect(fields: &mut [Field], last: &Options) {
    for field in fields {
        let Some(value) = last.get(&field.name) else { continue };
        let text = value.to_string();
        if text.trim().is_empty() && !allows_empty(field) {
            continue; // nothing was chosen
        }
        if !select(field, value, &text) {
            field.notice = Some(notice(field, &text));
        }
    }
}

/// Renames the chosen image to the entry of the menu that it means today, and moves it to the field that has this
/// entry: among the first images, or in the list of all others.
pub fn follow_image(fields: &[Field], menu: &ImageMenu, last: &mut Options) {
    let Some(name) = ImageChoice::take(last).name_in(menu) else { return };
    let offers = |field: &str| {
        let field = fields.iter().find(|known| known.name == field);
        field.and_then(|field| choices(&field.kind)).is_some_and(|input| has(input, &name))
    };
    let has_first = fields.iter().any(|field| field.name == IMAGE);
    if offers(IMAGE_SEARCH) && has_first {
        last.insert(IMAGE.to_owned(), Value::Text(ANOTHER_IMAGE.to_owned()));
    }
    let place = if offers(IMAGE_SEARCH) || !has_first { IMAGE_SEARCH } else { IMAGE };
    last.insert(place.to_owned(), Value::Text(name));
}

/// Makes the value the initial one. Returns false if the field does not allow it.
fn select(field: &mut Field, value: &Value, text: &str) -> bool {
    match &mut field.kind {
        FieldKind::Select(input) | FieldKind::Radio(input) | FieldKind::Search(input) => {
            let offered = has(input, text);
            if offered {
                input.default = Some(text.to_owned());
            }
            offered
        }
        // Consent is given anew for each lab.
        FieldKind::Checkbox(_) if field.required => true,
        FieldKind::Checkbox(on) => match value {
            Value::Boolean(last) => {
                *on = *last;
                true
            }
            _ => false,
        },
        FieldKind::Text(input) => {
            let allowed = allows_text(input, text);
            if allowed {
                text.clone_into(&mut input.default);
            }
            allowed
        }
        FieldKind::Number(input) => match text.parse::<f64>() {
            Ok(number) if allows_number(input, number) => {
                input.default = number;
                true
            }
            _ => false,
        },
    }
}

fn choices(kind: &FieldKind) -> Option<&ChoiceInput> {
    match kind {
        FieldKind::Select(input) | FieldKind::Radio(input) | FieldKind::Search(input) => Some(input),
        FieldKind::Checkbox(_) | FieldKind::Text(_) | FieldKind::Number(_) => None,
    }
}

fn has(input: &ChoiceInput, value: &str) -> bool {
    input.choices.iter().any(|choice| choice.value == value)
}

fn allows_empty(field: &Field) -> bool {
    match &field.kind {
        FieldKind::Text(_) => !field.required,
        kind => choices(kind).is_some_and(|input| has(input, "")),
    }
}

fn allows_text(input: &TextInput, text: &str) -> bool {
    let longest = input.max_length.map_or(usize::MAX, |length| usize::try_from(length).unwrap_or(usize::MAX));
    if text.chars().any(|char| char.is_control() || matches!(char, '\u{2028}' | '\u{2029}'))
        || text.chars().nth(longest).is_some()
    {
        return false;
    }
    let pattern = input.pattern.as_deref().filter(|_| !text.is_empty());
    // The policy checks a pattern that only a browser can read.
    pattern
        .and_then(|pattern| Regex::new(&format!("^(?:{pattern})$")).ok())
        .is_none_or(|it| it.is_match(text))
}

fn allows_number(input: &NumberInput, number: f64) -> bool {
    let in_range = number.is_finite()
        && input.minimum.is_none_or(|minimum| number >= minimum)
        && input.maximum.is_none_or(|maximum| number <= maximum);
    let on_step = |step: f64| {
        let steps = (number - input.minimum.unwrap_or(input.default)) / step;
        (steps - steps.round()).abs() < 1e-6
    };
    in_range && input.step.is_none_or(on_step)
}

fn notice(field: &Field, last: &str) -> String {
    let mut shown: String =
        last.chars().take(SHOWN).map(|char| if char.is_control() { '\u{fffd}' } else { char }).collect();
    if last.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    let has_default = choices(&field.kind).is_none_or(|input| input.default.is_some());
    let remedy = if has_default { "This is the default instead." } else { "Choose another." };
    format!("Your last choice, \"{shown}\", is not available any more. {remedy}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::images::{Inventory, NodeImages, offer};
    use crate::policy::form::{Form, check, image_fields, render};

    const FORM: &str = "
fields:
  - {name: size, label: Size, kind: {radio: {choices: [{value: small, label: S}, {value: large, label: L}], default: small}}}
  - {name: zone, label: Zone, kind: {select: {choices: [{value: a, label: A}, {value: b, label: B}]}}}
  - {name: debug, label: Debug, kind: {checkbox: false}}
  - {name: terms, label: I agree, required: true, kind: {checkbox: false}}
  - {name: note, label: Note, kind: {text: {default: hello, max_length: 5}}}
  - {name: code, label: Code, required: true, kind: {text: {default: ABC, pattern: '[A-Z]{3}'}}}
  - {name: disk, label: Disk, kind: {number: {default: 1, minimum: 1, maximum: 8, step: 0.1}}}
  - {name: gpus, label: GPUs, kind: {number: {default: 0}}}";

    fn form(last: &serde_json::Value) -> Vec<Field> {
        let Form::Fields(mut fields) = serde_saphyr::from_str(FORM).unwrap() else { panic!("fields") };
        preselect(&mut fields, &crate::policy::form::options(last.as_object().unwrap()).unwrap());
        assert_eq!(check(&Form::Fields(fields.clone())), Ok(()));
        fields
    }

    /// The initial value of each field, and the fields that have a notice.
    fn begins_with(last: &serde_json::Value) -> (Vec<String>, Vec<String>) {
        let fields = form(last);
        let initial = |field: &Field| match &field.kind {
            FieldKind::Checkbox(on) => on.to_string(),
            FieldKind::Text(input) => input.default.clone(),
            FieldKind::Number(input) => input.default.to_string(),
            kind => choices(kind).unwrap().default.clone().unwrap_or_default(),
        };
        let noticed = fields.iter().filter(|field| field.notice.is_some());
        (fields.iter().map(initial).collect(), noticed.map(|field| field.name.clone()).collect())
    }

    const DEFAULTS: [&str; 8] = ["small", "", "false", "false", "hello", "ABC", "1", "0"];

    #[test]
    fn the_last_choices_are_the_initial_ones() {
        // The Hub keeps what a browser has submitted, or what a program has asked for.
        for last in [
            serde_json::json!({"size": ["large"], "zone": "b", "debug": "true", "terms": "true", "note": "", "code": "XYZ",
                "disk": "1.3", "gpus": "2"}),
            serde_json::json!({"size": "large", "zone": "b", "debug": true, "terms": true, "note": "", "code": "XYZ",
                "disk": 1.3, "gpus": 2}),
        ] {
            let (initial, noticed) = begins_with(&last);
            assert_eq!(
                initial,
                ["large", "b", "true", "false", "", "XYZ", "1.3", "2"],
                "consent is given anew"
            );
            assert_eq!(noticed, [""; 0]);
        }
    }

    #[test]
    fn without_last_choices_the_defaults_are_the_initial_ones() {
        let unknown = serde_json::json!({"gone": "x", "": "y", "zone": "", "code": " "});
        for last in [serde_json::json!({}), unknown] {
            let (initial, noticed) = begins_with(&last);
            assert_eq!((&initial[..], noticed.len()), (&DEFAULTS.map(str::to_owned)[..], 0), "{last}");
        }
    }

    #[test]
    fn a_choice_that_is_not_available_any_more_is_the_default_and_said() {
        let last = serde_json::json!({"size": "huge", "zone": "c", "debug": "maybe", "note": "too long", "code": "abc",
            "disk": 9, "gpus": "many"});
        let (initial, noticed) = begins_with(&last);
        assert_eq!(initial, DEFAULTS);
        assert_eq!(noticed, ["size", "zone", "debug", "note", "code", "disk", "gpus"]);
        for disk in ["0.9", "1.35", "NaN", "inf", "-1", ""] {
            let (initial, _) = begins_with(&serde_json::json!({ "disk": disk }));
            assert_eq!(initial[6], "1", "{disk}");
        }
        for text in ["a\nb", "a\u{2028}b", "a\u{0}b"] {
            assert_eq!(begins_with(&serde_json::json!({ "note": text })).1, ["note"], "{text:?}");
        }
    }

    #[test]
    fn a_notice_is_one_escaped_line_below_its_field() {
        let long = "x".repeat(100);
        let fields = form(&serde_json::json!({"size": "<b>\n", "zone": long}));
        assert_eq!(
            fields[0].notice.as_deref(),
            Some(
                "Your last choice, \"<b>\u{fffd}\", is not available any more. This is the default instead."
            )
        );
        let html = render(&Form::Fields(fields));
        assert!(html.contains("id=\"ws-0-notice\">Your last choice, &quot;&lt;b&gt;"), "{html}");
        assert!(html.contains("aria-describedby=\"ws-0-notice\""), "{html}");
        assert!(
            html.contains(&format!("&quot;{}…&quot;", "x".repeat(64))) && html.contains("Choose another.")
        );
        assert!(!html.contains("<b>"), "{html}");
    }

    fn images(menu: &str, last: &[(&str, &str)]) -> Vec<(String, Option<String>, bool)> {
        let menu: ImageMenu = serde_saphyr::from_str(menu).unwrap();
        let mut fields = image_fields(&offer(&menu, &Inventory::default(), &NodeImages::default()));
        let mut last =
            last.iter().map(|(key, value)| ((*key).to_owned(), Value::Text((*value).to_owned()))).collect();
        follow_image(&fields, &menu, &mut last);
        preselect(&mut fields, &last);
        let of_field = |field: Field| {
            let default = choices(&field.kind).and_then(|input| input.default.clone());
            (field.name, default, field.notice.is_some())
        };
        fields.into_iter().map(of_field).collect()
    }

    #[test]
    fn an_image_is_chosen_where_the_menu_has_it_today() {
        let menu = "
entries:
  - {name: r_1, reference: 'lab:r_1', label: Release 1, recommended: true}
  - {name: r_2, reference: 'lab:r_2', label: Release 2, place: first}
  - {name: w_9, reference: 'lab:w_9', label: Weekly 9, place: rest}
  - {name: old, reference: 'lab:old', label: Old, place: {hidden: too old}}
classes: [{name: latest-weekly, entry: w_9}]";
        let chosen = |image: &str, search: Option<&str>, noticed: bool| {
            vec![
                (IMAGE.to_owned(), Some(image.to_owned()), noticed),
                (IMAGE_SEARCH.to_owned(), search.map(str::to_owned), false),
            ]
        };
        assert_eq!(images(menu, &[]), chosen("r_1", None, false));
        assert_eq!(images(menu, &[(IMAGE, "r_2")]), chosen("r_2", None, false));
        let searched = chosen(ANOTHER_IMAGE, Some("w_9"), false);
        assert_eq!(images(menu, &[(IMAGE, ANOTHER_IMAGE), (IMAGE_SEARCH, "w_9")]), searched);
        assert_eq!(
            images(menu, &[(IMAGE, "latest-weekly")]),
            searched,
            "a class is the entry that it means now"
        );
        // It was among the others then.
        assert_eq!(
            images(menu, &[(IMAGE, ANOTHER_IMAGE), (IMAGE_SEARCH, "r_2")]),
            chosen("r_2", None, false)
        );
        for gone in ["w_1", "old"] {
            assert_eq!(images(menu, &[(IMAGE, gone)]), chosen("r_1", None, true), "{gone}");
            let last = [(IMAGE, ANOTHER_IMAGE), (IMAGE_SEARCH, gone)];
            assert_eq!(images(menu, &last), chosen("r_1", None, true), "{gone}");
        }
        let only_rest = "entries: [{name: a, reference: a, label: A, place: rest}]";
        assert_eq!(
            images(only_rest, &[(IMAGE, "a")]),
            [(IMAGE_SEARCH.to_owned(), Some("a".to_owned()), false)]
        );
        assert_eq!(images(only_rest, &[(IMAGE, "b")]), [(IMAGE_SEARCH.to_owned(), None, true)]);
        assert_eq!(images("entries: []", &[(IMAGE, "b")]), []);
    }
}
