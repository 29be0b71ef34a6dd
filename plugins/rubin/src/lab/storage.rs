use std::collections::BTreeMap;

use wasmspawner_sdk::pod::{
    AccessMode, ClaimSource, ClaimTemplate, EmptyDirSource, Mount, NfsSource, Volume, VolumeSource,
};
use wasmspawner_sdk::{Section, quantity};

use super::distinct::Distinct;
use super::home::Home;
use super::{secrets, sizes};

/// The name of the volume for temporary files.
const TMP: &str = "tmp";

/// The divisor of a lab's memory for temporary files: a lab may fill a quarter of its memory with them. On disk the
/// limit is the same number of bytes.
const TMP_SHARE: u64 = 4;

/// The name of the volume through which the container `nublado startup` tells the lab how to start.
const STARTUP: &str = "lab-startup";

/// The directory of that volume, which Nublado's images know.
const STARTUP_PATH: &str = "/etc/nublado/startup";

/// The size of that volume in Nublado.
const STARTUP_BYTES: u64 = 640 * 1024;

/// Paths that every lab has for itself.
const RESERVED_PATHS: [&str; 3] = ["/etc/group", "/etc/passwd", "/tmp"];

/// The volumes of the site, and their mounts in labs.
#[derive(Default)]
pub(crate) struct Storage {
    pub(crate) volumes: Vec<Volume>,
    pub(crate) mounts: Vec<Mount>,
    tmp_in_memory: bool,
    /// The volume with the homes.
    homes: String,
}

/// The name of the volume with the homes, unless `homeVolumeName` names another.
const HOMES: &str = "home";

impl Storage {
    pub(super) fn read(lab: &mut Section<'_>, home: &Home) -> Self {
        let (mut names, mut paths) = (Distinct::default(), Distinct::default());
        let mut mounts = Vec::new();
        let volumes = lab.list("volumes", |entry| {
            let volume = volume(entry);
            names.add(entry, "name", &volume.name);
            // Older versions of Nublado write the mount of a volume beside its source.
            if entry.has("containerPath") {
                let mount = mount_of(entry, volume.name.clone());
                paths.add(entry, "containerPath", &mount.path);
                mounts.push(mount);
            }
            volume
        });
        let home_volume: Option<String> = lab.optional("homeVolumeName");
        let homes = home_volume.clone().unwrap_or_else(|| HOMES.to_owned());
        let mut storage = Self { volumes, mounts, tmp_in_memory: tmp_in_memory(lab), homes };
        let further = lab.list("volumeMounts", |entry| {
            let mount = storage.mount(entry);
            paths.add(entry, "containerPath", &mount.path);
            mount
        });
        storage.mounts.extend(further);
        if let Some(name) = home_volume {
            storage.mount_homes(lab, name, home.prefix());
        }
        if lab.or_default::<bool>("standardInithome") && !storage.has(&storage.homes) {
            lab.problem(
                "standardInithome",
                format!("there is no volume `{}` with the homes (`homeVolumeName`)", storage.homes),
            );
        }
        storage
    }

    /// Refuses a volume or a mount in the place of the one that `nublado startup` writes to.
    pub(super) fn leave_startup_alone(&self, lab: &Section<'_>) {
        const REMEDY: &str = "every lab has it; remove it, or set `standardStartup` to false";
        if self.has(STARTUP) {
            lab.problem("volumes", format!("`{STARTUP}`: {REMEDY}"));
        }
        if self.mounts.iter().any(|mount| mount.path.trim_end_matches('/') == STARTUP_PATH) {
            lab.problem("volumeMounts", format!("{STARTUP_PATH}: {REMEDY}"));
        }
    }

    /// Mounts the volume with the homes, unless it is mounted already.
    fn mount_homes(&mut self, lab: &Section<'_>, name: String, prefix: &str) {
        if !self.has(&name) {
            lab.problem("homeVolumeName", format!("there is no volume `{name}`"));
        } else if self.mounts.iter().any(|mount| mount.volume == name) {
            // The operator's own mount determines the place of the homes.
        } else if let Some(other) = self.mounts.iter().find(|mount| mount.path == prefix) {
            let message = format!("`{}` is mounted at {prefix} already; mount `{name}`, too", other.volume);
            lab.problem("homeVolumeName", message);
        } else {
            self.mounts.push(Mount::new(name, prefix));
        }
    }

    /// The mounts of the volume with the homes, as the lab has them; or one where the homes are.
    pub(super) fn home_mounts(&self, home: &Home) -> Vec<Mount> {
        let mounts: Vec<_> = self.mounts.iter().filter(|mount| mount.volume == self.homes).cloned().collect();
        if mounts.is_empty() { vec![Mount::new(&self.homes, home.prefix())] } else { mounts }
    }

    fn has(&self, volume: &str) -> bool {
        self.volumes.iter().any(|known| known.name == volume)
    }

    /// Reads a mount of one of these volumes.
    pub(super) fn mount(&self, entry: &mut Section<'_>) -> Mount {
        let volume: String = entry.required("volumeName");
        if entry.has("volumeName") && !self.has(&volume) {
            entry.problem("volumeName", format!("there is no volume `{volume}`"));
        }
        mount_of(entry, volume)
    }

    /// The volume that the container `nublado startup` writes to.
    pub(crate) fn startup(&self) -> Volume {
        let source = EmptyDirSource { size_limit_bytes: Some(STARTUP_BYTES), memory: self.tmp_in_memory };
        Volume::new(STARTUP, VolumeSource::EmptyDir(source))
    }

