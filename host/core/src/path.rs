//! Rules for strings that Kubernetes validates without defining a type for them.

/// True for an absolute path without `..` and without characters that Kubernetes refuses in mounts.
pub(crate) fn is_absolute(path: &str) -> bool {
    path.starts_with('/') && is_plain(path)
}

/// True for a relative path that stays below its starting point.
pub(crate) fn is_relative(path: &str) -> bool {
    !path.is_empty() && !path.starts_with('/') && is_plain(path)
}

/// True if `path` is `prefix` or lies below it.
pub(crate) fn is_below(path: &str, prefix: &str) -> bool {
    let prefix = prefix.trim_end_matches('/');
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// True if the dotted path of a field `path` is `prefix` or lies below it.
pub(crate) fn is_field_at_or_below(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// True for a valid key of a `ConfigMap` or Secret.
pub(crate) fn is_key(key: &str) -> bool {
    let inside = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
    !key.is_empty() && key.len() <= 253 && key.bytes().all(inside) && key != "." && !key.starts_with("..")
}

fn is_plain(path: &str) -> bool {
    path.len() <= 4096
        && !path.contains(':')
        && !path.chars().any(char::is_control)
        && path.split('/').all(|step| step != "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_path_accepts_only_its_own() {
        for good in ["/", "/home/ada", "/a/./b"] {
            assert!(is_absolute(good), "{good}");
        }
        for bad in ["", "home", "/a/../b", "/a:b", "/a\n", "/.."] {
            assert!(!is_absolute(bad), "{bad}");
        }
        assert!(is_relative("a/b") && !is_relative("/a") && !is_relative("../a") && !is_relative(""));
        assert!(
            is_below("/data/a", "/data") && is_below("/data", "/data/") && !is_below("/database", "/data")
        );
        assert!(is_key(".dockerconfigjson") && !is_key("a/b") && !is_key("..") && !is_key(""));
    }
}
