//! A policy for `wasmspawner:policy@0.1.0` that uses all of its hooks, types and imports. Tests load `policy.wasm`, which
//! was built once from this file, so that policies of sites still run after the service knows newer versions.
//!
//! Most answers repeat what the policy was told. The username chooses refusals: `denied`, `invalid`, `later`, `internal`.
#![cfg(target_arch = "wasm32")]
#![allow(missing_docs, unsafe_code, clippy::pedantic, reason = "generated bindings")]

wit_bindgen::generate!({ path: "wit", world: "full-policy" });

use exports::wasmspawner::policy::build_pod::{
    AccessMode, AffinityPreset, ClaimReclaim, ClaimSource, ClaimTemplate, Customization, EmptyDirSource,
    EnvValue, EnvVar, InitContainer, InitRun, KeyRef, Mount, NfsSource, ObjectSource, ResourceClaim,
    Resources, SecurityProfile, TaintEffect, TimeLimits, Toleration, TolerationOperator, Volume,
    VolumeSource,
};
use exports::wasmspawner::policy::form::{
    Choice, ChoiceInput, Condition, Field, FieldKind, Form, FormContext, NumberInput, TextInput,
};
use exports::wasmspawner::policy::images::{Class, Entry, ImageMenu, Place, WantedImage};
use exports::wasmspawner::policy::lab_server::{Probe, Settings};
use exports::wasmspawner::policy::quota::{Quota, Usage};
use exports::wasmspawner::policy::{
    authorize, build_pod, config, events, form, images, inject, lab_server, metadata, prepare, quota,
};
use wasmspawner::policy::host;
use wasmspawner::policy::types::{Denial, Error, FieldError, Image, OptionEntry, Pair, User};

struct Published;

export!(Published);

impl metadata::Guest for Published {
    fn describe() -> metadata::Info {
        metadata::Info {
            name: "published".into(),
            version: "0.1.0".into(),
            description: "Uses every hook, type and import of wasmspawner:policy@0.1.0".into(),
        }
    }

    fn config_schema() -> String {
        "true".into()
    }
}

impl config::Guest for Published {
    fn validate(config_json: String) -> Result<Vec<String>, Vec<FieldError>> {
        if config_json == host::config() {
            Ok(vec![format!("the configuration is {config_json}")])
        } else {
            Err(vec![field_error("", "host.config differs")])
        }
    }
}

impl form::Guest for Published {
    fn render(context: FormContext) -> Result<Form, Error> {
        refusal(&context.user)?;
        if context.user.name == "html" {
            return Ok(Form::Html(format!("<p>{}</p>", context.server)));
        }
        Ok(Form::Fields(fields(&context)))
    }

    fn parse(
        submission: Vec<OptionEntry>,
        context: FormContext,
    ) -> Result<Vec<OptionEntry>, Vec<FieldError>> {
        if context.user.name == "invalid" {
            return Err(submission.iter().map(|entry| field_error(&entry.name, "is wrong")).collect());
        }
        Ok(submission)
    }
}

fn fields(context: &FormContext) -> Vec<Field> {
    let choices = |default: Option<&str>| ChoiceInput {
        choices: vec![Choice {
            value: "small".into(),
            label: "Small".into(),
            description: Some("One CPU".into()),
        }],
        default: default.map(Into::into),
    };
    let kinds = [
        FieldKind::Select(choices(None)),
        FieldKind::Radio(choices(Some("small"))),
        FieldKind::Checkbox(true),
        FieldKind::Text(TextInput {
            default: "main".into(),
            placeholder: Some("branch".into()),
            max_length: Some(40),
            pattern: Some("[a-z]+".into()),
        }),
        FieldKind::Number(NumberInput {
            default: 1.5,
            minimum: Some(0.5),
            maximum: Some(8.0),
            step: Some(0.5),
        }),
    ];
    let field = |(number, kind)| Field {
        name: format!("field{number}"),
        label: format!("{context:?}"),
        help: Some("Help".into()),
        group: Some("Group".into()),
        required: number == 0,
        visible_when: (number > 2)
            .then(|| Condition { field: "field1".into(), values: vec!["small".into()] }),
        kind,
    };
    kinds.into_iter().enumerate().map(field).collect()
}

impl quota::Guest for Published {
    fn limits(user: User, usage: Usage) -> Result<Quota, Error> {
        refusal(&user)?;
        Ok(Quota {
            cpu_millis: Some(1500),
            memory_bytes: Some(3 << 30),
            storage_bytes: Some(5 << 30),
            pods: user.uid,
            labs: Some(usage.labs + 1),
            extended: vec![("nvidia.com/gpu".into(), 2)],
        })
    }
}