    /// The mount of that volume. The lab only reads it.
    pub(crate) fn startup_mount() -> Mount {
        Mount::new(STARTUP, STARTUP_PATH)
    }

    /// The volume for temporary files of a lab with this memory, and its mount.
    pub(crate) fn tmp(&self, memory_bytes: u64) -> (Volume, Mount) {
        let size_limit_bytes = Some(memory_bytes / TMP_SHARE);
        let source = EmptyDirSource { size_limit_bytes, memory: self.tmp_in_memory };
        (Volume::new(TMP, VolumeSource::EmptyDir(source)), Mount::new(TMP, "/tmp"))
    }
}

/// Reads the medium of temporary files: `emptyDirSource`, which Nublado formerly called `tmpSource`.
fn tmp_in_memory(lab: &mut Section<'_>) -> bool {
    lab.parsed("emptyDirSource", in_memory).or(lab.parsed("tmpSource", in_memory)).unwrap_or(true)
}

fn in_memory(text: &str) -> Result<bool, &'static str> {
    match text {
        "memory" => Ok(true),
        "disk" => Ok(false),
        _ => Err("must be memory or disk"),
    }
}

fn mount_of(entry: &mut Section<'_>, volume: String) -> Mount {
    let path: String = entry.required("containerPath");
    if entry.has("containerPath") && !path.starts_with('/') {
        entry.problem("containerPath", "must be an absolute path");
    }
    if RESERVED_PATHS.contains(&path.trim_end_matches('/')) {
        entry.problem("containerPath", "is the lab's own; mount the volume elsewhere");
    }
    Mount {
        sub_path: entry.template("subPath"),
        read_only: entry.or_default("readOnly"),
        ..Mount::new(volume, path)
    }
}

fn volume(entry: &mut Section<'_>) -> Volume {
    let name = match entry.optional::<String>("name") {
        Some(name) => name,
        None if entry.has("containerPath") => name_of_path(&entry.required::<String>("containerPath")),
        None => entry.required("name"),
    };
    if [TMP, secrets::VOLUME].contains(&name.as_str()) {
        entry.problem("name", "is the name of a volume that every lab has; choose another");
    }
    if !entry.has("source") {
        entry.problem("source", "is missing");
    }
    let source = entry.section("source", |source| read_source(source, &name)).flatten();
    source.map_or_else(|| Volume::empty_dir(&name), |source| Volume::new(&name, source))
}

/// A volume's name from the path at which it is mounted: `project-data` from `/project/data`.
fn name_of_path(path: &str) -> String {
    let allowed = |char: char| if char.is_ascii_alphanumeric() { char.to_ascii_lowercase() } else { '-' };
    path.chars().map(allowed).collect::<String>().trim_matches('-').to_owned()
}

fn read_source(source: &mut Section<'_>, name: &str) -> Option<VolumeSource> {
    let kind: String = source.required("type");
    match kind.as_str() {
        "nfs" => Some(VolumeSource::Nfs(NfsSource {
            server: source.required("server"),
            path: path(source, "serverPath"),
            read_only: source.or_default("readOnly"),
        })),
        "hostPath" => Some(VolumeSource::HostPath(path(source, "path"))),
        "persistentVolumeClaim" => Some(VolumeSource::Claim(claim(source, name))),
        "emptyDir" => Some(VolumeSource::EmptyDir(EmptyDirSource {
            memory: source.parsed("medium", in_memory).unwrap_or(true),
            size_limit_bytes: source.parsed("size", sizes::memory),
        })),
        "" => None,
        _ => {
            source.problem("type", "must be nfs, hostPath, persistentVolumeClaim or emptyDir; the service makes no volumes for nfsPvc");
            None
        }
    }
}

fn path(source: &mut Section<'_>, key: &'static str) -> String {
    let path: String = source.required(key);
    source.check_template(key, &path);
    if source.has(key) && !path.starts_with('/') {
        source.problem(key, "must be an absolute path");
    }
    path
}

/// A claim of the lab. It is deleted with the lab, as in Nublado, unless the lab's namespace stays.
fn claim(source: &mut Section<'_>, name: &str) -> ClaimSource {
    if !source.has("resources") {
        source.problem("resources", "is missing");
    }
    let storage = source.section("resources", |resources| {
        let requests: BTreeMap<String, String> = resources.required("requests");
        let storage = requests.get("storage").map(|text| quantity::bytes(text));
        match storage {
            Some(Ok(bytes)) => bytes,
            Some(Err(error)) => {
                resources.problem("requests", error.to_string());
                0
            }
            None => {
                resources.problem("requests", "needs `storage`");
                0
            }
        }
    });
    ClaimSource {
        claim_name: format!("{{pvc_name}}-{name}"),
        read_only: source.or_default("readOnly"),
        create: Some(ClaimTemplate {
            storage_class: source.optional("storageClassName"),
            access_modes: access_modes(source),
            ..ClaimTemplate::of_bytes(storage.unwrap_or_default())
        }),
    }
}

fn access_modes(source: &mut Section<'_>) -> Vec<AccessMode> {
    let names: Vec<String> = source.or_default("accessModes");
    let mode = |name: &String| match name.as_str() {
        "ReadWriteOnce" => Some(AccessMode::ReadWriteOnce),
        "ReadOnlyMany" => Some(AccessMode::ReadOnlyMany),
        "ReadWriteMany" => Some(AccessMode::ReadWriteMany),
        _ => None,
    };
    let modes: Vec<_> = names.iter().filter_map(mode).collect();
    if modes.len() != names.len() {
        source.problem("accessModes", "must be ReadWriteOnce, ReadOnlyMany or ReadWriteMany");
    }
    modes
}
