//! The directories of a user's projects (groups whose names have a certain prefix), on NFS or in existing claims.

use wasmspawner_sdk::pod::{Customization, EnvVar, Mount, Volume};
use wasmspawner_sdk::{Error, Info, Options, Policy, Section, User, export, hooks};

/// The location of the projects' files.
pub struct ProjectStorage {
    prefix: String,
    path: String,
    source: Source,
    read_only_groups: Vec<String>,
}

enum Source {
    /// One export, with a directory for each project.
    Nfs {
        server: String,
        path: String,
    },
    /// A claim for each project. The prefix is the beginning of the claim's name.
    Claims {
        prefix: String,
    },
    Missing,
}

impl Policy for ProjectStorage {
    fn info() -> Info {
        Info {
            name: "project-storage".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            description: "The directories of a user's projects".into(),
        }
    }

    fn from_config(config: &mut Section<'_>) -> Self {
        let nfs = config
            .section("nfs", |nfs| Source::Nfs { server: nfs.required("server"), path: nfs.required("path") });
        let claims =
            config.section("claims", |claims| Source::Claims { prefix: claims.or_default("prefix") });
        let source = match (nfs, claims) {
            (Some(source), None) | (None, Some(source)) => source,
            (None, None) | (Some(_), Some(_)) => {
                config.problem("", "needs either `nfs` or `claims`");
                Source::Missing
            }
        };
        let path = config.optional("path").unwrap_or_else(|| "/projects".to_owned());
        if !path.starts_with('/') {
            config.problem("path", "must be absolute");
        }
        Self {
            prefix: config.required("group_prefix"),
            path,
            source,
            read_only_groups: config.or_default("read_only_groups"),
        }
    }
}

impl ProjectStorage {
    /// The names of the user's projects, without the prefix. A name that cannot be part of a path is left out.
    fn projects<'a>(&'a self, user: &'a User) -> impl Iterator<Item = &'a str> {
        let names = user.groups.iter().filter_map(|group| group.name.strip_prefix(self.prefix.as_str()));
        names.filter(|name| {
            name.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit())
                && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        })
    }
}

impl hooks::BuildPod for ProjectStorage {
    fn customize(&self, user: &User, _server: &str, _options: &Options) -> Result<Customization, Error> {
        let mut lab = Customization::default();
        let read_only = user.is_in_any(&self.read_only_groups);
        let writable = |mount: Mount| if read_only { mount.read_only() } else { mount };
        for project in self.projects(user) {
            let path = format!("{}/{project}", self.path);
            match &self.source {
                Source::Nfs { server, path: exported } => {
                    if lab.volumes.is_empty() {
                        lab.volumes.push(Volume::nfs("projects", server, exported));
                    }
                    lab.mounts.push(writable(Mount::new("projects", path).sub_path(project)));
                }
                Source::Claims { prefix } => {
                    let volume = format!("project-{project}");
                    lab.volumes.push(Volume::claim(&volume, format!("{prefix}{project}")));
                    lab.mounts.push(writable(Mount::new(volume, path)));
                }
                Source::Missing => {}
            }
        }
        lab.env.push(EnvVar::literal("PROJECTS", self.projects(user).collect::<Vec<_>>().join(" ")));
        Ok(lab)
    }
}

export!(ProjectStorage: build_pod);

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use wasmspawner_sdk::testing::TestKit;

    use super::*;

    fn mounts(config: &Value, user: &User) -> Vec<(String, Option<String>, bool)> {
        let lab = TestKit::<ProjectStorage>::new(config).unwrap().customize(user, &json!({})).unwrap();
        lab.mounts.into_iter().map(|mount| (mount.path, mount.sub_path, mount.read_only)).collect()
    }

    #[test]
    fn members_of_a_project_have_its_directory() {
        let config = json!({"group_prefix": "proj-", "nfs": {"server": "nfs", "path": "/export"}, "read_only_groups": ["guests"]});
        let ada = User::named("ada").in_group("proj-moon").in_group("staff").in_group("proj-sun");
        let expected =
            ["moon", "sun"].map(|name| (format!("/projects/{name}"), Some(name.to_owned()), false));
        assert_eq!(mounts(&config, &ada), expected);
        assert!(mounts(&config, &User::named("eve")).is_empty());
        let guest = User::named("eve").in_group("proj-sun").in_group("guests");
        assert!(mounts(&config, &guest)[0].2, "guests only read");
    }

    #[test]
    fn a_group_whose_name_leads_elsewhere_is_no_project() {
        let config = json!({"group_prefix": "proj-", "claims": {"prefix": "data-"}});
        let eve = User::named("eve")
            .in_group("proj-../ada")
            .in_group("proj-{username}")
            .in_group("proj-")
            .in_group("proj-sun");
        assert_eq!(mounts(&config, &eve), [("/projects/sun".to_owned(), None, false)]);
    }

    #[test]
    fn one_source_is_needed() {
        let problems =
            TestKit::<ProjectStorage>::new(&json!({"group_prefix": "p-", "path": "data"})).err().unwrap();
        let fields: Vec<_> = problems.iter().map(|problem| problem.field.as_str()).collect();
        assert_eq!(fields, ["", "/path"]);
    }
}
