//! The images that users choose from: a list, and the images of repositories.

use semver::{Version, VersionReq};
use wasmspawner_sdk::images::{Entry, ImageMenu, Place, WantedImage};
use wasmspawner_sdk::{Error, Options, Section, User, hooks, host};
use wildmatch::WildMatch;

use crate::DefaultPolicy;
use crate::image::{ImageChoice, Program};
use crate::menu::Menu;

/// The images that users choose from.
pub(crate) struct Images {
    pub(crate) list: Menu<ImageChoice>,
    repositories: Vec<ImageRepository>,
}

/// A repository whose images users choose from.
struct ImageRepository {
    name: String,
    repository: String,
    /// The patterns of offered tags. A tag must match one of them; without patterns, all are offered.
    tags: Vec<WildMatch>,
    /// The range of offered versions. With a range, tags that are not versions are not offered.
    versions: Option<VersionReq>,
    /// The maximum number of offered images. The newest ones are offered.
    newest: Option<usize>,
    /// The label, in which `{tag}` stands for the tag.
    label: String,
    description: Option<String>,
    /// True if the newest image is recommended.
    recommended: bool,
    /// The number of offered images that nodes pull in advance. The newest ones are pulled.
    prepull: usize,
    /// The groups whose members see the images; if empty, every user does.
    groups: Vec<String>,
    program: Program,
}

impl Images {
    pub(crate) fn read(config: &mut Section<'_>) -> Self {
        let list = Menu::read(config, "images", "default_image", ImageChoice::read);
        let mut names: Vec<String> = Vec::new();
        let repositories = config.list("image_repositories", |entry| {
            let repository = ImageRepository::read(entry);
            if names.contains(&repository.name) {
                entry.problem("name", format!("there is a `{}` before; names must differ", repository.name));
            }
            names.push(repository.name.clone());
            repository
        });
        if !repositories.is_empty() {
            for entry in list.entries() {
                let (name, of) = (&entry.name, entry.name.split_once(':').map(|(before, _)| before));
                if name.contains(char::is_whitespace)
                    || repositories.iter().any(|other| of == Some(&other.name))
                {
                    let problem = "beside `image_repositories`, a name has no space, and does not begin with that of a repository and a colon";
                    config.problem("images", format!("`{name}`: {problem}"));
                }
            }
        }
        Self { list, repositories }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty() && self.repositories.is_empty()
    }

    /// True if the service offers the images instead of this policy's form.
    pub(crate) fn are_a_menu(&self) -> bool {
        !self.repositories.is_empty()
    }

    /// The chosen image of the list. `None` if the image is one of a repository, or if there is no list.
    pub(crate) fn chosen(&self, user: &User, options: &Options) -> Result<Option<&ImageChoice>, Error> {
        if self.are_a_menu() && options.text("image").is_none_or(|name| self.repository(name).is_some()) {
            return Ok(None);
        }
        Ok(self.list.chosen(user, "image", options)?.map(|entry| &entry.value))
    }

    /// The program of the chosen image that replaces the site's command, with its port and probe.
    pub(crate) fn program(&self, user: &User, options: &Options) -> Result<Option<&Program>, Error> {
        if let Some(image) = self.chosen(user, options)? {
            return Ok(Some(&image.program));
        }
        Ok(options.text("image").and_then(|name| self.repository(name)).map(|repository| &repository.program))
    }

    /// The images that nodes pull: those of the list, and then those of the repositories.
    pub(crate) fn wanted(&self) -> Vec<String> {
        let listed = self.list.entries().iter().map(|entry| &entry.value).filter(|image| image.prepull);
        let found = self.repositories.iter().flat_map(ImageRepository::wanted);
        listed.map(ImageChoice::pinned).chain(found).collect()
    }

    /// The repository of an entry, whose name is `NAME:TAG`.
    fn repository(&self, entry: &str) -> Option<&ImageRepository> {
        let (name, _) = entry.split_once(':')?;
        self.repositories.iter().find(|repository| repository.name == name)
    }
}

