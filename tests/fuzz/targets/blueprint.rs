//! A blueprint that the site has not written.

#![no_main]
#![allow(clippy::panic, reason = "a finding is reported by panicking")]

use libfuzzer_sys::fuzz_target;
use wasmspawner_core::custom_resource::blueprint::{ForeignBlueprint, Library};
use wasmspawner_core::names::ObjectName;
use wasmspawner_core::policy::{ChainAnswer, Grants, SecurityProfile, VolumeSource};

fuzz_target!(|text: &str| {
    let Ok(spec) = serde_saphyr::from_str(text) else { return };
    let Ok(name) = ObjectName::parse("mine") else { panic!("a name") };
    let Ok(foreign) = ForeignBlueprint::new(name, spec) else { return };
    // The site has none that it could extend.
    let Ok(Some(resolved)) = Library::default().resolve_foreign(&foreign, &[]) else { return };
    let answer = ChainAnswer::of_blueprint(&resolved);
    assert_eq!(answer.grants, Grants::default());
    let asked = answer.customization;
    assert!(asked.volumes.iter().all(|volume| matches!(volume.source, VolumeSource::EmptyDir(_))));
    assert!(asked.init_containers.iter().all(|init| init.profile == SecurityProfile::Restricted));
    assert!(asked.init_containers.iter().all(|init| init.image.starts_with("wasmspawner.io/")));
    assert!(asked.command.is_none() && asked.pod_patch.is_none() && asked.environment_class.is_none());
});
