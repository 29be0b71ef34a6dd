//! The groups of labs.

use serde_json::{Value, json};

/// The groups of every lab.
#[derive(Default)]
pub(crate) struct Groups {
    /// The group of the processes.
    pub(crate) gid: Option<u64>,
    /// The group of the volumes, which processes have beside their own.
    pub(crate) fs_gid: Option<u64>,
    pub(crate) further: Vec<u64>,
}

impl Groups {
    /// The group of the lab's processes. Where the site names none it is that of the image, which most images of Jupyter
    /// share with the volumes.
    pub(crate) fn main(&self) -> u64 {
        /// The group `users`.
        const USUAL: u64 = 100;
        self.gid.or(self.fs_gid).unwrap_or(USUAL)
    }

    pub(crate) fn all(&self) -> Vec<Value> {
        let main = self.fs_gid.unwrap_or_else(|| self.main());
        let mut ids = vec![main];
        for id in self.gid.iter().chain(&self.further) {
            if !ids.contains(id) {
                ids.push(*id);
            }
        }
        let name = |id: u64| if id == main { "users".to_owned() } else { format!("group-{id}") };
        ids.into_iter().map(|id| json!({"name": name(id), "id": id})).collect()
    }
}
