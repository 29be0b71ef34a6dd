//! User strings: one short text that names a user and the lab that the user wants.
//!
//! | text | meaning |
//! |---|---|
//! | `ada` | the lab of her default server |
//! | `ada/gpu` | the lab of her server `gpu`, which uses the blueprint `gpu` if there is one |
//! | `ada~blueprint=gpu` | the same, or an error if there is no such blueprint |
//! | `ada~repo=org/project` | a lab as the repository describes it |
//! | `ada~workload=deployment/shop/web` | a lab in the pods of a workload |
//! | `ada/gpu~kernel=6f1a`, `ada~dask-pool=tides` | a kernel or a pool of such a lab, where it may be named |
//!
//! Several settings may follow each other. In names, `%` and `~` are percent-encoded: `ada%7E1` is the user `ada~1`.

mod parse;
mod repository;
mod wanted;

use std::fmt::{self, Write as _};

pub use parse::{InvalidUserString, UserStringProblem};
pub use repository::{InvalidRepository, Repository};
pub use wanted::Wanted;

use crate::names::lab::LabKey;
use crate::names::spawn_key::{ChildKey, ChildKind, SpawnKey};
use crate::names::{ServerName, Username};

/// A user, and the lab that the user wants. The text form is canonical: equal user strings have the same text, even if
/// they were parsed from different texts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UserString {
    /// The user.
    pub user: Username,
    /// The server, if the text names one.
    pub server: Option<ServerName>,
    /// The properties of the lab.
    pub wanted: Wanted,
}

impl UserString {
    /// Returns the lab that the text identifies. Equal texts identify the same lab, so that a second request finds the
    /// lab of the first one.
    ///
    /// Without a server in the text, the lab's server follows from the settings. It is the default server if there are
    /// none, the server of a blueprint's name if the blueprint is the only setting, and otherwise a server with a name
    /// made from all of them.
    pub fn lab(&self) -> LabKey {
        let server = self.server.clone().unwrap_or_else(|| self.wanted.server());
        LabKey::new(self.user.clone(), server)
    }
}

/// A lab that a user string names, or a kernel or pool of that lab.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SpawnString {
    /// The lab.
    pub lab: UserString,
    /// The child of the lab, if the text names one.
    pub child: Option<ChildKey>,
}

impl SpawnString {
    /// Returns the lab or child that the text identifies.
    pub fn key(&self) -> SpawnKey {
        SpawnKey { lab: self.lab.lab(), child: self.child.clone() }
    }
}

impl From<UserString> for SpawnString {
    fn from(lab: UserString) -> Self {
        Self { lab, child: None }
    }
}

impl fmt::Display for SpawnString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.lab)?;
        match &self.child {
            Some(ChildKey { kind: ChildKind::Kernel, name }) => write!(f, "~{}={name}", parse::KERNEL),
            Some(ChildKey { kind: ChildKind::DaskPool, name }) => write!(f, "~{}={name}", parse::DASK_POOL),
            None => Ok(()),
        }
    }
}

impl fmt::Display for UserString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_name(f, self.user.as_str())?;
        if let Some(server) = &self.server {
            f.write_char('/')?;
            write_name(f, server.as_str())?;
        }
        self.wanted.fmt(f)
    }
}

