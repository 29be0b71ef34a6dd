//! The address at which a single-user server listens.

/// The variable from which a single-user server takes its address.
pub(super) const SERVICE_URL: &str = "JUPYTERHUB_SERVICE_URL";

/// Replaces the port of a URL. Returns `None` if the text is not a URL.
pub(super) fn with_port(url: &str, port: u16) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = match authority.rsplit_once(':') {
        Some((host, number)) if number.bytes().all(|c| c.is_ascii_digit()) => host,
        _ => authority,
    };
    Some(format!("{scheme}://{host}:{port}{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_gets_another_port() {
        for (url, expected) in [
            ("http://0.0.0.0:8888/user/ada/", Some("http://0.0.0.0:8787/user/ada/")),
            ("http://lab/user/a:1/", Some("http://lab:8787/user/a:1/")),
            ("https://[::1]:8888", Some("https://[::1]:8787")),
            ("http://[::1]/x", Some("http://[::1]:8787/x")),
            ("0.0.0.0:8888", None),
        ] {
            assert_eq!(with_port(url, 8787).as_deref(), expected, "{url}");
        }
    }
}
