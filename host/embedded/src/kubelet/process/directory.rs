//! The layout of the state directory.
//!
//! ```text
//! pods/<uid>/home/                      home directory of the pod's containers, gone with the pod
//! pods/<uid>/volumes/<volume>/          emptyDir, configMap, secret
//! pods/<uid>/containers/<name>/         process.json, exit, 0.log, 1.log ...
//! claims/<namespace>/<claim>/           persistent volume claims; never deleted
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The kubelet's state directory.
#[derive(Debug, Clone)]
pub(crate) struct StateDirectory(PathBuf);

impl StateDirectory {
    pub(crate) fn new(path: &Path) -> Self {
        // The path must be absolute, because processes have other working directories.
        Self(std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn claims(&self) -> PathBuf {
        self.0.join("claims")
    }

    pub(crate) fn pods(&self) -> PathBuf {
        self.0.join("pods")
    }

    pub(crate) fn pod(&self, uid: &str) -> PodDirectory {
        PodDirectory(self.pods().join(uid))
    }

    /// Returns every pod that has a directory.
    pub(crate) fn all_pods(&self) -> io::Result<Vec<(String, PodDirectory)>> {
        let names = names(&self.pods())?;
        Ok(names.into_iter().map(|uid| (uid.clone(), self.pod(&uid))).collect())
    }
}

#[derive(Debug, Clone)]
pub(crate) struct PodDirectory(PathBuf);

impl PodDirectory {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.0.join("home")
    }

    pub(crate) fn volume(&self, name: &str) -> PathBuf {
        self.0.join("volumes").join(name)
    }

    pub(crate) fn container(&self, name: &str) -> ContainerDirectory {
        ContainerDirectory(self.0.join("containers").join(name))
    }

    pub(crate) fn all_containers(&self) -> io::Result<Vec<ContainerDirectory>> {
        let names = names(&self.0.join("containers"))?;
        Ok(names.into_iter().map(|name| self.container(&name)).collect())
    }
}

#[derive(Debug, Clone)]
pub(crate) struct ContainerDirectory(PathBuf);

impl ContainerDirectory {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn record(&self) -> PathBuf {
        self.0.join("process.json")
    }

    /// Returns the path of the file with the exit code of the newest run.
    pub(crate) fn exit(&self) -> PathBuf {
        self.0.join("exit")
    }

    pub(crate) fn log(&self, restarts: i32) -> PathBuf {
        self.0.join(format!("{restarts}.log"))
    }

    /// Returns the path of the part of a log that was cut off.
    pub(crate) fn cut_log(&self, restarts: i32) -> PathBuf {
        self.0.join(format!("{restarts}.log.1"))
    }
}

fn names(directory: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}
