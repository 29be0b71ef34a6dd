use crate::images::{ImageReference, Inventory};
use crate::policy::Image;

/// The result of pinning a lab's image. Moving the tag of a pinned image does not change the image of a new pod of the
/// lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Pinned {
    /// The image already had a digest, of its own or in its reference.
    Already,
    /// The digest comes from the inventory.
    ByInventory,
    /// The digest is not known, for this reason.
    Unknown(String),
}

/// Pins an image to the digest that its tag had when the registry was last asked.
pub(super) fn pin(image: &mut Image, inventory: &Inventory) -> Pinned {
    if image.digest.is_some() {
        return Pinned::Already;
    }
    let reference: ImageReference = match image.reference.parse() {
        Ok(reference) => reference,
        Err(error) => return Pinned::Unknown(error.to_string()),
    };
    if let Some(digest) = reference.digest {
        image.digest = Some(digest.to_string());
        return Pinned::Already;
    }
    match inventory.digest(&reference) {
        Some(digest) => {
            image.digest = Some(digest.to_string());
            Pinned::ByInventory
        }
        None => Pinned::Unknown(reason(&reference, inventory)),
    }
}

fn reason(reference: &ImageReference, inventory: &Inventory) -> String {
    let (repository, tag) = (&reference.repository, reference.tag());
    match inventory.repository(repository) {
        None => format!("{repository} is none of the repositories in `images.repositories`"),
        Some(images) => match (&images.problem, images.refreshed_at) {
            (Some(problem), _) => format!("{repository} cannot be read: {}", problem.message),
            (None, None) => format!("{repository} has not been read yet"),
            (None, Some(_)) => format!("{repository} has no image {tag:?}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use jiff::Timestamp;

    use super::*;
    use crate::images::{Refresh, RepositoryImages, Tag, resolved};
    use crate::values::digest::Digest;

    #[test]
    fn an_image_gets_the_digest_of_the_inventory_or_the_reason_why_not() {
        let (now, tag, digest) =
            (Timestamp::UNIX_EPOCH, Tag::parse("1.0").unwrap(), Digest::sha256(b"image"));
        let answers = BTreeMap::from([(tag.clone(), Refresh::Digest(digest))]);
        let images = resolved(&RepositoryImages::default(), vec![tag], &answers, None, now);
        let away = RepositoryImages::default().after_failure("it is away".into(), now);
        let inventory = Inventory::default()
            .with("lab".parse().unwrap(), images)
            .with("quay.io/away".parse().unwrap(), away)
            .with("quay.io/new".parse().unwrap(), RepositoryImages::default());
        let pinned = |reference: &str| {
            let mut image = Image { reference: reference.into(), ..Image::default() };
            match pin(&mut image, &inventory) {
                Pinned::Unknown(reason) => Err(reason),
                Pinned::Already | Pinned::ByInventory => Ok((image.digest.clone(), image.pinned())),
            }
        };
        for (reference, run) in [
            ("lab:1.0", format!("lab:1.0@{digest}")),
            ("docker.io/library/lab:1.0", format!("docker.io/library/lab:1.0@{digest}")),
            (&format!("lab@{digest}"), format!("lab@{digest}")),
            (&format!("quay.io/other:2@{digest}"), format!("quay.io/other:2@{digest}")),
        ] {
            assert_eq!(pinned(reference), Ok((Some(digest.to_string()), run)), "{reference}");
        }
        for (reference, expected) in [
            ("lab:2.0", "docker.io/library/lab has no image \"2.0\""),
            ("quay.io/away:1", "quay.io/away cannot be read: it is away"),
            ("quay.io/new:1", "quay.io/new has not been read yet"),
            ("quay.io/other:1", "quay.io/other is none of the repositories"),
            ("Lab", "\"Lab\" is not an image such as"),
        ] {
            let reason = pinned(reference).unwrap_err();
            assert!(reason.starts_with(expected), "{reason}");
        }
    }
}
