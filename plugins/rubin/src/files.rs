//! The files that Nublado's images read when a lab starts.

use serde_json::{Value, json};
use wasmspawner_sdk::lab_files::TextFile;
use wasmspawner_sdk::pod::Resources;
use wasmspawner_sdk::{Error, Options, User, hooks, host};

use crate::RubinPolicy;
use crate::form::{DEBUG, IMAGE, RESET};
use crate::lab::{FileBrowserRoot, Size, cpus};
use crate::tag::Tag;

/// What JupyterLab shows, and how large the lab is.
const LAB_CONFIG: &str = "/etc/nublado/config/lab-config.json";

/// Where the site's other services are, as its Repertoire says.
const DISCOVERY: &str = "/etc/nublado/discovery/v1.json";

/// The name of the site's data with the answer of Repertoire.
const DISCOVERY_DATA: &str = "discovery";

impl hooks::LabFiles for RubinPolicy {
    fn lab_files(&self, user: &User, _: &str, options: &Options) -> Result<Vec<TextFile>, Error> {
        let size = self.lab.sizes.chosen(user, options)?;
        let home = self.lab.home.of(&user.name)?;
        let mut files = Vec::new();
        if self.lab.standard.has_startup() {
            let config = self.lab_config(size, &home, options);
            files.push(TextFile::new(LAB_CONFIG, format!("{config:#}\n")));
        }
        files.extend(host::data(DISCOVERY_DATA).map(|data| TextFile::new(DISCOVERY, data.json)));
        Ok(files)
    }
}

impl RubinPolicy {
    fn lab_config(&self, size: &Size, home: &str, options: &Options) -> Value {
        let (config_dir, runtime_dir) = &self.lab.directories;
        let ui = &self.lab.ui;
        let image = options.text(IMAGE).map(|tag| self.chosen_image(tag)).unwrap_or_default();
        let (root, home) = match ui.file_browser_root {
            FileBrowserRoot::Home => ("home", ""),
            FileBrowserRoot::Root => ("root", home.trim_start_matches('/')),
        };
        json!({
            "container_size": size.label,
            "debug": options.flag(DEBUG),
            // The menu of queries has been called that of jobs since 2026.
            "enable_jobs_menu": ui.queries_menu,
            "enable_landing_page": ui.landing_page,
            "enable_queries_menu": ui.queries_menu,
            "enable_tutorials_menu": ui.tutorials_menu,
            "file_browser_root": root,
            "home_relative_to_file_browser_root": home,
            "image": {"description": image.description, "digest": image.digest, "spec": image.reference},
            "jupyterlab_config_dir": config_dir,
            "repertoire_base_url": self.lab.literal("REPERTOIRE_BASE_URL"),
            "reset_user_env": options.flag(RESET),
            "resources": resources(&size.resources),
            "runtime_mounts_dir": runtime_dir,
            "statusbar": image.status(),
        })
    }

    /// What is known of the image with this tag.
    pub(crate) fn chosen_image(&self, tag: &str) -> ChosenImage {
        let inventory = self.offer.inventory(host::images(&self.offer.repository));
        let known = inventory.tagged(tag);
        let digest = known.and_then(|image| image.digest.clone()).unwrap_or_default();
        let reference = self.offer.reference(tag);
        ChosenImage {
            description: known.map_or_else(|| Tag::parse(tag).name, |image| image.tag.name.clone()),
            reference: if digest.is_empty() { reference } else { format!("{reference}@{digest}") },
            digest,
        }
    }
}

/// The image of a lab, as it is shown in it.
#[derive(Default)]
pub(crate) struct ChosenImage {
    description: String,
    /// `sha256:...`, or empty while the registry has not answered.
    digest: String,
    /// With the digest, if that is known.
    pub(crate) reference: String,
}

impl ChosenImage {
    /// The text of JupyterLab's status bar, such as `Weekly 2025_08 [sha256:a...] (sciplat-lab:w_2025_08) Nublado Lab
    /// Aspect`.
    fn status(&self) -> String {
        let image = self.reference.split('@').next().unwrap_or_default();
        let image = image.rsplit('/').next().unwrap_or_default();
        let digest: String = self.digest.chars().take(8).collect();
        let digest = if digest.is_empty() { digest } else { format!(" [{digest}...]") };
        format!("{}{digest} ({image}) Nublado Lab Aspect", self.description)
    }
}

fn resources(resources: &Resources) -> Value {
    json!({
        "limits": {"cpu": cpus(resources.cpu_limit_millis), "memory": resources.memory_limit_bytes},
        "requests": {"cpu": cpus(resources.cpu_request_millis), "memory": resources.memory_request_bytes},
    })
}
