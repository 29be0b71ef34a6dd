use wasmspawner_sdk::Section;
use wasmspawner_sdk::pod::{InitContainer, InitRun, SecurityProfile};

use crate::env;
use crate::size::read_resources;
use crate::storage::Storage;
use crate::template;

/// A container that ends before the lab starts.
pub(crate) struct Init(pub(crate) InitContainer);

impl Init {
    pub(crate) fn read(entry: &mut Section<'_>, storage: &Storage) -> Self {
        let profile = entry.parsed("profile", |text| match text {
            "restricted" => Ok(SecurityProfile::Restricted),
            "baseline" => Ok(SecurityProfile::Baseline),
            "privileged" => Ok(SecurityProfile::Privileged),
            _ => Err("must be restricted, baseline or privileged"),
        });
        let run = entry.parsed("run", |text| match text {
            "always" => Ok(InitRun::Always),
            "until-provisioned" => Ok(InitRun::UntilProvisioned),
            _ => Err("must be always or until-provisioned"),
        });
        Self(InitContainer {
            name: entry.required("name"),
            image: template::required(entry, "image"),
            command: template::list(entry, "command"),
            args: template::list(entry, "args"),
            env: env::read(entry, "env"),
            mounts: entry.list("mounts", |mount| storage.mount(mount)),
            resources: entry.section("resources", read_resources),
            profile: profile.unwrap_or(SecurityProfile::Restricted),
            run: run.unwrap_or(InitRun::Always),
        })
    }
}