impl authorize::Guest for Published {
    fn decide(request: authorize::Request) -> Result<authorize::Verdict, Error> {
        refusal(&request.user)?;
        match request.action {
            authorize::Action::Spawn => Ok(authorize::Verdict::Allow),
            _ => Ok(authorize::Verdict::Deny(denial(format!("{request:?}")))),
        }
    }
}

impl prepare::Guest for Published {
    fn run() {
        host::log(host::Level::Info, "prepares");
    }
}

impl inject::Guest for Published {
    fn decide(request: inject::Request) -> Result<inject::Verdict, Error> {
        refusal(&request.user)?;
        if request.workload.name == "closed" {
            return Ok(inject::Verdict::Deny(denial(format!("{request:?}"))));
        }
        let access = |volume: &inject::Volume| inject::VolumeAccess {
            volume: volume.name.clone(),
            path: format!("/of-the-workload/{}", volume.source),
            sub_path: Some("part".into()),
            read_only: true,
        };
        Ok(inject::Verdict::Allow(inject::Access {
            volumes: request.workload.volumes.iter().map(access).collect(),
            environment_of: request.workload.containers.first().map(|container| container.name.clone()),
        }))
    }
}

impl events::Guest for Published {
    fn on_event(event: events::Event) {
        host::log(host::Level::Info, &format!("{event:?} {:?}", host::child()));
    }
}

impl lab_server::Guest for Published {
    fn decide(request: lab_server::Request) -> Result<Settings, Error> {
        refusal(&request.user)?;
        let probe = match request.server.as_str() {
            "tcp" => Probe::Tcp,
            "none" => Probe::None,
            other => Probe::Http(format!("/{other}")),
        };
        Ok(Settings { port: Some(8000), probe: Some(probe) })
    }
}

impl images::Guest for Published {
    fn menu(request: images::Request) -> Result<Option<ImageMenu>, Error> {
        refusal(&request.user)?;
        if request.server == "no-menu" {
            return Ok(None);
        }
        let known = host::images("registry.example/lab");
        let places = [Place::Automatic, Place::First, Place::Rest, Place::Hidden(format!("{known:?}"))];
        let entry = |(number, place): (usize, _)| Entry {
            name: format!("entry{number}"),
            reference: format!("registry.example/lab:{number}"),
            digest: Some(format!("sha256:{}", number.to_string().repeat(64))),
            label: format!("{request:?}"),
            description: Some("Description".into()),
            group: Some("Group".into()),
            recommended: number == 1,
            place,
        };
        Ok(Some(ImageMenu {
            entries: places.into_iter().enumerate().map(entry).collect(),
            classes: vec![Class { name: "latest".into(), entry: "entry1".into() }],
        }))
    }

    fn prepull() -> Result<Vec<WantedImage>, Error> {
        let nodes = host::lab_nodes();
        Ok(vec![WantedImage {
            reference: format!("registry.example/lab:{nodes}"),
            node_selector: vec![pair("disk")],
        }])
    }
}

