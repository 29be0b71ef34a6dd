//! Courses with nbgrader. In their labs, students and instructors of a course find its exchange and its shared files,
//! and instructors also its course directory.

use wasmspawner_sdk::pod::{Customization, EnvVar, Mount, Volume};
use wasmspawner_sdk::{Error, Info, Options, Policy, Section, User, export, hooks};

/// The courses of a site. Students of a course are in the group of its name; its graders are in another one.
pub struct Nbgrader {
    server: String,
    export: String,
    courses: Vec<Course>,
}

struct Course {
    name: String,
    students: String,
    instructors: String,
}

impl Course {
    fn read(entry: &mut Section<'_>) -> Self {
        let name: String = entry.required("name");
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') {
            entry
                .problem("name", "may have letters, digits, `-` and `_` only; it is the name of a directory");
        }
        let group = |given: Option<String>, usual: String| given.unwrap_or(usual);
        Self {
            students: group(entry.optional("students"), format!("course-{name}")),
            instructors: group(entry.optional("instructors"), format!("formgrade-{name}")),
            name,
        }
    }
}

impl Policy for Nbgrader {
    fn info() -> Info {
        Info {
            name: "course".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            description: "Files of courses with nbgrader".into(),
        }
    }

    fn from_config(config: &mut Section<'_>) -> Self {
        let nfs = config.section("nfs", |nfs| (nfs.required("server"), nfs.required("path")));
        if nfs.is_none() {
            config.problem("nfs", "is missing");
        }
        let (server, export) = nfs.unwrap_or_default();
        Self { server, export, courses: config.list("courses", Course::read) }
    }
}

impl hooks::BuildPod for Nbgrader {
    fn customize(&self, user: &User, _server: &str, _options: &Options) -> Result<Customization, Error> {
        let mut lab = Customization::default();
        for course in &self.courses {
            let grades = user.is_in(&course.instructors);
            if !grades && !user.is_in(&course.students) {
                continue;
            }
            let name = &course.name;
            let mount = |part: &str| {
                Mount::new("courses", format!("/courses/{name}/{part}")).sub_path(format!("{name}/{part}"))
            };
            // nbgrader checks write permissions in its exchange by the owners of the files.
            lab.mounts.push(mount("exchange"));
            lab.mounts.push(if grades { mount("shared") } else { mount("shared").read_only() });
            if grades {
                lab.mounts.push(mount("grading"));
            }
        }
        if !lab.mounts.is_empty() {
            lab.volumes.push(Volume::nfs("courses", &self.server, &self.export));
            lab.env.push(EnvVar::literal("COURSES", "/courses"));
        }
        Ok(lab)
    }
}

export!(Nbgrader: build_pod);

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wasmspawner_sdk::testing::TestKit;

    use super::*;

    fn mounts(user: &User) -> Vec<(String, bool)> {
        let nfs = json!({"server": "nfs.example.org", "path": "/export/courses"});
        let courses = json!([{"name": "physics"}, {"name": "chemistry", "students": "chem"}]);
        let policy = TestKit::<Nbgrader>::new(&json!({"nfs": nfs, "courses": courses})).unwrap();
        let lab = policy.customize(user, &json!({})).unwrap();
        assert_eq!(lab.volumes.len(), usize::from(!lab.mounts.is_empty()));
        lab.mounts.into_iter().map(|mount| (mount.path, mount.read_only)).collect()
    }

    #[test]
    fn students_read_what_is_shared_and_instructors_write_it() {
        let shared = |read_only| ("/courses/physics/shared".to_owned(), read_only);
        let exchange = ("/courses/physics/exchange".to_owned(), false);
        let student = User::named("eve").in_group("course-physics");
        assert_eq!(mounts(&student), [exchange.clone(), shared(true)]);
        let instructor = User::named("ada").in_group("course-physics").in_group("formgrade-physics");
        let grading = ("/courses/physics/grading".to_owned(), false);
        assert_eq!(mounts(&instructor), [exchange, shared(false), grading]);
    }

    #[test]
    fn who_is_in_no_course_has_none_of_its_files() {
        assert!(
            mounts(&User::named("eve").in_group("course-chemistry")).is_empty(),
            "that course has another group"
        );
        assert_eq!(mounts(&User::named("eve").in_group("chem")).len(), 2);
    }

    #[test]
    fn the_name_of_a_course_leads_nowhere_else() {
        let config = json!({"nfs": {"server": "s", "path": "/"}, "courses": [{"name": "../homes"}]});
        assert_eq!(TestKit::<Nbgrader>::new(&config).err().unwrap()[0].field, "/courses/0/name");
    }
}
