//! `build-pod`: customizes a lab's pod.

use std::sync::Arc;

use serde_json::Value;
use wasmspawner_core::policy::{
    AccessMode, AffinityPreset, ClaimReclaim, ClaimSource, ClaimTemplate, Customization, EmptyDirSource,
    EnvValue, EnvVar, Image, InitContainer, InitRun, KeyRef, LabRequest, Mount, NfsSource, ObjectSource,
    Pair, ResourceClaim, Resources, SecurityProfile, TaintEffect, TimeLimits, Toleration, TolerationOperator,
    Volume, VolumeSource,
};

use super::{About, Exports, Question, call, input, refusal};
use crate::contract::bindings::hooks::build_pod as wit;
use crate::contract::bindings::types;
use crate::contract::convert::{option_entries, user};
use crate::contract::guest::Calling;
use crate::names::hook::Hook;

/// Asks what the pod of a lab should have.
#[derive(Clone)]
pub(crate) struct BuildPod(pub(crate) Arc<LabRequest>);

impl Question for BuildPod {
    const HOOK: Hook = Hook::new("build-pod.customize");

    type Interface = wit::GuestIndices;
    type Answer = Customization;

    fn interface(exports: &Exports) -> Option<&wit::GuestIndices> {
        exports.build_pod.as_ref()
    }

    fn call(&self, interface: &wit::GuestIndices) -> Calling<Customization> {
        let request = wit::Request {
            user: user(&self.0.user),
            server: self.0.server.clone(),
            options: option_entries(&self.0.options),
        };
        call!(interface, |exports, store| exports.call_customize(&mut store, &request), |answer| {
            answer.map(customization).map_err(refusal)
        })
    }

    fn about(&self) -> About {
        About { lab: self.0.fields.clone(), subject: self.0.subject.clone() }
    }

    fn input(&self) -> Option<Value> {
        Some(input::of_lab(&self.0))
    }
}

fn customization(answer: wit::Customization) -> Customization {
    Customization {
        image: answer.image.map(image),
        env: each(answer.env, env_var),
        labels: each(answer.labels, pair),
        annotations: each(answer.annotations, pair),
        resources: answer.resources.map(resources),
        tolerations: each(answer.tolerations, toleration),
        node_selector: each(answer.node_selector, pair),
        affinity: answer.affinity.map(affinity),
        volumes: each(answer.volumes, volume),
        mounts: each(answer.mounts, mount),
        init_containers: each(answer.init_containers, init_container),
        command: answer.command,
        args: answer.args,
        working_dir: answer.working_dir,
        time_limits: answer.time_limits.map(time_limits),
        environment_class: answer.environment_class,
        pod_patch: answer.pod_patch,
    }
}

fn each<A, B>(of: Vec<A>, convert: impl FnMut(A) -> B) -> Vec<B> {
    of.into_iter().map(convert).collect()
}

fn image(image: types::Image) -> Image {
    Image { reference: image.reference, digest: image.digest, description: image.description }
}

fn pair(pair: types::Pair) -> Pair {
    Pair { name: pair.name, value: pair.value }
}

fn env_var(var: wit::EnvVar) -> EnvVar {
    let value = match var.value {
        wit::EnvValue::Literal(text) => EnvValue::Literal(text),
        wit::EnvValue::SecretRef(key) => EnvValue::SecretRef(KeyRef { name: key.name, key: key.key }),
        wit::EnvValue::FieldRef(path) => EnvValue::FieldRef(path),
    };
    EnvVar { name: var.name, value }
}

fn resources(resources: wit::Resources) -> Resources {
    let claim = |claim: wit::ResourceClaim| ResourceClaim {
        name: claim.name,
        template: claim.template,
        request: claim.request,
    };
    Resources {
        cpu_limit_millis: resources.cpu_limit_millis,
        cpu_request_millis: resources.cpu_request_millis,
        memory_limit_bytes: resources.memory_limit_bytes,
        memory_request_bytes: resources.memory_request_bytes,
        extended: resources.extended,
        claims: each(resources.claims, claim),
    }
}

