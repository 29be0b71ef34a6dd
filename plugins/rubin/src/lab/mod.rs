//! The labs of the site (`lab` of the configuration): sizes, environment, storage, init containers, placement.

mod distinct;
pub(crate) mod env;
mod home;
mod init;
mod limits;
mod placement;
mod secrets;
mod sizes;
mod storage;

use wasmspawner_sdk::Section;
use wasmspawner_sdk::pod::{EnvVar, TimeLimits};

pub(crate) use home::Home;
pub(crate) use init::Init;
pub(crate) use placement::Placement;
pub(crate) use secrets::Secrets;
pub(crate) use sizes::{SIZE, Sizes};
pub(crate) use storage::Storage;

use crate::owned;

/// Keys of Nublado that the service itself decides about, and those that concern files of Nublado's own images.
const OWNED: [(&str, &str); 15] = [
    ("application", "set `lab.argo_cd.instance` in the service's configuration"),
    ("enableCstLandingPage", LAB_CONFIG),
    ("enableLandingPage", LAB_CONFIG),
    ("enableQueriesMenu", LAB_CONFIG),
    ("enableRubinQueryMenu", LAB_CONFIG),
    ("enableTutorialsMenu", LAB_CONFIG),
    ("fileBrowserRoot", LAB_CONFIG),
    ("files", "set `lab.files` in the service's configuration"),
    ("fsGroupPrimary", "the service sets the group of volumes where it is needed"),
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

const LAB_CONFIG: &str =
    "there is no file lab-config.json in labs; set the variables that the image reads in `env`";

/// The settings of every lab of the site, and the sizes that users choose from.
#[derive(Default)]
pub(crate) struct Lab {
    pub(crate) sizes: Sizes,
    pub(crate) env: Vec<EnvVar>,
    pub(crate) home: Home,
    pub(crate) storage: Storage,
    pub(crate) secrets: Secrets,
    pub(crate) init_containers: Vec<Init>,
    pub(crate) placement: Placement,
    pub(crate) start_command: Vec<String>,
    pub(crate) time_limits: Option<TimeLimits>,
}

impl Lab {
    pub(crate) fn read(lab: &mut Section<'_>) -> Self {
        owned::ignore(lab, &OWNED);
        let home = Home::read(lab);
        let storage = Storage::read(lab, &home);
        Self {
            sizes: Sizes::read(lab),
            env: env::read(lab),
            init_containers: Init::read_all(lab, &storage, &home),
            secrets: Secrets::read(lab),
            placement: Placement::read(lab),
            start_command: env::start_command(lab),
            time_limits: limits::read(lab),
            home,
            storage,
        }
    }
}
