//! The blueprints of a site together with those that are objects in the cluster.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{BlueprintSpec, Library};
use crate::names::ObjectName;

/// The blueprints of a site together with those that are objects in the cluster. Blueprints that cannot be used are
/// left out, so a mistake in one object does not affect the users of others.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExtendedLibrary {
    /// The usable blueprints.
    pub library: Library,
    /// The blueprints that cannot be used, by name.
    pub unusable: BTreeMap<String, UnusableBlueprint>,
}

/// An object that is not a valid blueprint, or that cannot be resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct UnusableBlueprint {
    /// The object's `spec`.
    pub spec: Map<String, Value>,
    /// The reason why the blueprint cannot be used.
    pub problem: String,
}

impl ExtendedLibrary {
    /// Adds objects, given by their names, to the blueprints of the site's configuration. Configured blueprints take
    /// precedence over objects of the same name, and may not depend on objects.
    pub fn new<'a>(
        configured: &Library,
        objects: impl IntoIterator<Item = (&'a str, &'a Map<String, Value>)>,
    ) -> Self {
        let mut library = configured.clone();
        let mut unusable = BTreeMap::new();
        let mut added: BTreeMap<ObjectName, &Map<String, Value>> = BTreeMap::new();
        for (name, spec) in objects {
            match read(configured, name, spec) {
                Ok((name, read)) => {
                    library.0.insert(name.clone(), read);
                    added.insert(name, spec);
                }
                Err(problem) => {
                    unusable.insert(name.to_owned(), UnusableBlueprint { spec: spec.clone(), problem });
                }
            }
        }
        // A blueprint that extends one that is left out is left out, too.
        loop {
            let wrong: Vec<(ObjectName, String)> = added
                .keys()
                .filter_map(|name| {
                    let wrong = library.check(name, library.0.get(name)?).err()?;
                    Some((name.clone(), format!("`{}`: {}", wrong.field, wrong.problem)))
                })
                .collect();
            if wrong.is_empty() {
                return Self { library, unusable };
            }
            for (name, problem) in wrong {
                library.0.remove(&name);
                if let Some(spec) = added.remove(&name) {
                    unusable.insert(name.into(), UnusableBlueprint { spec: spec.clone(), problem });
                }
            }
        }
    }
}

fn read(
    configured: &Library,
    name: &str,
    spec: &Map<String, Value>,
) -> Result<(ObjectName, BlueprintSpec), String> {
    let parsed = ObjectName::parse(name).map_err(|error| error.to_string())?;
    if configured.has(&parsed) {
        return Err(format!("`{name}` is in the configuration of the site, too; give it another name"));
    }
    let spec = serde_json::from_value(Value::Object(spec.clone())).map_err(|error| error.to_string())?;
    Ok((parsed, spec))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_object_takes_nothing_from_others() {
        let configured = "{base: {env: {SITE: here}}, gpu: {extends: [base]}}";
        let configured = Library::new(serde_saphyr::from_str(configured).unwrap()).unwrap();
        let objects: BTreeMap<String, Map<String, Value>> = serde_saphyr::from_str(
            "
            course: {extends: [base], displayName: Course}
            seminar: {extends: [course, lost]}
            gpu: {image: 'other'}
            lost: {extends: [gone]}
            loop: {extends: [loop]}
            typo: {imgae: scipy}
            number: {env: {A: 1}}
            disk: {volumes: [{name: disk, mountPath: /disk}]}
            Not-A-Name: {}
            ",
        )
        .unwrap();
        let extended =
            ExtendedLibrary::new(&configured, objects.iter().map(|(name, spec)| (name.as_str(), spec)));
        let names: Vec<_> = extended.library.all().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["base", "course", "gpu"]);
        assert_eq!(extended.library.entry(&ObjectName::parse("gpu").unwrap()).unwrap().1.image, None);
        let told: Vec<_> = extended
            .unusable
            .iter()
            .map(|(name, unusable)| format!("{name}: {}", unusable.problem))
            .collect();
        insta::assert_snapshot!(told.join("\n"));
    }
}