impl ImageRepository {
    fn read(entry: &mut Section<'_>) -> Self {
        let name: String = entry.required("name");
        if name.contains(|c: char| c == ':' || c.is_whitespace()) {
            entry.problem("name", "must have no colon and no space");
        }
        let repository: String = entry.required("repository");
        let last = repository.rsplit('/').next().unwrap_or(&repository).to_owned();
        let tags: Vec<String> = entry.or_default("tags");
        let newest: Option<usize> = entry.optional("newest");
        if newest == Some(0) {
            entry.problem("newest", "must be at least 1");
        }
        Self {
            tags: tags.iter().map(|pattern| WildMatch::new(pattern)).collect(),
            versions: entry.parsed("versions", |text| {
                VersionReq::parse(text)
                    .map_err(|error| format!("is not a range such as \">=2.0, <3\": {error}"))
            }),
            newest,
            label: entry.optional("label").unwrap_or_else(|| format!("{last} {{tag}}")),
            description: entry.optional("description"),
            recommended: entry.or_default("recommended"),
            prepull: entry.or_default("prepull"),
            groups: entry.or_default("groups"),
            program: Program::read(entry),
            name,
            repository,
        }
    }

    fn offers(&self, tag: &str) -> bool {
        let fits = self.tags.is_empty() || self.tags.iter().any(|pattern| pattern.matches(tag));
        let in_range = |versions: &VersionReq| version(tag).is_some_and(|version| versions.matches(&version));
        fits && self.versions.as_ref().is_none_or(in_range)
    }

    /// The tags that are offered, newest first, as the service gives them.
    fn offered(&self) -> impl Iterator<Item = String> {
        let tags = host::images(&self.repository).into_iter().map(|image| image.tag);
        tags.filter(|tag| self.offers(tag)).take(self.newest.unwrap_or(usize::MAX))
    }

    /// The entries of the menu.
    fn entries(&self) -> Vec<Entry> {
        let entry = |(at, tag): (usize, String)| Entry {
            description: self.description.clone(),
            group: Some(self.repository.clone()),
            recommended: self.recommended && at == 0,
            ..Entry::new(
                format!("{}:{tag}", self.name),
                self.reference(&tag),
                self.label.replace("{tag}", &tag),
            )
        };
        self.offered().enumerate().map(entry).collect()
    }

    /// The images that nodes pull.
    fn wanted(&self) -> Vec<String> {
        self.offered().take(self.prepull).map(|tag| self.reference(&tag)).collect()
    }

    fn reference(&self, tag: &str) -> String {
        format!("{}:{tag}", self.repository)
    }
}

/// Parses a tag as a version: `2.0.1`, `v2.0.1` or, for short, `2.0`.
fn version(tag: &str) -> Option<Version> {
    let tag = tag.strip_prefix('v').unwrap_or(tag);
    let (numbers, _) = tag.split_once(['-', '+']).unwrap_or((tag, ""));
    let missing = match numbers.split('.').count() {
        1 => ".0.0",
        2 => ".0",
        _ => "",
    };
    Version::parse(&format!("{numbers}{missing}{}", &tag[numbers.len()..])).ok()
}

impl hooks::Images for DefaultPolicy {
    /// Returns the menu. A site that has only a list offers it in this policy's form.
    fn menu(&self, user: &User, _: &str) -> Result<Option<ImageMenu>, Error> {
        if !self.images.are_a_menu() {
            return Ok(None);
        }
        let default = self.images.list.default(user).map(|entry| entry.name.as_str());
        let listed = self.images.list.open_entries(user).map(|entry| Entry {
            digest: entry.value.image.digest.clone(),
            description: entry.description.clone(),
            recommended: self.images.list.has_default() && default == Some(entry.name.as_str()),
            place: Place::First,
            ..Entry::new(&entry.name, &entry.value.image.reference, &entry.label)
        });
        let mut entries: Vec<Entry> = listed.collect();
        let open = |repository: &&ImageRepository| {
            repository.groups.is_empty() || user.is_in_any(&repository.groups)
        };
        entries.extend(self.images.repositories.iter().filter(open).flat_map(ImageRepository::entries));
        Ok(Some(ImageMenu { entries, classes: Vec::new() }))
    }

