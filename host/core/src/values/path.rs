//! Rules for strings that Kubernetes validates without defining a type for them.

use std::net::IpAddr;

/// Returns true for an absolute path without `..` and without characters that Kubernetes refuses in mounts.
pub(crate) fn is_absolute(path: &str) -> bool {
    path.starts_with('/') && is_plain(path)
}

/// Returns true for a relative path that stays below its starting point.
pub(crate) fn is_relative(path: &str) -> bool {
    !path.is_empty() && !path.starts_with('/') && is_plain(path)
}

/// Returns the path without steps that lead nowhere: `/a/b` for `/a//./b/`.
pub(crate) fn plain(path: &str) -> String {
    let steps = path.split('/').filter(|step| !step.is_empty() && *step != ".");
    steps.fold(String::new(), |path, step| path + "/" + step)
}

/// Returns true if one of the paths is the other, or lies below it.
pub(crate) fn are_nested(one: &str, other: &str) -> bool {
    let (one, other) = (plain(one), plain(other));
    is_below(&one, &other) || is_below(&other, &one)
}

/// Returns true if `path` is `prefix` or lies below it.
pub(crate) fn is_below(path: &str, prefix: &str) -> bool {
    let prefix = prefix.trim_end_matches('/');
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns true if `path`, the dotted path of a field, is `prefix` or lies below it.
pub(crate) fn is_field_at_or_below(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Returns true for the name or the address of one host. Mount programs accept other texts, too, and read `a,b` as `a`.
pub(crate) fn is_host(host: &str) -> bool {
    let inside = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_');
    let name = host.strip_suffix('.').unwrap_or(host);
    let is_name = name.split('.').all(|label| !label.is_empty() && label.bytes().all(inside));
    // Resolvers read `10.1` as the address `10.0.0.1`, so a name does not end with a number.
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_number =
        last.bytes().all(|c| c.is_ascii_digit()) || last.starts_with("0x") || last.starts_with("0X");
    is_name && !is_number || address(host).is_some()
}

/// Returns the address if the host is given by one. IPv6 addresses may be in brackets.
pub(crate) fn address(host: &str) -> Option<IpAddr> {
    let in_brackets = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    match in_brackets {
        Some(address) => address.parse().ok().map(IpAddr::V6),
        None => host.parse().ok(),
    }
}

/// Returns true for a valid key of a `ConfigMap` or Secret.
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
        for good in ["nfs", "NFS.example.org.", "nfs_1.svc", "1.nfs", "10.0.0.1", "fd00::1", "[fd00::1]"] {
            assert!(is_host(good), "{good}");
        }
        for bad in
            ["", ".", "a..b", "a,b", "a:", "a/b", "a b", "10.1", "010.0.0.1", "0xa000001", "10.0.0.1.", "[a]"]
        {
            assert!(!is_host(bad), "{bad}");
        }
        assert!(is_key(".dockerconfigjson") && !is_key("a/b") && !is_key("..") && !is_key(""));
    }
}