impl build_pod::Guest for Published {
    fn customize(request: build_pod::Request) -> Result<Customization, Error> {
        refusal(&request.user)?;
        host::log(host::Level::Info, "builds a pod");
        Ok(Customization {
            image: Some(Image {
                reference: "registry.example/lab:1".into(),
                digest: Some(format!("sha256:{}", "0".repeat(64))),
                description: Some("Lab".into()),
            }),
            env: env(&request),
            labels: vec![pair("label")],
            annotations: vec![pair("annotation")],
            resources: Some(resources()),
            tolerations: tolerations(),
            node_selector: vec![pair("disk")],
            affinity: Some(match request.server.as_str() {
                "spread" => AffinityPreset::Spread,
                "pack" => AffinityPreset::Pack,
                _ => AffinityPreset::None,
            }),
            volumes: volumes(),
            mounts: mounts(),
            init_containers: init_containers(&request),
            command: Some(vec!["start".into()]),
            args: Some(vec!["--now".into()]),
            working_dir: Some("/work".into()),
            time_limits: Some(TimeLimits { spawn_seconds: Some(120), delete_seconds: Some(60) }),
            environment_class: Some("gpu".into()),
            pod_patch: Some(r#"{"spec":{"hostname":"lab"}}"#.into()),
        })
    }
}

fn env(request: &build_pod::Request) -> Vec<EnvVar> {
    let literal = |name: &str, value: String| EnvVar { name: name.into(), value: EnvValue::Literal(value) };
    let random = host::random(16);
    vec![
        literal("REQUEST", format!("{request:?}")),
        literal("CONFIG", host::config()),
        literal("EXPANDED", format!("{:?}", host::expand("{username}"))),
        literal("NOT_A_FIELD", format!("{:?}", host::expand("{nonsense}").is_err())),
        literal("CLOCK_STANDS", format!("{}", host::clock_now() == host::clock_now())),
        literal("DATA", format!("{:?}", host::data("teams").map(|data| data.json))),
        literal("USE", format!("{:?} {:?}", host::present_use(), host::past_use(7))),
        literal("BLUEPRINT", format!("{:?}", host::blueprint())),
        literal("RANDOM", format!("{} {}", random.len(), random.iter().any(|byte| *byte != 0))),
        EnvVar {
            name: "SECRET".into(),
            value: EnvValue::SecretRef(KeyRef { name: "site".into(), key: "token".into() }),
        },
        EnvVar { name: "POD_IP".into(), value: EnvValue::FieldRef("status.podIP".into()) },
    ]
}

fn resources() -> Resources {
    Resources {
        cpu_limit_millis: Some(2000),
        cpu_request_millis: Some(500),
        memory_limit_bytes: Some(2 << 30),
        memory_request_bytes: Some(1 << 30),
        extended: vec![("nvidia.com/gpu".into(), 1)],
        claims: vec![ResourceClaim {
            name: "gpu".into(),
            template: "one-gpu".into(),
            request: Some("first".into()),
        }],
    }
}

fn tolerations() -> Vec<Toleration> {
    let toleration = |operator, effect| Toleration {
        key: Some("dedicated".into()),
        operator,
        value: Some("labs".into()),
        effect,
        seconds: Some(30),
    };
    vec![
        toleration(TolerationOperator::Exists, None),
        toleration(TolerationOperator::Equal, Some(TaintEffect::NoSchedule)),
        toleration(TolerationOperator::Equal, Some(TaintEffect::PreferNoSchedule)),
        toleration(TolerationOperator::Equal, Some(TaintEffect::NoExecute)),
    ]
}

fn volumes() -> Vec<Volume> {
    let object = |mode| ObjectSource {
        name: "site".into(),
        optional: true,
        items: vec![("key".into(), "path".into())],
        mode,
    };
    let claim = |reclaim, access| {
        VolumeSource::Claim(ClaimSource {
            claim_name: "home-{username}".into(),
            read_only: false,
            create: Some(ClaimTemplate {
                storage_bytes: 10 << 30,
                storage_class: Some("fast".into()),
                access_modes: access,
                labels: vec![pair("claim-label")],
                annotations: vec![pair("claim-annotation")],
                selector: vec![pair("tier")],
                reclaim,
            }),
        })
    };
    let sources = [
        VolumeSource::Nfs(NfsSource {
            server: "10.0.0.1".into(),
            path: "/export/{username}".into(),
            read_only: true,
        }),
        claim(ClaimReclaim::Retain, vec![AccessMode::ReadWriteOnce, AccessMode::ReadOnlyMany]),
        claim(ClaimReclaim::Delete, vec![AccessMode::ReadWriteMany, AccessMode::ReadWriteOncePod]),
        VolumeSource::ConfigMap(object(None)),
        VolumeSource::Secret(object(Some(0o400))),
        VolumeSource::EmptyDir(EmptyDirSource { size_limit_bytes: Some(1 << 20), memory: true }),
        VolumeSource::HostPath("/data".into()),
    ];
    let volume = |(number, source)| Volume { name: format!("volume{number}"), source };
    sources.into_iter().enumerate().map(volume).collect()
}

fn mounts() -> Vec<Mount> {
    vec![Mount {
        volume: "volume1".into(),
        path: "/home/user".into(),
        sub_path: Some("{username}".into()),
        read_only: false,
    }]
}

fn init_containers(request: &build_pod::Request) -> Vec<InitContainer> {
    let container = |name: &str, profile, run| InitContainer {
        name: name.into(),
        image: "registry.example/init:1".into(),
        command: vec!["prepare".into()],
        args: vec!["home".into()],
        env: vec![EnvVar { name: "SERVER".into(), value: EnvValue::Literal(request.server.clone()) }],
        mounts: mounts(),
        resources: Some(resources()),
        profile,
        run,
    };
    vec![
        container("restricted", SecurityProfile::Restricted, InitRun::Always),
        container("baseline", SecurityProfile::Baseline, InitRun::UntilProvisioned),
        container("privileged", SecurityProfile::Privileged, InitRun::Always),
    ]
}

fn refusal(user: &User) -> Result<(), Error> {
    match user.name.as_str() {
        "denied" => Err(Error::Denied(denial("not today".into()))),
        "invalid" => Err(Error::Invalid(vec![field_error("size", "is wrong")])),
        "later" => Err(Error::RetryLater(7)),
        "internal" => Err(Error::Internal("a secret of the policy".into())),
        _ => Ok(()),
    }
}

fn denial(message: String) -> Denial {
    Denial { message, rule: Some("of-the-guard".into()) }
}

fn field_error(field: &str, message: &str) -> FieldError {
    FieldError { field: field.into(), message: message.into() }
}

fn pair(name: &str) -> Pair {
    Pair { name: name.into(), value: "value".into() }
}
