//! The policy for sites without code of their own. Its configuration (`schema.json`) defines sizes and images or
//! KubeSpawner's profiles, environment, volumes, init containers, quotas, and the users who may start labs.
//!
//! Strings of the configuration may contain the service's template fields. The service expands them in names and paths
//! of storage. This policy expands all others (`template`), before it adds values of users.

mod access;
mod children;
mod env;
mod environment;
mod extra;
mod form;
mod image;
mod images;
mod init;
mod lab_server;
mod menu;
mod placement;
mod pod;
mod profile;
mod quota;
mod size;
mod storage;
mod template;
mod wanted;
mod workloads;

use wasmspawner_sdk::pod::TimeLimits;
use wasmspawner_sdk::{Info, Policy, Section, export};

use access::Access;
use env::Variable;
use environment::Environments;
use extra::Extra;
use images::Images;
use init::Init;
use menu::Menu;
use placement::Placement;
use profile::{PROFILE, Profiles};
use quota::Quotas;
use size::Size;
use storage::Storage;
use workloads::Rule;

/// The policy with its configuration.
pub struct DefaultPolicy {
    images: Images,
    sizes: Menu<Size>,
    profiles: Profiles,
    /// The name of the lab's container.
    container: String,
    /// True if nodes pull the images of the profiles before anyone asks for them.
    prepull_profiles: bool,
    extras: Vec<Extra>,
    env: Vec<Variable>,
    storage: Storage,
    init_containers: Vec<Init>,
    placement: Placement,
    labels: Vec<(String, String)>,
    annotations: Vec<(String, String)>,
    command: Option<Vec<String>>,
    args: Option<Vec<String>>,
    working_dir: Option<String>,
    environments: Environments,
    time_limits: Option<TimeLimits>,
    quotas: Quotas,
    access: Access,
    workloads: Vec<Rule>,
}

impl Policy for DefaultPolicy {
    fn info() -> Info {
        Info {
            name: "default".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            description: "Sizes, images, volumes and quotas from configuration alone".into(),
        }
    }

    fn config_schema() -> &'static str {
        include_str!("../schema.json")
    }

    fn from_config(config: &mut Section<'_>) -> Self {
        let images = Images::read(config);
        let sizes = Menu::read(config, "sizes", "default_size", Size::read);
        let storage = Storage::read(config);
        let init_containers = config.list("init_containers", |init| Init::read(init, &storage));
        let extras = Extra::read_all(config);
        let taken: Vec<_> = extras.iter().map(Extra::name).chain([PROFILE]).collect();
        let profiles = Profiles::read(config, &storage, &taken);
        let menus = !images.is_empty() || !sizes.is_empty();
        if menus && !profiles.is_empty() {
            let problem =
                "replaces `images`, `image_repositories` and `sizes`; remove either it or all of them";
            config.problem("profile_list", problem);
        }
        let prepull_profiles: Option<bool> = config.optional("prepull_profiles");
        if prepull_profiles.is_some() && !config.has("profile_list") && !config.has("kubespawner") {
            config.problem("prepull_profiles", "needs `profile_list`; write that too, or remove this key");
        }
        Self {
            images,
            sizes,
            profiles,
            container: config.optional("container").unwrap_or_else(|| "notebook".into()),
            prepull_profiles: prepull_profiles.unwrap_or_default(),
            extras,
            env: env::read(config, "env"),
            init_containers,
            storage,
            placement: Placement::read(config),
            labels: template::pairs(config, "labels"),
            annotations: template::pairs(config, "annotations"),
            command: config.optional("command"),
            args: config.optional("args"),
            working_dir: config.template("working_dir"),
            environments: Environments::read(config),
            time_limits: config.section("time_limits", |limits| TimeLimits {
                spawn_seconds: limits.optional("spawn_seconds"),
                delete_seconds: limits.optional("delete_seconds"),
            }),
            quotas: Quotas::read(config),
            access: Access::read(config),
            workloads: Rule::read_all(config),
        }
    }
}

export!(DefaultPolicy: form, quota, authorize, inject, build_pod, lab_server, images);

#[cfg(test)]
mod tests;
