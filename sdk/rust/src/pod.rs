//! Settings of the lab's pod.

pub use crate::bindings::build_pod::{
    AccessMode, AffinityPreset, ClaimReclaim, ClaimSource, ClaimTemplate, Customization, EmptyDirSource,
    EnvValue, EnvVar, InitContainer, InitRun, KeyRef, Mount, NfsSource, ObjectSource, ResourceClaim,
    Resources, SecurityProfile, TaintEffect, TimeLimits, Toleration, TolerationOperator, Volume,
    VolumeSource,
};

impl Default for Customization {
    /// A customization without any settings.
    fn default() -> Self {
        Self {
            image: None,
            env: Vec::new(),
            labels: Vec::new(),
            annotations: Vec::new(),
            resources: None,
            tolerations: Vec::new(),
            node_selector: Vec::new(),
            affinity: None,
            volumes: Vec::new(),
            mounts: Vec::new(),
            init_containers: Vec::new(),
            command: None,
            args: None,
            working_dir: None,
            time_limits: None,
            environment_class: None,
            pod_patch: None,
        }
    }
}

impl Default for Resources {
    /// Resources without requests and limits.
    fn default() -> Self {
        Self {
            cpu_limit_millis: None,
            cpu_request_millis: None,
            memory_limit_bytes: None,
            memory_request_bytes: None,
            extended: Vec::new(),
            claims: Vec::new(),
        }
    }
}

impl EnvVar {
    /// A variable with a literal value.
    pub fn literal(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: EnvValue::Literal(value.into()) }
    }

    /// A variable with the value of a key of a Secret. Needs the grant `secrets: [name]`.
    pub fn secret(name: impl Into<String>, secret: impl Into<String>, key: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: EnvValue::SecretRef(KeyRef { name: secret.into(), key: key.into() }),
        }
    }

    /// A variable with the value of a field of the pod, such as `status.podIP`.
    pub fn field(name: impl Into<String>, path: impl Into<String>) -> Self {
        Self { name: name.into(), value: EnvValue::FieldRef(path.into()) }
    }
}

impl Toleration {
    /// Tolerates every taint of this key.
    pub fn exists(key: impl Into<String>) -> Self {
        let (key, operator) = (Some(key.into()), TolerationOperator::Exists);
        Self { key, operator, value: None, effect: None, seconds: None }
    }
}

impl Volume {
    /// A volume with any source.
    pub fn new(name: impl Into<String>, source: VolumeSource) -> Self {
        Self { name: name.into(), source }
    }

    /// An exported directory of an NFS server.
    pub fn nfs(name: impl Into<String>, server: impl Into<String>, path: impl Into<String>) -> Self {
        let source = NfsSource { server: server.into(), path: path.into(), read_only: false };
        Self::new(name, VolumeSource::Nfs(source))
    }

    /// An existing claim.
    pub fn claim(name: impl Into<String>, claim: impl Into<String>) -> Self {
        let source = ClaimSource { claim_name: claim.into(), read_only: false, create: None };
        Self::new(name, VolumeSource::Claim(source))
    }

    /// A directory that lives as long as the pod.
    pub fn empty_dir(name: impl Into<String>) -> Self {
        Self::new(name, VolumeSource::EmptyDir(EmptyDirSource { size_limit_bytes: None, memory: false }))
    }
}

impl ClaimTemplate {
    /// A claim of the cluster's default storage class for one node at a time. It stays when its server is deleted.
    pub fn of_bytes(storage_bytes: u64) -> Self {
        Self {
            storage_bytes,
            storage_class: None,
            access_modes: Vec::new(),
            labels: Vec::new(),
            annotations: Vec::new(),
            selector: Vec::new(),
            reclaim: ClaimReclaim::Retain,
        }
    }
}

impl Mount {
    /// Mounts `volume` at the absolute `path`, writable.
    pub fn new(volume: impl Into<String>, path: impl Into<String>) -> Self {
        Self { volume: volume.into(), path: path.into(), sub_path: None, read_only: false }
    }

    /// Mounts only this path within the volume.
    #[must_use]
    pub fn sub_path(mut self, sub_path: impl Into<String>) -> Self {
        self.sub_path = Some(sub_path.into());
        self
    }

    /// Makes the mount read only.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }
}

impl InitContainer {
    /// A container that runs the image's own command at every start, with the restrictions of the lab.
    pub fn new(name: impl Into<String>, image: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            image: image.into(),
            command: Vec::new(),
            args: Vec::new(),
            env: Vec::new(),
            mounts: Vec::new(),
            resources: None,
            profile: SecurityProfile::Restricted,
            run: InitRun::Always,
        }
    }
}
