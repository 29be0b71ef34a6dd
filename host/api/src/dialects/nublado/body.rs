//! The body of a request to create a lab: `options` as Nublado's form submits them, and `env`.

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use utoipa::ToSchema;
use wasmspawner_core::images::{IMAGE, ImageReference};

use crate::problem::kind::ProblemKind;
use crate::problem::{Detail, Problem};
use crate::wire::{self, ParsedSpawn};

/// The options that name the image: this service's own, and the four ways of Nublado.
pub(super) const IMAGES: [&str; 5] = [IMAGE, IMAGE_LIST, IMAGE_DROPDOWN, "image_class", "image_tag"];
const IMAGE_LIST: &str = "image_list";
const IMAGE_DROPDOWN: &str = "image_dropdown";
/// The value of `image_list` that means the image of `image_dropdown`.
const FROM_DROPDOWN: &str = "use_image_from_dropdown";
/// The variable that every lab of JupyterHub has.
const SERVICE_PREFIX: &str = "JUPYTERHUB_SERVICE_PREFIX";

/// The lab to create.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LabSpecification {
    /// The submission of the form. Each value may be a list of one. One of `image_list`, `image_dropdown`, `image_class`
    /// and `image_tag` names the image, or `image` of this service's form. The site's policy decides which other keys
    /// exist.
    #[schema(value_type = Object, example = json!({"image_list": "docker.io/lsstsqre/sciplat-lab:w_2025_07", "size": "small"}))]
    options: Map<String, Json>,
    /// Environment variables, `JUPYTERHUB_SERVICE_PREFIX` among them.
    #[schema(value_type = Object, example = json!({"JUPYTERHUB_SERVICE_PREFIX": "/nb/user/ada/"}))]
    env: Map<String, Json>,
}

/// A parsed body.
#[derive(Debug)]
pub(super) struct ParsedLab {
    pub(super) spawn: ParsedSpawn,
    /// The option that names the image; `None` if none does.
    pub(super) image_option: Option<&'static str>,
}

/// Parses a body.
pub(super) fn parse(body: &Bytes) -> Result<ParsedLab, Problem> {
    let mut body: Json = serde_json::from_slice(body)
        .map_err(|error| Problem::at(&["body"], ProblemKind::MalformedJson, error.to_string()))?;
    let mut mistakes = Vec::new();
    for part in ["options", "env"] {
        if body.get(part).is_none() {
            let msg = format!("is missing; a lab has `options` and `env`, and this has no `{part}`");
            mistakes.push(Detail::new(["body", part], ProblemKind::Missing, msg));
        }
    }
    if body.get("env").and_then(Json::as_object).is_some_and(|env| !env.contains_key(SERVICE_PREFIX)) {
        let msg = format!("is missing; JupyterHub sets {SERVICE_PREFIX} for every lab");
        mistakes.push(Detail::new(["body", "env", SERVICE_PREFIX], ProblemKind::Missing, msg));
    }
    let mut image_option = None;
    if let Some(options) = body.get_mut("options").and_then(Json::as_object_mut) {
        // FastAPI takes an empty list, and null, for a value that is not there.
        options.retain(|_, value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()));
        match take_image(options) {
            Ok(image) => {
                image_option = image.as_ref().map(|(option, _)| *option);
                options.extend(image.map(|(_, image)| (IMAGE.to_owned(), image.into())));
            }
            Err(mistake) => mistakes.push(mistake),
        }
    }
    if !mistakes.is_empty() {
        return Err(Problem::from_details(mistakes));
    }
    let spawn = wire::parse_spawn(json!(body).to_string().as_bytes())?;
    Ok(ParsedLab { spawn, image_option })
}

