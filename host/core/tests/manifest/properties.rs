//! Properties of the objects that hold for every answer of a policy.

use proptest::prelude::*;
use wasmspawner_core::manifest::LabObject;
use wasmspawner_core::policy::{
    Customization, EmptyDirSource, EnvVar, Grants, InitContainer, InitRun, LabServer, Mount, NfsSource, Pair,
    Resources, SecurityProfile, Volume, VolumeSource,
};

use super::case::{Case, CaseAnswer, TOKEN};
use super::unprivileged::check_unprivileged;

/// A mixture of valid names, names of the service's own objects, and invalid names.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z][a-z0-9-]{0,8}[a-z0-9]",
        Just("notebook".to_owned()),
        Just("wasmspawner-nss".to_owned()),
        "\\PC{0,6}",
    ]
}

fn env_name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[A-Z_]{1,12}",
        Just("JUPYTERHUB_API_TOKEN".to_owned()),
        Just("DB_PASSWORD".to_owned()),
        "\\PC{0,6}"
    ]
}

fn profile() -> impl Strategy<Value = SecurityProfile> {
    prop_oneof![
        4 => Just(SecurityProfile::Restricted),
        1 => Just(SecurityProfile::Baseline),
        1 => Just(SecurityProfile::Privileged),
    ]
}

fn source() -> impl Strategy<Value = VolumeSource> {
    prop_oneof![
        Just(VolumeSource::EmptyDir(EmptyDirSource::default())),
        "/[a-z/.]{0,8}".prop_map(|path| VolumeSource::Nfs(NfsSource {
            server: "nfs".to_owned(),
            path,
            read_only: false
        })),
        "/[a-z]{0,4}".prop_map(VolumeSource::HostPath),
    ]
}

fn init() -> impl Strategy<Value = InitContainer> {
    (name(), profile(), any::<bool>()).prop_map(|(name, profile, once)| InitContainer {
        name,
        image: "busybox:1".to_owned(),
        command: Vec::new(),
        args: Vec::new(),
        env: Vec::new(),
        mounts: Vec::new(),
        resources: None,
        profile,
        run: if once { InitRun::UntilProvisioned } else { InitRun::Always },
        files: Vec::new(),
    })
}

fn patch() -> impl Strategy<Value = Option<String>> {
    prop_oneof![
        6 => Just(None),
        1 => Just(Some(r#"{"spec":{"hostNetwork":true,"containers":[{"name":"x","securityContext":{"privileged":true}}]}}"#.to_owned())),
        1 => "\\PC{0,12}".prop_map(Some),
    ]
}

prop_compose! {
    fn customization()(
        env in prop::collection::vec((env_name(), "\\PC{0,12}"), 0..4),
        labels in prop::collection::vec((name(), "[a-zA-Z0-9{} ]{0,6}"), 0..3),
        volumes in prop::collection::vec((name(), source()), 0..3),
        mounts in prop::collection::vec((name(), "/[a-z/.]{0,8}"), 0..2),
        init_containers in prop::collection::vec(init(), 0..3),
        cpu in prop::option::of(any::<u64>()),
        pod_patch in patch(),
    ) -> Customization {
        Customization {
            env: env.into_iter().map(|(name, value)| EnvVar::literal(name, value)).collect(),
            labels: labels.into_iter().map(|(name, value)| Pair::new(name, value)).collect(),
            volumes: volumes.into_iter().map(|(name, source)| Volume { name, source }).collect(),
            mounts: mounts
                .into_iter()
                .map(|(volume, path)| Mount { volume, path, sub_path: None, read_only: false })
                .collect(),
            init_containers,
            resources: Some(Resources { cpu_limit_millis: cpu, ..Resources::default() }),
            pod_patch,
            ..Customization::default()
        }
    }
}

fn case(customizations: Vec<Customization>, all_patches: bool) -> Case {
    let mut case = Case::read(
        "{identity: {username: ada, uid: 1000, gid: 1000}, lab: {image: 'lab:1'}, env: {JUPYTERHUB_API_TOKEN: hub-secret}}",
    );
    case.answers = customizations
        .into_iter()
        .enumerate()
        .map(|(at, customization)| {
            let mut answer = CaseAnswer {
                is_blueprint: false,
                policy: format!("p{at}"),
                grants: Grants::default(),
                customization,
                server: LabServer::default(),
                files: Vec::new(),
            };
            if all_patches {
                answer.grants.pod_patch = vec!["spec".to_owned(), "metadata".to_owned()];
            }
            answer
        })
        .collect();
    case
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn without_grants_no_answer_makes_a_pod_privileged(answers in prop::collection::vec(customization(), 0..3)) {
        if let Ok(spawn) = case(answers, false).compose() {
            check_unprivileged(&wasmspawner_core::manifest::build(&spawn)).map_err(TestCaseError::fail)?;
        }
    }

    #[test]
    fn a_granted_patch_does_not_make_a_pod_privileged(answers in prop::collection::vec(customization(), 0..2)) {
        if let Ok(spawn) = case(answers, true).compose() {
            check_unprivileged(&wasmspawner_core::manifest::build(&spawn)).map_err(TestCaseError::fail)?;
        }
    }

    #[test]
    fn tokens_are_in_secret_objects_only(answers in prop::collection::vec(customization(), 0..3)) {
        if let Ok(spawn) = case(answers, false).compose() {
            let objects = wasmspawner_core::manifest::build(&spawn);
            for object in objects.in_order().filter(|object| !matches!(object, LabObject::Secret(_))) {
                let text = object.to_value().to_string();
                prop_assert!(!text.contains(TOKEN) && !text.contains("hub-secret"), "{:?}", object);
            }
        }
    }
}
