//! The labs of the site (`lab` of the configuration): sizes, environment, storage, init containers, placement.

mod distinct;
pub(crate) mod env;
mod home;
mod init;
mod limits;
mod placement;
mod secrets;
mod sizes;
mod standard;
mod storage;
mod ui;

use wasmspawner_sdk::Section;
use wasmspawner_sdk::pod::{EnvValue, EnvVar, TimeLimits};

pub(crate) use home::Home;
pub(crate) use init::Init;
pub(crate) use placement::Placement;
pub(crate) use secrets::Secrets;
pub(crate) use sizes::{SIZE, Size, Sizes, cpus};
pub(crate) use standard::Standard;
pub(crate) use storage::Storage;
pub(crate) use ui::{FileBrowserRoot, Ui};

use crate::owned;

/// Keys of Nublado that the service itself decides about.
const OWNED: [(&str, &str); 9] = [
    ("application", "set `lab.argo_cd.instance` in the service's configuration"),
    ("files", "set `lab.files` in the service's configuration"),
    ("fsGroupPrimary", "set `lab.fs_group` in the service's configuration"),
    ("namespaceAnnotations", "set `lab.annotations` in the service's configuration"),
    (
        "namespacePrefix",
        "set `names.namespace` in the service's configuration, such as `nublado-{user_server}`",
    ),
    ("nss", "set `lab.user_files.passwd` and `lab.user_files.group` in the service's configuration"),
    (
        "pullSecret",
        "list it in `lab.secrets` of the service's configuration: {name: NAME, key: .dockerconfigjson, \
         pull_secret: true}",
    ),
    ("reconcileInterval", "set `limits.reconcile_every` in the service's configuration"),
    ("standardInitcontainers", "write `standardInithome`"),
];

/// The settings of every lab of the site, and the sizes that users choose from.
#[derive(Default)]
pub(crate) struct Lab {
    pub(crate) sizes: Sizes,
    pub(crate) env: Vec<EnvVar>,
    pub(crate) home: Home,
    pub(crate) storage: Storage,
    pub(crate) secrets: Secrets,
    pub(crate) init_containers: Vec<Init>,
    pub(crate) standard: Standard,
    pub(crate) ui: Ui,
    /// The directory of JupyterLab's configuration, and that of files about the running lab.
    pub(crate) directories: (String, String),
    pub(crate) placement: Placement,
    pub(crate) start_command: Vec<String>,
    pub(crate) time_limits: Option<TimeLimits>,
}

impl Lab {
    /// The value of a variable of all labs; empty if there is none.
    pub(crate) fn literal(&self, name: &str) -> &str {
        let value = self.env.iter().find(|variable| variable.name == name).map(|variable| &variable.value);
        match value {
            Some(EnvValue::Literal(value)) => value,
            _ => "",
        }
    }

    pub(crate) fn read(lab: &mut Section<'_>) -> Self {
        owned::ignore(lab, &OWNED);
        let home = Home::read(lab);
        let storage = Storage::read(lab, &home);
        let ui = Ui::read(lab);
        let directories = env::directories(lab);
        let standard = Standard::read(lab, ui.landing_page);
        if standard.has_startup() {
            storage.leave_startup_alone(lab);
        }
        Self {
            sizes: Sizes::read(lab),
            env: env::read(lab, (&directories.0, &directories.1)),
            init_containers: Init::read_all(lab, &storage),
            standard,
            ui,
            directories,
            secrets: Secrets::read(lab),
            placement: Placement::read(lab),
            start_command: env::start_command(lab),
            time_limits: limits::read(lab),
            home,
            storage,
        }
    }
}
