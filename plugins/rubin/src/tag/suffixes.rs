/// The suffixes after the version in a tag: `_c<cycle>.<build>`, `_rsp<n>`, `_<anything>`, `-<architecture>`, each
/// optional, in this order. Numbers are kept as written, with leading zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Suffixes<'a> {
    pub(super) cycle: Option<&'a str>,
    pub(super) cycle_build: Option<&'a str>,
    pub(super) rsp_build: Option<&'a str>,
    pub(super) extra: Option<&'a str>,
    pub(super) architecture: Option<&'a str>,
}

impl<'a> Suffixes<'a> {
    /// Reads all of `text`.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (body, architecture) = split_architecture(text);
        let suffixes = Self::without_architecture(body);
        match (suffixes, architecture) {
            (Some(suffixes), _) => Some(Self { architecture, ..suffixes }),
            (None, Some(_)) => Self::without_architecture(text),
            (None, None) => None,
        }
    }

    fn without_architecture(text: &'a str) -> Option<Self> {
        if let Some((cycle, cycle_build, rest)) = cycle(text)
            && let Some(suffixes) = Self::after_cycle(rest)
        {
            return Some(Self { cycle: Some(cycle), cycle_build: Some(cycle_build), ..suffixes });
        }
        Self::after_cycle(text)
    }

    fn after_cycle(text: &'a str) -> Option<Self> {
        if let Some((rsp_build, rest)) = text.strip_prefix("_rsp").and_then(digits)
            && let Some(suffixes) = Self::after_builds(rest)
        {
            return Some(Self { rsp_build: Some(rsp_build), ..suffixes });
        }
        Self::after_builds(text)
    }

    fn after_builds(text: &'a str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::default());
        }
        let extra = text.strip_prefix('_').filter(|extra| !extra.is_empty())?;
        Some(Self { extra: Some(extra), ..Self::default() })
    }
}

/// Splits `_c<cycle>.<build>` off the beginning. Returns the cycle, the build and the rest.
fn cycle(text: &str) -> Option<(&str, &str, &str)> {
    let (cycle, rest) = text.strip_prefix("_c").and_then(digits)?;
    let (build, rest) = rest.strip_prefix('.').and_then(digits)?;
    Some((cycle, build, rest))
}

/// Splits `-<architecture>` off the end.
pub(super) fn split_architecture(text: &str) -> (&str, Option<&str>) {
    let is_architecture = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    match text.rsplit_once('-') {
        Some((before, architecture)) if is_architecture(architecture) => (before, Some(architecture)),
        _ => (text, None),
    }
}

/// Splits the digits off the beginning of a text, if there are any.
pub(super) fn digits(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_text_is_read() {
        let none = Suffixes::default();
        let cycle = Suffixes { cycle: Some("0020"), cycle_build: Some("001"), ..none };
        let extra = |extra| Suffixes { extra: Some(extra), ..none };
        for (text, expected) in [
            ("", Some(none)),
            ("_c0020.001", Some(cycle)),
            ("_c0020.001_rsp19", Some(Suffixes { rsp_build: Some("19"), ..cycle })),
            ("_rsp19_c0020.001", Some(Suffixes { rsp_build: Some("19"), ..extra("c0020.001") })),
            ("_c0020", Some(extra("c0020"))),
            ("_c0020.001x", Some(extra("c0020.001x"))),
            ("_c0020.001_", Some(extra("c0020.001_"))),
            ("_rsp", Some(extra("rsp"))),
            ("_a-b-c", Some(Suffixes { architecture: Some("c"), ..extra("a-b") })),
            ("_a-B", Some(extra("a-B"))),
            ("_-arm64", Some(extra("-arm64"))),
            ("-arm64", Some(Suffixes { architecture: Some("arm64"), ..none })),
            ("_", None),
            ("-", None),
            ("-ARM", None),
            ("x", None),
        ] {
            assert_eq!(Suffixes::parse(text), expected, "{text}");
        }
    }
}
