//! The settings of a lab as `wasmspawner policy run` prints them: without what has no value.

use serde_json::{Value, json};
use wasmspawner_sdk::Pair;
use wasmspawner_sdk::pod::{
    Customization, EnvValue, EnvVar, InitContainer, Mount, ObjectSource, Resources, SecurityProfile,
    TaintEffect, Toleration, TolerationOperator, Volume, VolumeSource,
};

pub(super) fn json(lab: &Customization) -> Value {
    let env: Vec<_> = lab.env.iter().map(variable).collect();
    without_nothing(json!({
        "image": lab.image.as_ref().map(|image| json!({"reference": image.reference})),
        "env": env,
        "labels": pairs(&lab.labels),
        "annotations": pairs(&lab.annotations),
        "resources": lab.resources.as_ref().map(resources),
        "tolerations": lab.tolerations.iter().map(toleration).collect::<Vec<_>>(),
        "node_selector": pairs(&lab.node_selector),
        "volumes": lab.volumes.iter().map(volume).collect::<Vec<_>>(),
        "mounts": lab.mounts.iter().map(mount).collect::<Vec<_>>(),
        "command": lab.command,
        "args": lab.args,
        "working_dir": lab.working_dir,
        "init_containers": lab.init_containers.iter().map(init_container).collect::<Vec<_>>(),
        "pod_patch": lab.pod_patch.as_ref().and_then(|patch| serde_json::from_str::<Value>(patch).ok()),
        "time_limits": lab.time_limits.map(|limits| json!({"spawn_seconds": limits.spawn_seconds})),
    }))
}

fn variable(variable: &EnvVar) -> Value {
    let value = match &variable.value {
        EnvValue::Literal(text) => json!({"literal": text}),
        EnvValue::SecretRef(key) => json!({"secret_ref": {"name": key.name, "key": key.key}}),
        EnvValue::FieldRef(path) => json!({"field_ref": path}),
    };
    json!({"name": variable.name, "value": value})
}

fn init_container(init: &InitContainer) -> Value {
    let profile = match init.profile {
        SecurityProfile::Restricted => "restricted",
        SecurityProfile::Baseline => "baseline",
        SecurityProfile::Privileged => "privileged",
    };
    json!({
        "name": init.name,
        "image": init.image,
        "command": init.command,
        "args": init.args,
        "env": init.env.iter().map(variable).collect::<Vec<_>>(),
        "mounts": init.mounts.iter().map(mount).collect::<Vec<_>>(),
        "profile": profile,
    })
}

fn without_nothing(mut value: Value) -> Value {
    if let Value::Object(entries) = &mut value {
        entries.retain(|_, entry| match entry {
            Value::Null => false,
            Value::Object(inside) => !inside.is_empty(),
            _ => true,
        });
    }
    value
}

fn pairs(pairs: &[Pair]) -> Vec<Value> {
    pairs.iter().map(|pair| json!({"name": pair.name, "value": pair.value})).collect()
}

fn resources(resources: &Resources) -> Value {
    without_nothing(json!({
        "cpu_limit_millis": resources.cpu_limit_millis,
        "cpu_request_millis": resources.cpu_request_millis,
        "memory_limit_bytes": resources.memory_limit_bytes,
        "memory_request_bytes": resources.memory_request_bytes,
        "extended": resources.extended,
    }))
}

fn toleration(toleration: &Toleration) -> Value {
    let effect = toleration.effect.map(|effect| match effect {
        TaintEffect::NoSchedule => "no_schedule",
        TaintEffect::PreferNoSchedule => "prefer_no_schedule",
        TaintEffect::NoExecute => "no_execute",
    });
    let operator = match toleration.operator {
        TolerationOperator::Exists => "exists",
        TolerationOperator::Equal => "equal",
    };
    without_nothing(json!({
        "key": toleration.key,
        "operator": operator,
        "value": toleration.value,
        "effect": effect,
        "seconds": toleration.seconds,
    }))
}

fn volume(volume: &Volume) -> Value {
    let source = match &volume.source {
        VolumeSource::Nfs(nfs) => {
            json!({"nfs": {"server": nfs.server, "path": nfs.path, "read_only": nfs.read_only}})
        }
        VolumeSource::Claim(claim) => {
            json!({"claim": {"claim_name": claim.claim_name, "read_only": claim.read_only}})
        }
        VolumeSource::ConfigMap(map) => json!({"config_map": object(map)}),
        VolumeSource::Secret(secret) => json!({"secret": object(secret)}),
        VolumeSource::EmptyDir(dir) => json!({"empty_dir": without_nothing(
            json!({"memory": dir.memory, "size_limit_bytes": dir.size_limit_bytes}),
        )}),
        VolumeSource::HostPath(path) => json!({"host_path": path}),
    };
    json!({"name": volume.name, "source": source})
}

fn object(source: &ObjectSource) -> Value {
    without_nothing(json!({
        "name": source.name,
        "optional": source.optional,
        "items": source.items,
        "mode": source.mode,
    }))
}

fn mount(mount: &Mount) -> Value {
    without_nothing(json!({
        "volume": mount.volume,
        "path": mount.path,
        "sub_path": mount.sub_path,
        "read_only": mount.read_only,
    }))
}