    fn prepull(&self) -> Result<Vec<WantedImage>, Error> {
        Ok(self.wanted_images())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use wasmspawner_sdk::testing::{KnownImages, TestKit};

    use super::*;

    const LAB: &str = "quay.io/site/lab";

    fn site(repository: &Value) -> TestKit<DefaultPolicy> {
        let mut merged = json!({"name": "lab", "repository": LAB});
        merged.as_object_mut().unwrap().extend(repository.as_object().unwrap().clone());
        TestKit::new(&json!({
            "images": [{"name": "old", "label": "Old", "reference": "quay.io/old:1", "groups": ["staff"]}],
            "image_repositories": [merged]
        }))
        .unwrap()
    }

    fn known() -> KnownImages {
        let tags = ["latest", "v3.0.0", "2.1", "2.0.1", "2.0.0-rc1", "1.9"];
        KnownImages::default().repository(LAB, tags.map(|tag| (tag, "sha256:0")))
    }

    fn names(repository: &Value, user: &User) -> Vec<String> {
        let menu = site(repository).menu(user, &known()).unwrap().unwrap();
        menu.entries.into_iter().map(|entry| entry.name).collect()
    }

    #[test]
    fn a_repository_gives_the_tags_that_are_asked_for() {
        let ada = User::named("ada");
        for (repository, expected) in [
            (json!({"newest": 2}), vec!["lab:latest", "lab:v3.0.0"]),
            (json!({"tags": ["2.*", "lat*"]}), vec!["lab:latest", "lab:2.1", "lab:2.0.1", "lab:2.0.0-rc1"]),
            (json!({"versions": ">=2.0, <3"}), vec!["lab:2.1", "lab:2.0.1"]),
            (json!({"versions": "*", "newest": 1}), vec!["lab:v3.0.0"]),
            (json!({"groups": ["staff"]}), vec![]),
        ] {
            assert_eq!(names(&repository, &ada), expected, "{repository}");
        }
        let staff = User::named("eve").in_group("staff");
        assert_eq!(names(&json!({"newest": 1, "groups": ["staff"]}), &staff), ["old", "lab:latest"]);
    }

    #[test]
    fn labels_have_the_tag_and_the_newest_is_recommended() {
        let repository = json!({"tags": ["2.*"], "label": "Science {tag}", "recommended": true});
        let menu = site(&repository).menu(&User::named("ada"), &known()).unwrap().unwrap();
        let shown: Vec<_> =
            menu.entries.iter().map(|entry| (entry.label.as_str(), entry.recommended)).collect();
        assert_eq!(shown, [("Science 2.1", true), ("Science 2.0.1", false), ("Science 2.0.0-rc1", false)]);
        assert_eq!(menu.entries[0].reference, "quay.io/site/lab:2.1");
    }

    #[test]
    fn the_service_chooses_the_image_and_the_policy_what_runs_in_it() {
        let site = site(&json!({"command": ["start"], "port": 8787}));
        let staff = User::named("eve").in_group("staff");
        assert!(site.fields(&staff).unwrap().is_empty(), "the service has the field");
        let chosen = json!({"image": "lab:2.1"});
        let lab = site.customize(&staff, &chosen).unwrap();
        assert_eq!((lab.image, lab.command), (None, Some(vec!["start".to_owned()])));
        assert_eq!(site.lab_server(&staff, &chosen).unwrap().port, Some(8787));
        let listed = site.customize(&staff, &json!({"image": "old"})).unwrap();
        assert_eq!(listed.image.unwrap().reference, "quay.io/old:1");
        assert!(site.customize(&staff, &json!({"image": "other"})).is_err());
    }

    #[test]
    fn names_that_the_menu_cannot_have_are_refused() {
        let config = json!({
            "images": [{"name": "Data science", "reference": "a"}, {"name": "lab:2.0", "reference": "b"}],
            "image_repositories": [{"name": "lab", "repository": LAB}]
        });
        let problems = TestKit::<DefaultPolicy>::new(&config).err().unwrap();
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems.iter().all(|problem| problem.field == "/images"));
    }

    #[test]
    fn wrong_repositories_are_refused_by_key() {
        let config = json!({"image_repositories": [
            {"name": "a:b", "repository": "x", "versions": "newest", "newest": 0}, {"name": "c"}, {"name": "c", "repository": "y"}
        ]});
        let problems = TestKit::<DefaultPolicy>::new(&config).err().unwrap();
        let fields: Vec<_> = problems.iter().map(|problem| problem.field.as_str()).collect();
        assert_eq!(
            fields,
            [
                "/image_repositories/0/name",
                "/image_repositories/0/newest",
                "/image_repositories/0/versions",
                "/image_repositories/1/repository",
                "/image_repositories/2/name"
            ]
        );
    }
}
