use k8s_openapi::api::core::v1::{
    ConfigMapEnvSource, Container, ContainerPort, EnvFromSource, EnvVar, EnvVarSource, HTTPGetAction,
    ObjectFieldSelector, Probe, SecretKeySelector, TCPSocketAction,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{resources, secret, volume};
use crate::names::lab::PORT_NAME;
use crate::policy::ValidatedSpawn;
use crate::policy::compose::{CheckedProbe, LabValue};

/// Failure threshold of the startup probe: more failures than occur in the longest time that a spawn may take.
const FAILURES_OF_A_DAY: i32 = 86_400;

/// The policy with which the kubelet reports the last lines of a failed container's log (`terminationMessagePolicy`).
pub(super) const LAST_LINES_OF_LOG: &str = "FallbackToLogsOnError";

/// Builds the container in which the single-user server runs.
pub(super) fn build(spawn: &ValidatedSpawn) -> Container {
    let config = &spawn.config;
    Container {
        name: config.container.to_string(),
        image: Some(spawn.image.pinned()),
        image_pull_policy: Some(config.image_pull_policy.as_str().to_owned()),
        command: spawn.command.clone(),
        args: spawn.args.clone(),
        working_dir: spawn.working_dir.clone(),
        ports: Some(vec![ContainerPort {
            name: Some(PORT_NAME.to_owned()),
            container_port: spawn.port.into(),
            protocol: Some("TCP".to_owned()),
            ..ContainerPort::default()
        }]),
        env_from: Some(vec![EnvFromSource {
            config_map_ref: Some(ConfigMapEnvSource { name: spawn.names.env.to_string(), optional: None }),
            ..EnvFromSource::default()
        }]),
        env: Some(references(spawn)),
        resources: resources::requirements(&spawn.resources),
        volume_mounts: Some(volume::lab_mounts(spawn)),
        startup_probe: startup_probe(spawn),
        readiness_probe: readiness_probe(spawn),
        termination_message_policy: Some(LAST_LINES_OF_LOG.to_owned()),
        ..Container::default()
    }
}

/// Returns the variables whose values are not in the `ConfigMap`. All of them are references, because Kubernetes would
/// expand `$(NAME)` in literal values.
fn references(spawn: &ValidatedSpawn) -> Vec<EnvVar> {
    spawn
        .env
        .iter()
        .filter_map(|(name, value)| {
            let source = match value {
                LabValue::Plain(_) => return None,
                LabValue::Credential(_) => secret_key(spawn.names.object.as_str(), &secret::env_key(name)),
                LabValue::SecretKey(key) => secret_key(&key.name, &key.key),
                LabValue::Field(path) => field(path),
            };
            Some(EnvVar { name: name.to_string(), value: None, value_from: Some(source) })
        })
        .collect()
}

pub(super) fn secret_key(name: &str, key: &str) -> EnvVarSource {
    EnvVarSource {
        secret_key_ref: Some(SecretKeySelector {
            name: name.to_owned(),
            key: key.to_owned(),
            optional: None,
        }),
        ..EnvVarSource::default()
    }
}

pub(super) fn field(path: &str) -> EnvVarSource {
    EnvVarSource {
        field_ref: Some(ObjectFieldSelector { field_path: path.to_owned(), api_version: None }),
        ..EnvVarSource::default()
    }
}

/// Builds the startup probe, which checks frequently until the lab answers for the first time. It practically never
/// gives up, because the kubelet would then kill a lab that starts slowly. The service enforces the time limit of a
/// spawn.
fn startup_probe(spawn: &ValidatedSpawn) -> Option<Probe> {
    let probe = spawn.probe.as_ref()?;
    Some(Probe {
        period_seconds: Some(probe.timing.period_seconds.into()),
        failure_threshold: Some(FAILURES_OF_A_DAY),
        ..request(probe, spawn.serves_tls)
    })
}

/// Builds the readiness probe, which checks at a long interval whether a lab that has answered still does.
fn readiness_probe(spawn: &ValidatedSpawn) -> Option<Probe> {
    let probe = spawn.probe.as_ref()?;
    Some(Probe {
        period_seconds: Some(probe.timing.running_period_seconds.into()),
        failure_threshold: Some(probe.timing.failure_threshold.into()),
        ..request(probe, spawn.serves_tls)
    })
}

/// Builds the kubelet's request to the lab. The kubelet verifies no certificates.
fn request(probe: &CheckedProbe, over_tls: bool) -> Probe {
    let port = IntOrString::String(PORT_NAME.to_owned());
    let http_get = probe.path.as_ref().map(|path| HTTPGetAction {
        path: Some(path.clone()),
        port: port.clone(),
        scheme: over_tls.then(|| "HTTPS".to_owned()),
        ..HTTPGetAction::default()
    });
    let tcp_socket = http_get.is_none().then_some(TCPSocketAction { port, host: None });
    Probe {
        http_get,
        tcp_socket,
        timeout_seconds: Some(probe.timing.timeout_seconds.into()),
        ..Probe::default()
    }
}
