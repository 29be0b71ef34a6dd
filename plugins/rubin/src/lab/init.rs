use wasmspawner_sdk::pod::{EnvVar, InitContainer, Resources, SecurityProfile};
use wasmspawner_sdk::{Section, User};

use super::distinct::Distinct;
use super::storage::Storage;

/// The beginning of the names of Nublado's own containers, which those of the site do not have.
pub(super) const OF_NUBLADO: &str = "nublado-std-";

/// A container that ends before the lab starts, such as one that creates homes.
#[derive(Clone)]
pub(crate) struct Init(pub(super) InitContainer);

impl Init {
    pub(super) fn read_all(lab: &mut Section<'_>, storage: &Storage) -> Vec<Self> {
        let mut names = Distinct::default();
        lab.list("initContainers", |init| {
            let read = Self::read(init, storage);
            names.add(init, "name", &read.0.name);
            if read.0.name.starts_with(OF_NUBLADO) {
                init.problem("name", "is the name of a container of Nublado's own; choose another");
            }
            read
        })
    }

    fn read(init: &mut Section<'_>, storage: &Storage) -> Self {
        let name: String = init.required("name");
        if !init.has("image") {
            init.problem("image", "is missing");
        }
        let image = init.section("image", image).unwrap_or_default();
        let privileged: bool = init.or_default("privileged");
        Self(InitContainer {
            command: init.or_default("command"),
            mounts: init.list("volumeMounts", |mount| storage.mount(mount)),
            profile: if privileged { SecurityProfile::Privileged } else { SecurityProfile::Restricted },
            ..InitContainer::new(name, image)
        })
    }

    /// The container for one lab. It has the variables of the lab, and the path, uid and gid of the home that it
    /// creates.
    pub(crate) fn of(&self, user: &User, home: &str, env: &[EnvVar], resources: &Resources) -> InitContainer {
        let number = |name: &str, number: Option<u32>| Some(EnvVar::literal(name, number?.to_string()));
        let own = [
            Some(EnvVar::literal("NUBLADO_HOME", home)),
            number("NUBLADO_UID", user.uid),
            number("NUBLADO_GID", user.gid),
        ];
        let mut all = Vec::new();
        for variable in env.iter().cloned().chain(own.into_iter().flatten()).chain(self.0.env.iter().cloned())
        {
            super::env::set(&mut all, variable);
        }
        InitContainer { env: all, resources: Some(resources.clone()), ..self.0.clone() }
    }
}

/// Reads an image.
pub(super) fn image(image: &mut Section<'_>) -> String {
    let policy: Option<String> = image.optional("pullPolicy");
    if policy.is_some_and(|policy| policy != "IfNotPresent") {
        image.warning(
            "pullPolicy",
            "has no effect; `lab.image_pull_policy` of the service's configuration has",
        );
    }
    let (repository, tag): (String, String) = (image.required("repository"), image.required("tag"));
    format!("{repository}:{tag}")
}
