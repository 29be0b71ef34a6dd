//! Parsing of paths into the objects that they refer to.

/// The target of a path: the objects of a kind, one of them, or a subresource of one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target<'a> {
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    pub(super) namespace: Option<&'a str>,
    pub(super) plural: &'a str,
    pub(super) name: Option<&'a str>,
    pub(super) subresource: Option<&'a str>,
}

impl<'a> Target<'a> {
    /// Parses a path. `None` if it is not about objects.
    pub(super) fn parse(path: &'a str) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let (namespace, plural, rest) = match rest {
            // The subresources of a namespace are not kinds in it.
            ["namespaces", _, "status" | "finalize"] | ["namespaces"] | ["namespaces", _] => {
                (None, "namespaces", &rest[1..])
            }
            ["namespaces", namespace, plural, rest @ ..] => (Some(*namespace), *plural, rest),
            [plural, rest @ ..] => (None, *plural, rest),
            [] => return None,
        };
        let (name, subresource) = match rest {
            [] => (None, None),
            [name] => (Some(*name), None),
            [name, subresource] => (Some(*name), Some(*subresource)),
            _ => return None,
        };
        Some(Self { group, version, namespace, plural, name, subresource })
    }
}
