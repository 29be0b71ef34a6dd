use wasmspawner_sdk::Section;
use wasmspawner_sdk::pod::{EnvVar, InitContainer, Mount, SecurityProfile};

use super::init::{self, Init, OF_NUBLADO};
use super::{Home, Storage};

/// The image of Nublado itself, which has the programs of its own containers, unless `nubladoImage` names another.
const IMAGE: &str = "ghcr.io/lsst-sqre/nublado:15.1.0";

/// The containers that Nublado adds to the site's own, each of them a command of its own image.
#[derive(Default)]
pub(crate) struct Standard {
    image: String,
    /// Makes homes as root, before all others.
    inithome: bool,
    /// Puts the page with which JupyterLab opens into the home.
    landing_page: bool,
    /// Prepares the home, and decides how JupyterLab starts; the last one.
    startup: bool,
}

impl Standard {
    pub(super) fn read(lab: &mut Section<'_>, landing_page: bool) -> Self {
        let image = lab.section("nubladoImage", init::image).unwrap_or_else(|| IMAGE.to_owned());
        let inithome = lab.or_default("standardInithome");
        Self { image, inithome, landing_page, startup: lab.optional("standardStartup").unwrap_or(true) }
    }

    /// True if the lab starts with what the container `nublado startup` has written.
    pub(crate) fn has_startup(&self) -> bool {
        self.startup
    }

    /// The container that makes homes (`standardInithome`). It has nothing but the homes.
    pub(crate) fn inithome(&self, storage: &Storage, home: &Home) -> Option<Init> {
        let container = InitContainer {
            mounts: storage.home_mounts(home),
            profile: SecurityProfile::Privileged,
            ..self.container("inithome")
        };
        self.inithome.then_some(Init(container))
    }

    /// The containers after those of the site. They have what the lab has: its mounts, and those that start it also its secrets.
    pub(crate) fn last(&self, mounts: &[Mount], secrets: &[EnvVar]) -> Vec<Init> {
        let like_the_lab = |command, env: &[EnvVar]| {
            Init(InitContainer { mounts: mounts.to_vec(), env: env.to_vec(), ..self.container(command) })
        };
        let landing_page = self.landing_page.then(|| like_the_lab("landingpage", &[]));
        let startup = self.startup.then(|| like_the_lab("startup", secrets));
        landing_page.into_iter().chain(startup).collect()
    }

    fn container(&self, command: &str) -> InitContainer {
        InitContainer {
            command: vec!["nublado".to_owned(), command.to_owned()],
            ..InitContainer::new(format!("{OF_NUBLADO}{command}"), &self.image)
        }
    }
}
