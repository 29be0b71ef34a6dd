//! The user that a claim belongs to.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::names::labels::USERNAME_ANNOTATION;

/// The annotation in which KubeSpawner writes the raw username.
pub const KUBESPAWNER_USERNAME_ANNOTATION: &str = "hub.jupyter.org/username";

/// Returns the user for whom a claim was created, according to its annotations. The claim's name is not enough: the
/// `safe` slug of one user (`ada-2dl`) can be the `escape` slug of another (`ada-l`).
pub fn owner(claim: &ObjectMeta) -> Option<&str> {
    let annotations = claim.annotations.as_ref()?;
    let written = [USERNAME_ANNOTATION, KUBESPAWNER_USERNAME_ANNOTATION];
    written.into_iter().find_map(|key| annotations.get(key)).map(String::as_str)
}

/// Returns the owner of a claim if that is not the user of `lab`, the metadata of one of a lab's objects. Everybody may
/// use a claim that names no owner.
pub fn other_owner<'a>(claim: &'a ObjectMeta, lab: &ObjectMeta) -> Option<&'a str> {
    owner(claim).filter(|user| owner(lab) != Some(user))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_annotation_wins_over_that_of_kubespawner() {
        let mut claim = ObjectMeta::default();
        assert_eq!(owner(&claim), None);
        let annotations = claim.annotations.get_or_insert_default();
        annotations.insert(KUBESPAWNER_USERNAME_ANNOTATION.into(), "ada-l".into());
        assert_eq!(owner(&claim), Some("ada-l"));
        claim.annotations.get_or_insert_default().insert(USERNAME_ANNOTATION.into(), "ada".into());
        assert_eq!(owner(&claim), Some("ada"));
    }
}
