use wasmspawner_sdk::pod::{EnvVar, InitContainer, Mount, Resources, SecurityProfile};
use wasmspawner_sdk::{Section, User};

use super::distinct::Distinct;
use super::home::Home;
use super::storage::Storage;

/// A container that ends before the lab starts, such as one that creates homes.
pub(crate) struct Init(InitContainer);

/// The name of the container that makes homes.
const INITHOME: &str = "inithome";

/// The image of that container, unless `inithomeImage` names another: that of Nublado itself.
const INITHOME_IMAGE: &str = "ghcr.io/lsst-sqre/nublado:15.1.0";

impl Init {
    pub(super) fn read_all(lab: &mut Section<'_>, storage: &Storage, home: &Home) -> Vec<Self> {
        let mut names = Distinct::default();
        let image = lab.section("inithomeImage", image);
        let is_standard: bool = lab.or_default("standardInithome");
        let standard = is_standard.then(|| Self::inithome(image, storage.home_mounts(home)));
        let listed = lab.list("initContainers", |init| {
            let read = Self::read(init, storage);
            names.add(init, "name", &read.0.name);
            if is_standard && read.0.name == INITHOME {
                init.problem(
                    "name",
                    "is the container of `standardInithome`, too; set that to false, or remove this one",
                );
            }
            read
        });
        standard.into_iter().chain(listed).collect()
    }

    /// The container that makes homes as root (`standardInithome`), the first one.
    fn inithome(image: Option<String>, mounts: Vec<Mount>) -> Self {
        Self(InitContainer {
            command: ["nublado", "inithome"].map(String::from).to_vec(),
            mounts,
            profile: SecurityProfile::Privileged,
            ..InitContainer::new(INITHOME, image.unwrap_or_else(|| INITHOME_IMAGE.to_owned()))
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
        InitContainer {
            env: env.iter().cloned().chain(own.into_iter().flatten()).collect(),
            resources: Some(resources.clone()),
            ..self.0.clone()
        }
    }
}

fn image(image: &mut Section<'_>) -> String {
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
