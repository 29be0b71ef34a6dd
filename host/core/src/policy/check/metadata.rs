use super::Findings;
use crate::names::labels::MANAGED_BY_LABEL;
use crate::names::{LabelKey, LabelValue};
use crate::policy::Pair;

/// Prefix of the labels and annotations by which the service recognizes its own objects.
const OWN_PREFIX: &str = "wasmspawner.io/";

/// Largest size of all annotations of an object together, in bytes (Kubernetes' `TotalAnnotationSizeLimitB`).
const ANNOTATION_BYTES: usize = 256 * 1024;

pub(super) fn labels(labels: &[Pair], found: &mut Findings) {
    pairs("labels", labels, found, |pair, found| {
        own(pair, found);
        found.parsed("value", LabelValue::parse(pair.value.as_str()));
    });
}

pub(super) fn annotations(annotations: &[Pair], found: &mut Findings) {
    pairs("annotations", annotations, found, own);
    let bytes: usize = annotations.iter().map(|pair| pair.name.len() + pair.value.len()).sum();
    found.refuse_if(bytes > ANNOTATION_BYTES, "annotations", "are larger than 256 KiB together");
}

/// Checks labels that another object must have, such as a node or a volume.
pub(super) fn selector(field: &str, selector: &[Pair], found: &mut Findings) {
    pairs(field, selector, found, |pair, found| {
        found.parsed("value", LabelValue::parse(pair.value.as_str()));
    });
}

fn pairs(field: &str, pairs: &[Pair], found: &mut Findings, mut check: impl FnMut(&Pair, &mut Findings)) {
    found.each(field, pairs, ("name", |pair| pair.name.clone()), |pair, found| {
        found.parsed("name", LabelKey::parse(pair.name.as_str()));
        check(pair, found);
    });
}

fn own(pair: &Pair, found: &mut Findings) {
    let own = pair.name.starts_with(OWN_PREFIX) || pair.name == MANAGED_BY_LABEL;
    found.refuse_if(own, "name", "is the service's own");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Customization, check_customization};

    #[test]
    fn annotations_may_have_256_kib_together() {
        for (value, accepted) in [(ANNOTATION_BYTES / 2 - 4, true), (ANNOTATION_BYTES / 2 - 3, false)] {
            let annotations = ["note", "more"].map(|name| Pair::new(name, "x".repeat(value))).to_vec();
            let asked = Customization { annotations, ..Customization::default() };
            assert_eq!(check_customization(&asked).is_empty(), accepted, "{value}");
        }
    }
}
