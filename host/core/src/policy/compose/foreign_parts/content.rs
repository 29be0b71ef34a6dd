//! Finds the answers that decide the content of volumes in containers that need a grant. Such a container may run the
//! files that it finds there.
//!
//! Volumes are compared by their storage. A second volume with the same claim, or with a parent of an NFS directory, is
//! as good as the first.

use super::chain::{Chain, Part, PrivilegedMount};
use super::storage::Storage;
use crate::config::grants::{Grants, Need};
use crate::policy::{ClaimSource, FieldError, VolumeSource};

/// A setting that decides the content of a volume.
struct Decision<'a> {
    field: String,
    what: Decided<'a>,
}

/// The part of a volume that a setting decides.
enum Decided<'a> {
    /// The definition of the volume with this name.
    Volume(&'a str),
    /// The creation of the claim, and so the choice of its storage.
    NewClaim(Storage),
    /// The files in the storage, written through the volume with this name.
    Files { volume: &'a str, storage: Storage, by: Writer },
}

/// The answer that mounts the volume to write.
#[derive(Clone, Copy)]
enum Writer {
    /// The answer itself.
    Itself,
    /// Another answer, which mounts a volume that this one has decided.
    Another,
}

/// Returns the errors of an answer that decides the content of volumes in the privileged containers of other authors
/// without having their grants.
pub(super) fn errors(own: &Part<'_>, chain: &Chain<'_>) -> Vec<FieldError> {
    let author = &own.answer.author;
    let mut foreign = chain.privileged_mounts();
    foreign.retain(|mount| mount.author != author && !own.answer.grants.cover(&need(mount)));
    let error = |decision: Decision<'_>| {
        let Decision { field, what } = decision;
        let (mount, reason) = foreign.iter().find_map(|mount| Some((mount, what.reaches(mount, chain)?)))?;
        let grant = mount.grant;
        let message =
            format!("{author}: `{field}` needs the grant `{grant}`: {reason}, or give the policy the grant");
        Some(FieldError::new(field, message))
    };
    decisions(own, chain).into_iter().filter_map(error).collect()
}

/// Returns the grant that a policy needs to decide the content of a container's mount.
fn need(mount: &PrivilegedMount<'_>) -> Need {
    Need { field: String::new(), grant: mount.grant, wanted: None }
}

/// Returns everything that an answer decides about volumes: the sources that it sets, the claims that it creates, and
/// the volumes to which it writes or causes another answer to write.
fn decisions<'b>(own: &'b Part<'_>, chain: &'b Chain<'_>) -> Vec<Decision<'b>> {
    let mut decisions = Vec::new();
    for (at, volume) in own.answer.customization.volumes.iter().enumerate() {
        let name = volume.name.as_str();
        if chain.source_of(name).is_some_and(|(part, _)| part.is(own)) {
            decisions.extend(of_volume(&format!("volumes[{at}].source"), name, own, chain));
        }
        if let VolumeSource::Claim(ClaimSource { claim_name, create: Some(_), .. }) = &volume.source {
            let field = format!("volumes[{at}].source.claim.create");
            decisions.push(Decision { field, what: Decided::NewClaim(Storage::Claim(claim_name.clone())) });
        }
    }
    for name in own.patched_volumes() {
        decisions.extend(of_volume("pod_patch", name, own, chain));
    }
    for mount in own.mounted_volumes().into_iter().filter(|mount| !mount.read_only) {
        decisions.extend(files(&mount.field, mount.volume, Writer::Itself, chain));
    }
    decisions
}

/// Returns the decisions of an answer that defines a volume: the volume itself, and the files that other answers write
/// to it.
fn of_volume<'b>(field: &str, volume: &'b str, own: &Part<'_>, chain: &Chain<'_>) -> Vec<Decision<'b>> {
    let mut decisions = vec![Decision { field: field.to_owned(), what: Decided::Volume(volume) }];
    let others = chain.parts.iter().filter(|part| !part.is(own));
    let is_written =
        others.flat_map(Part::mounted_volumes).any(|mount| mount.volume == volume && !mount.read_only);
    if is_written {
        decisions.extend(files(field, volume, Writer::Another, chain));
    }
    decisions
}

/// Returns the decisions about the files that are written through a volume. There are none if it is read only.
fn files<'b>(field: &str, volume: &'b str, by: Writer, chain: &Chain<'_>) -> Vec<Decision<'b>> {
    let written = chain.storage_of(volume).into_iter().filter(|of| !of.read_only);
    written
        .map(|of| Decision {
            field: field.to_owned(),
            what: Decided::Files { volume, storage: of.storage, by },
        })
        .collect()
}

impl Decided<'_> {
    /// Describes how the decision reaches the content of the container's mount, and what to do instead.
    fn reaches(&self, mount: &PrivilegedMount<'_>, chain: &Chain<'_>) -> Option<String> {
        let PrivilegedMount { author, container, volume: mounted, .. } = mount;
        let mut mounted_storage = chain.storage_of(mounted).into_iter().map(|of| of.storage);
        match self {
            Self::Volume(volume) => (volume == mounted).then(|| {
                format!(
                    "it decides what the volume `{volume}` is, which the container `{container}` of {author} mounts; \
                     choose another name"
                )
            }),
            Self::NewClaim(claim) => mounted_storage.any(|storage| storage == *claim).then(|| {
                format!(
                    "it creates {claim}, which the container `{container}` of {author} mounts as the volume \
                     `{mounted}`; leave out `create`"
                )
            }),
            Self::Files { volume, storage, by } => mounted_storage.find_map(|mounted_storage| {
                let shared = mounted_storage.shared_with(storage)?;
                if lab_writes_anyway(shared, mount, chain) {
                    return None;
                }
                let (who, instead) = match by {
                    Writer::Itself => ("it writes", "mount it read only"),
                    Writer::Another => ("others write", "make it read only"),
                };
                Some(format!(
                    "through the volume `{volume}` {who} to {shared}, which the container `{container}` of {author} \
                     mounts as the volume `{mounted}`; {instead}"
                ))
            }),
        }
    }
}

/// True if policies with the grant let the lab, and so its user, write to the storage.
fn lab_writes_anyway(storage: &Storage, mount: &PrivilegedMount<'_>, chain: &Chain<'_>) -> bool {
    let need = need(mount);
    let granted = |grants: &Grants| grants.cover(&need);
    let granted_parts = chain.parts.iter().filter(|part| granted(&part.answer.grants));
    let mut mounts = granted_parts.flat_map(|part| &part.answer.customization.mounts);
    mounts.any(|mount| {
        let deciders = chain.deciders_of(&mount.volume);
        !mount.read_only
            && deciders.iter().all(|part| granted(&part.answer.grants))
            && chain.storage_of(&mount.volume).iter().any(|of| !of.read_only && of.storage.contains(storage))
    })
}