/// Takes the image out of the options, with the name of the option.
fn take_image(options: &mut Map<String, Json>) -> Result<Option<(&'static str, String)>, Detail> {
    let mut named = Vec::new();
    for option in IMAGES {
        let Some(value) = options.remove(option) else { continue };
        let text = match &value {
            Json::String(text) => text,
            Json::Array(list) => match &list[..] {
                [Json::String(text)] => text,
                _ => return Err(wrong(option, ProblemKind::WrongType, "has more than one value")),
            },
            _ => return Err(wrong(option, ProblemKind::WrongType, "is not a text")),
        };
        if !(text.is_empty() || option == IMAGE_LIST && text == FROM_DROPDOWN) {
            named.push((option, text.clone()));
        }
    }
    // A form with both submits the list's value, too, when an image of the other was chosen.
    if named.iter().any(|(option, _)| *option == IMAGE_LIST) {
        named.retain(|(option, _)| *option != IMAGE_DROPDOWN);
    }
    if let [_, (option, _), ..] = named[..] {
        let ways: Vec<_> = named.iter().map(|(option, _)| *option).collect();
        let msg = format!("the image is named in several ways ({}); keep one", ways.join(", "));
        return Err(wrong(option, ProblemKind::InvalidBody, &msg));
    }
    let Some((option, image)) = named.pop() else { return Ok(None) };
    let is_a_reference = matches!(option, IMAGE_LIST | IMAGE_DROPDOWN) && image.contains('/');
    match image.parse::<ImageReference>() {
        Ok(ImageReference { tag: None, digest: None, .. }) if is_a_reference => {
            let msg = format!("the image {image:?} has no tag; add one, such as {image}:w_2025_07");
            Err(wrong(option, ProblemKind::InvalidText, &msg))
        }
        // The lab is pinned to the digest that the tag has now. A menu knows images by their tags.
        Ok(reference @ ImageReference { tag: Some(_), digest: Some(_), .. }) => {
            Ok(Some((option, ImageReference { digest: None, ..reference }.to_string())))
        }
        _ => Ok(Some((option, image))),
    }
}

fn wrong(option: &str, kind: ProblemKind, msg: &str) -> Detail {
    Detail::new(["body", "options", option], kind, msg)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(options: &Json) -> Result<(Option<&'static str>, String), String> {
        let body = json!({ "options": options, "env": { SERVICE_PREFIX: "/user/ada/" } });
        parse(&body.to_string().into())
            .map(|parsed| (parsed.image_option, json!(parsed.spawn.options).to_string()))
            .map_err(|problem| format!("{problem:?}"))
    }

    #[test]
    fn an_image_is_named_in_one_of_several_ways() {
        for (options, option, expected) in [
            (
                json!({"image_list": ["lab:w_40"], "size": ["small"]}),
                "image_list",
                r#"{"image":"lab:w_40","size":"small"}"#,
            ),
            (
                json!({"image_list": FROM_DROPDOWN, "image_dropdown": ["lab:w_39"]}),
                "image_dropdown",
                r#"{"image":"lab:w_39"}"#,
            ),
            (
                json!({"image_list": "lab:w_40", "image_dropdown": "lab:w_39"}),
                "image_list",
                r#"{"image":"lab:w_40"}"#,
            ),
            (
                json!({"image_class": "latest-weekly", "image_tag": null}),
                "image_class",
                r#"{"image":"latest-weekly"}"#,
            ),
            (json!({"image_tag": ["w_38"], "image_list": []}), "image_tag", r#"{"image":"w_38"}"#),
            (json!({"image": ["w_38"]}), "image", r#"{"image":"w_38"}"#),
            (
                json!({"image_tag": "w_38", "enable_debug": ["true"]}),
                "image_tag",
                r#"{"enable_debug":true,"image":"w_38"}"#,
            ),
        ] {
            assert_eq!(parsed(&options), Ok((Some(option), expected.to_owned())), "{options}");
        }
        assert_eq!(parsed(&json!({"size": "small"})), Ok((None, r#"{"size":"small"}"#.to_owned())));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        for (options, expected) in [
            (json!({"image_tag": "a", "image_class": "recommended"}), "image_class, image_tag"),
            (json!({"image_list": "a", "image_tag": "a"}), "image_list, image_tag"),
            (json!({"image_list": ["a", "b"]}), "more than one value"),
            (json!({"image_tag": 3}), "is not a text"),
            (json!({"image_list": "quay.io/site/lab"}), "has no tag"),
            (json!({"image_dropdown": "quay.io:80/site/lab"}), "has no tag"),
        ] {
            let problem = parsed(&options).unwrap_err();
            assert!(problem.contains(expected) && problem.contains("422"), "{options}: {problem}");
        }
        for (body, expected) in [
            (json!({"options": {"image": "a"}}), r#"["body", "env"]"#),
            (json!({"env": {SERVICE_PREFIX: "/"}}), r#"["body", "options"]"#),
            (json!({"options": {}, "env": {}}), SERVICE_PREFIX),
            (json!([]), r#"["body", "options"]"#),
        ] {
            let problem = format!("{:?}", parse(&body.to_string().into()).unwrap_err());
            assert!(problem.contains(expected), "{body}: {problem}");
        }
        assert!(format!("{:?}", parse(&"{".into()).unwrap_err()).contains("malformed_json"));
    }

    proptest::proptest! {
        #[test]
        fn any_body_is_parsed_without_a_panic(body: Vec<u8>) {
            let _ = parse(&body.into());
        }
    }
}
