use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ImageReference;
use crate::values::field_error::FieldError;

/// The largest number of images that one policy may request for nodes.
const MAX_IMAGES: usize = 1000;

/// An image that nodes are to have before somebody asks for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WantedImage {
    /// The image, with its tag or digest.
    pub reference: String,
    /// Only nodes with these labels need it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
}

/// Checks the list of a policy.
pub fn check_wanted(wanted: &[WantedImage]) -> Result<(), Vec<FieldError>> {
    if wanted.len() > MAX_IMAGES {
        return Err(vec![FieldError::new(
            "",
            format!("has {} images; it may have {MAX_IMAGES}", wanted.len()),
        )]);
    }
    let wrong = |(at, image): (usize, &WantedImage)| {
        let error = image.reference.parse::<ImageReference>().err()?;
        Some(FieldError::new(format!("[{at}].reference"), error.to_string()))
    };
    let errors: Vec<_> = wanted.iter().enumerate().filter_map(wrong).collect();
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}
