use super::compose::IMAGE_OF_LAB;
use super::{
    Author, ChainAnswer, ClaimSource, Customization, EmptyDirSource, EnvValue, EnvVar, Grants, InitContainer,
    InitRun, LabServer, Mount, NfsSource, ObjectSource, SecurityProfile, Volume, VolumeSource,
};
use crate::custom_resource::blueprint::{BlueprintInit, BlueprintVolume, Package, Resolved, VolumeFiles};

/// The volume with a blueprint's packages, and the path at which containers mount it.
const PACKAGES: &str = "blueprint-packages";
const PACKAGES_PATH: &str = "/opt/blueprint";

impl ChainAnswer {
    /// Converts the settings of a lab's blueprints to the answer that comes before all policies. Blueprints have no
    /// grants.
    pub fn of_blueprint(resolved: &Resolved) -> Self {
        let spec = &resolved.spec;
        let mut wanted = Customization {
            env: spec.env.iter().map(|(name, value)| EnvVar::literal(name.as_str(), value)).collect(),
            volumes: spec.volumes.iter().filter_map(volume).collect(),
            mounts: spec.volumes.iter().map(mount).collect(),
            init_containers: spec.init_containers.iter().map(init).collect(),
            ..Customization::default()
        };
        if !spec.packages.is_empty() {
            install(&spec.packages.pip, &mut wanted);
        }
        Self {
            author: Author::Blueprint(resolved.label()),
            component: None,
            grants: Grants::default(),
            customization: wanted,
            server: LabServer::default(),
            files: Vec::new(),
        }
    }
}

/// Adds a directory that lives as long as the lab, and a container that installs the packages into it.
fn install(packages: &[Package], wanted: &mut Customization) {
    let source = VolumeSource::EmptyDir(EmptyDirSource::default());
    wanted.volumes.push(Volume { name: PACKAGES.to_owned(), source });
    let mount = |read_only| Mount {
        volume: PACKAGES.to_owned(),
        path: PACKAGES_PATH.to_owned(),
        sub_path: None,
        read_only,
    };
    wanted.mounts.push(mount(true));
    let pip = "python3 -m pip install --quiet --no-input --no-cache-dir --disable-pip-version-check --target";
    let command = pip.split(' ').chain([PACKAGES_PATH]).chain(packages.iter().map(Package::as_str));
    wanted.init_containers.push(InitContainer {
        command: command.map(str::to_owned).collect(),
        mounts: vec![mount(false)],
        ..container(PACKAGES)
    });
    let path = wanted.env.iter_mut().find(|variable| variable.name == "PYTHONPATH");
    match path {
        Some(EnvVar { value: EnvValue::Literal(path), .. }) => *path = format!("{PACKAGES_PATH}:{path}"),
        _ => wanted.env.push(EnvVar::literal("PYTHONPATH", PACKAGES_PATH)),
    }
}

/// Converts a volume. Returns `None` if it has no valid source, an error that is found when blueprints are read.
fn volume(volume: &BlueprintVolume) -> Option<Volume> {
    let read_only = volume.read_only;
    let source = match volume.files().ok()? {
        VolumeFiles::Nfs(nfs) => {
            VolumeSource::Nfs(NfsSource { server: nfs.server.clone(), path: nfs.path.clone(), read_only })
        }
        VolumeFiles::Claim(name) => {
            VolumeSource::Claim(ClaimSource { claim_name: name.to_owned(), read_only, create: None })
        }
        VolumeFiles::ConfigMap(name) => VolumeSource::ConfigMap(ObjectSource {
            name: name.to_owned(),
            optional: false,
            items: Vec::new(),
            mode: None,
        }),
        VolumeFiles::EmptyDir(size_limit_bytes) => {
            VolumeSource::EmptyDir(EmptyDirSource { size_limit_bytes, memory: false })
        }
    };
    Some(Volume { name: volume.name.clone(), source })
}

fn mount(volume: &BlueprintVolume) -> Mount {
    Mount {
        volume: volume.name.clone(),
        path: volume.mount_path.clone(),
        sub_path: volume.sub_path.clone(),
        read_only: volume.read_only,
    }
}

fn init(init: &BlueprintInit) -> InitContainer {
    let mounts = init.mounts.iter().map(|mount| Mount {
        volume: mount.volume.clone(),
        path: mount.mount_path.clone(),
        sub_path: None,
        read_only: false,
    });
    InitContainer {
        image: init.image.clone().unwrap_or_else(|| IMAGE_OF_LAB.to_owned()),
        command: init.command.clone(),
        env: init.env.iter().map(|(name, value)| EnvVar::literal(name.as_str(), value)).collect(),
        mounts: mounts.collect(),
        ..container(&init.name)
    }
}

/// Returns a container of the lab's image that runs like the lab.
fn container(name: &str) -> InitContainer {
    InitContainer {
        name: name.to_owned(),
        image: IMAGE_OF_LAB.to_owned(),
        command: Vec::new(),
        args: Vec::new(),
        env: Vec::new(),
        mounts: Vec::new(),
        resources: None,
        profile: SecurityProfile::Restricted,
        run: InitRun::Always,
        files: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::custom_resource::blueprint::{BlueprintSpec, Library};
    use crate::names::ObjectName;
    use crate::policy::check_customization;

    #[test]
    fn volumes_init_containers_and_packages_become_a_valid_answer() {
        let specs: BTreeMap<ObjectName, BlueprintSpec> = serde_saphyr::from_str(
            r#"
course:
  env: {PYTHONPATH: /course/lib}
  volumes:
    - {name: data, mountPath: /data, readOnly: true, nfs: {server: nfs.example.org, path: /data}}
    - {name: mine, mountPath: /mine, subPath: x, claim: {name: course-ada}}
    - {name: conf, mountPath: /etc/course, configMap: {name: course}}
    - {name: scratch, mountPath: /scratch, emptyDir: {sizeLimit: 2Gi}}
  initContainers:
    - {name: fetch, command: [git, clone, "https://git.example.org/course"], mounts: [{volume: scratch, mountPath: /scratch}]}
    - {name: other, image: "busybox:1", command: ["true"], env: {A: b}}
  packages: {pip: ["xarray>=2026.1"]}
"#,
        )
        .unwrap();
        let library = Library::new(specs).unwrap();
        let resolved = library.resolve(Some(&ObjectName::parse("course").unwrap()), &[]).unwrap().unwrap();
        let answer = ChainAnswer::of_blueprint(&resolved);
        assert_eq!(answer.author.to_string(), "blueprint `course`");
        assert_eq!(check_customization(&answer.customization), []);
        insta::assert_yaml_snapshot!(answer.customization);
    }
}
