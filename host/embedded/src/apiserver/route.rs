//! What a path is about.

/// A path of the API.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Route<'a> {
    /// `/healthz`, `/livez`, `/readyz` and what is below them.
    Health,
    /// `/version`
    Version,
    /// `/api`
    CoreVersions,
    /// `/apis`
    Groups,
    /// `/apis/{group}`
    Group(&'a str),
    /// `/api/v1` or `/apis/{group}/{version}`
    Kinds { group: &'a str, version: &'a str },
    /// `/openapi/v3`
    OpenApiIndex,
    /// `/openapi/v3/api/v1` or `/openapi/v3/apis/{group}/{version}`
    OpenApi { group: &'a str, version: &'a str },
    /// Objects of a kind, or one of them, or a part of one.
    Objects(Target<'a>),
    /// None of these.
    Unknown,
}

/// Objects of a kind, or one of them, or a part of one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target<'a> {
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    pub(super) namespace: Option<&'a str>,
    pub(super) plural: &'a str,
    pub(super) name: Option<&'a str>,
    pub(super) subresource: Option<&'a str>,
}

impl<'a> Route<'a> {
    /// Reads a path.
    pub(super) fn parse(path: &'a str) -> Self {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        match parts.as_slice() {
            ["healthz" | "livez" | "readyz", ..] => Self::Health,
            ["version"] => Self::Version,
            ["api"] => Self::CoreVersions,
            ["apis"] => Self::Groups,
            ["apis", group] => Self::Group(group),
            ["api", version] => Self::Kinds { group: "", version },
            ["apis", group, version] => Self::Kinds { group, version },
            ["openapi", "v3"] => Self::OpenApiIndex,
            ["openapi", "v3", "api", version] => Self::OpenApi { group: "", version },
            ["openapi", "v3", "apis", group, version] => Self::OpenApi { group, version },
            ["api", version, rest @ ..] => Self::objects("", version, rest),
            ["apis", group, version, rest @ ..] => Self::objects(group, version, rest),
            _ => Self::Unknown,
        }
    }

    fn objects(group: &'a str, version: &'a str, rest: &[&'a str]) -> Self {
        let (namespace, plural, rest) = match rest {
            // A namespace's own parts are not kinds inside of it.
            ["namespaces", _, "status" | "finalize"] | ["namespaces"] | ["namespaces", _] => {
                (None, "namespaces", &rest[1..])
            }
            ["namespaces", namespace, plural, rest @ ..] => (Some(*namespace), *plural, rest),
            [plural, rest @ ..] => (None, *plural, rest),
            [] => return Self::Unknown,
        };
        let (name, subresource) = match rest {
            [] => (None, None),
            [name] => (Some(*name), None),
            [name, subresource] => (Some(*name), Some(*subresource)),
            _ => return Self::Unknown,
        };
        Self::Objects(Target { group, version, namespace, plural, name, subresource })
    }
}

#[cfg(test)]
mod tests {
    use super::Route;

    /// The parts of a path about objects, `-` for those that it has not.
    fn parts(path: &str) -> String {
        let Route::Objects(target) = Route::parse(path) else { return "-".to_owned() };
        let optional = [target.namespace, Some(target.plural), target.name, target.subresource];
        optional.map(|part| part.unwrap_or("-")).join(" ")
    }

    #[test]
    fn paths_name_kinds_objects_and_their_parts() {
        for (path, expected) in [
            ("/api/v1/namespaces/n/pods", "n pods - -"),
            ("/api/v1/namespaces/n/pods/a/log", "n pods a log"),
            ("/api/v1/pods", "- pods - -"),
            ("/api/v1/namespaces", "- namespaces - -"),
            ("/api/v1/namespaces/n/finalize", "- namespaces n finalize"),
            ("/apis/example.com/v1/things/x", "- things x -"),
            ("/api/v1/pods/a/b/c", "-"),
        ] {
            assert_eq!(parts(path), expected, "{path}");
        }
    }

    #[test]
    fn the_rest_is_discovery_or_unknown() {
        assert_eq!(Route::parse("/api"), Route::CoreVersions);
        assert_eq!(Route::parse("/apis/apps/v1"), Route::Kinds { group: "apps", version: "v1" });
        assert_eq!(Route::parse("/readyz/ping"), Route::Health);
        assert_eq!(Route::parse("/"), Route::Unknown);
    }
}