/// Writes a name, with the characters percent-encoded that have a meaning in a user string.
fn write_name(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    for character in name.chars() {
        match character {
            '%' => f.write_str("%25")?,
            '~' => f.write_str("%7E")?,
            _ => f.write_char(character)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> UserString {
        UserString::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn the_lab_of_each_form() {
        for (text, canonical, lab) in [
            ("ada", "ada", "ada"),
            ("ada/gpu", "ada/gpu", "ada/gpu"),
            ("ada~blueprint=gpu", "ada~blueprint=gpu", "ada/gpu"),
            ("ada~repo=org/project", "ada~repo=org/project", "ada/org-project-dee4d51e"),
            (
                "ada~workload=deployment/shop/web",
                "ada~workload=deployment/shop/web",
                "ada/deployment-shop-web-a25dc58b",
            ),
            ("ada/mine~repo=org/project", "ada/mine~repo=org/project", "ada/mine"),
            (
                "ada~repo=org/project~blueprint=gpu",
                "ada~blueprint=gpu~repo=org/project",
                "ada/gpu-org-project-7a26b0ad",
            ),
            ("Some Name%7E1%25/x=y", "Some Name%7E1%25/x=y", "Some Name~1%/x=y"),
            ("%61da", "ada", "ada"),
        ] {
            let parsed = parse(text);
            assert_eq!((parsed.to_string().as_str(), parsed.lab().to_string().as_str()), (canonical, lab));
        }
    }

    #[test]
    fn a_child_is_named_after_its_lab() {
        for (text, canonical, key) in [
            ("ada", "ada", "ada"),
            ("ada~kernel=6f1a", "ada~kernel=6f1a", "ada kernel 6f1a"),
            ("ada/gpu~dask-pool=tides", "ada/gpu~dask-pool=tides", "ada/gpu Dask pool tides"),
            ("ada~kernel=k~blueprint=gpu", "ada~blueprint=gpu~kernel=k", "ada/gpu kernel k"),
        ] {
            let parsed = SpawnString::parse(text).unwrap();
            assert_eq!((parsed.to_string().as_str(), parsed.key().to_string().as_str()), (canonical, key));
        }
        for text in ["ada~kernel=", "ada~kernel=-k", "ada~kernel=a~kernel=b", "ada~kernel=a~dask-pool=b"] {
            SpawnString::parse(text).unwrap_err();
        }
    }

    #[test]
    fn a_mistake_is_told_with_its_place() {
        let mistakes = [
            "",
            "/gpu",
            "ada/",
            "ada/a/b",
            "ada~",
            "ada~blueprint",
            "ada~blueprint=",
            "ada~blueprint=G P U",
            "ada~kernel=6f1a",
            "ada~colour=red",
            "ada~repo=a/b~repo=c/d",
            "ada~repo=project",
            "ada~repo=org/../secret",
            "ada~repo=https://git.example.org/a",
            "ada~workload=pod/shop/web",
            "ada~workload=deployment/web",
            "ada~workload=deployment/shop/Web",
            "ü%zz",
            "ada%FF",
            "ada%2Fgrace",
        ];
        let told: Vec<_> = mistakes
            .map(|text| format!("{text:?}: {}", UserString::parse(text).unwrap_err()))
            .into_iter()
            .collect();
        insta::assert_snapshot!(told.join("\n"));
    }

    fn name() -> impl Strategy<Value = String> {
        "[a-zA-Z0-9~%=@ü._-]{1,12}".prop_filter("a name", |name| Username::parse(name.as_str()).is_ok())
    }

    fn wanted() -> impl Strategy<Value = Wanted> {
        let blueprint = proptest::option::of("[a-z][a-z0-9]{0,8}");
        let repository = proptest::option::of("[a-z]{1,5}(/[A-Za-z0-9._-]{1,5}x){1,3}");
        let workload = proptest::option::of("(deployment|statefulset|daemonset)/[a-z]{1,5}/[a-z]{1,5}");
        (blueprint, repository, workload).prop_map(|(blueprint, repository, workload)| Wanted {
            blueprint: blueprint.map(|name| crate::names::ObjectName::parse(name).unwrap()),
            repository: repository.map(|name| Repository::parse(&name).unwrap()),
            workload: workload.map(|name| crate::workload::Workload::parse(&name).unwrap()),
        })
    }

    proptest! {
        #[test]
        fn what_is_printed_is_parsed_as_the_same(user in name(), server in proptest::option::of(name()), wanted in wanted()) {
            let user = Username::parse(user).unwrap();
            let server = server.map(|server| ServerName::parse(server).unwrap());
            let written = UserString { user, server, wanted };
            prop_assert_eq!(UserString::parse(&written.to_string()).unwrap(), written);
        }

        #[test]
        fn any_text_is_parsed_or_refused(text: String) {
            if let Ok(parsed) = UserString::parse(&text) {
                prop_assert_eq!(UserString::parse(&parsed.to_string()).unwrap(), parsed.clone());
                prop_assert_eq!(SpawnString::parse(&text).unwrap(), SpawnString::from(parsed));
            }
        }

        #[test]
        fn a_child_is_never_taken_for_its_lab(server in proptest::option::of(name()), wanted in wanted(), child in "[a-z0-9][a-z0-9._-]{0,9}") {
            let server = server.map(|server| ServerName::parse(server).unwrap());
            let lab = UserString { user: Username::parse("ada").unwrap(), server, wanted };
            for kind in [ChildKind::Kernel, ChildKind::DaskPool] {
                let name = crate::names::ChildName::parse(child.as_str()).unwrap();
                let written = SpawnString { lab: lab.clone(), child: Some(ChildKey { kind, name }) };
                prop_assert!(UserString::parse(&written.to_string()).is_err());
                prop_assert_eq!(SpawnString::parse(&written.to_string()).unwrap(), written);
            }
        }

        /// Two user strings with different texts never identify the same lab.
        #[test]
        fn different_wishes_are_different_labs(one in wanted(), other in wanted()) {
            prop_assume!(one != other);
            prop_assert_ne!(one.server(), other.server());
        }
    }
}