fn toleration(toleration: wit::Toleration) -> Toleration {
    let effect = |effect| match effect {
        wit::TaintEffect::NoSchedule => TaintEffect::NoSchedule,
        wit::TaintEffect::PreferNoSchedule => TaintEffect::PreferNoSchedule,
        wit::TaintEffect::NoExecute => TaintEffect::NoExecute,
    };
    Toleration {
        key: toleration.key,
        operator: match toleration.operator {
            wit::TolerationOperator::Exists => TolerationOperator::Exists,
            wit::TolerationOperator::Equal => TolerationOperator::Equal,
        },
        value: toleration.value,
        effect: toleration.effect.map(effect),
        seconds: toleration.seconds,
    }
}

fn affinity(preset: wit::AffinityPreset) -> AffinityPreset {
    match preset {
        wit::AffinityPreset::None => AffinityPreset::None,
        wit::AffinityPreset::Spread => AffinityPreset::Spread,
        wit::AffinityPreset::Pack => AffinityPreset::Pack,
    }
}

fn volume(volume: wit::Volume) -> Volume {
    let source = match volume.source {
        wit::VolumeSource::Nfs(nfs) => {
            VolumeSource::Nfs(NfsSource { server: nfs.server, path: nfs.path, read_only: nfs.read_only })
        }
        wit::VolumeSource::Claim(claim) => VolumeSource::Claim(ClaimSource {
            claim_name: claim.claim_name,
            read_only: claim.read_only,
            create: claim.create.map(claim_template),
        }),
        wit::VolumeSource::ConfigMap(object) => VolumeSource::ConfigMap(object_source(object)),
        wit::VolumeSource::Secret(object) => VolumeSource::Secret(object_source(object)),
        wit::VolumeSource::EmptyDir(dir) => VolumeSource::EmptyDir(EmptyDirSource {
            size_limit_bytes: dir.size_limit_bytes,
            memory: dir.memory,
        }),
        wit::VolumeSource::HostPath(path) => VolumeSource::HostPath(path),
    };
    Volume { name: volume.name, source }
}

fn claim_template(template: wit::ClaimTemplate) -> ClaimTemplate {
    let mode = |mode| match mode {
        wit::AccessMode::ReadWriteOnce => AccessMode::ReadWriteOnce,
        wit::AccessMode::ReadOnlyMany => AccessMode::ReadOnlyMany,
        wit::AccessMode::ReadWriteMany => AccessMode::ReadWriteMany,
        wit::AccessMode::ReadWriteOncePod => AccessMode::ReadWriteOncePod,
    };
    ClaimTemplate {
        storage_bytes: template.storage_bytes,
        storage_class: template.storage_class,
        access_modes: each(template.access_modes, mode),
        labels: each(template.labels, pair),
        annotations: each(template.annotations, pair),
        selector: each(template.selector, pair),
        reclaim: match template.reclaim {
            wit::ClaimReclaim::Retain => ClaimReclaim::Retain,
            wit::ClaimReclaim::Delete => ClaimReclaim::Delete,
        },
    }
}

fn object_source(object: wit::ObjectSource) -> ObjectSource {
    ObjectSource { name: object.name, optional: object.optional, items: object.items, mode: object.mode }
}

fn mount(mount: wit::Mount) -> Mount {
    Mount { volume: mount.volume, path: mount.path, sub_path: mount.sub_path, read_only: mount.read_only }
}

fn init_container(container: wit::InitContainer) -> InitContainer {
    InitContainer {
        name: container.name,
        image: container.image,
        command: container.command,
        args: container.args,
        env: each(container.env, env_var),
        mounts: each(container.mounts, mount),
        resources: container.resources.map(resources),
        profile: match container.profile {
            wit::SecurityProfile::Restricted => SecurityProfile::Restricted,
            wit::SecurityProfile::Baseline => SecurityProfile::Baseline,
            wit::SecurityProfile::Privileged => SecurityProfile::Privileged,
        },
        run: match container.run {
            wit::InitRun::Always => InitRun::Always,
            wit::InitRun::UntilProvisioned => InitRun::UntilProvisioned,
        },
        files: Vec::new(),
    }
}

fn time_limits(limits: wit::TimeLimits) -> TimeLimits {
    TimeLimits { spawn_seconds: limits.spawn_seconds, delete_seconds: limits.delete_seconds }
}
