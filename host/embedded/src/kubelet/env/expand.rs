//! `$(VAR)` in values, commands and arguments.
//!
//! Source: Kubernetes API, `Container.args`: a reference that cannot be resolved stays as it is; `$$` is a literal `$`.

/// Replaces `$(NAME)` by what `lookup` knows.
pub(crate) fn expand<'a>(text: &str, lookup: impl Fn(&str) -> Option<&'a str>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        out.push_str(&rest[..dollar]);
        let after = &rest[dollar + 1..];
        if let Some(tail) = after.strip_prefix('$') {
            out.push('$');
            rest = tail;
        } else if let Some((name, tail)) = after.strip_prefix('(').and_then(|inner| inner.split_once(')')) {
            if let Some(value) = lookup(name) {
                out.push_str(value);
            } else {
                out.push_str(&rest[dollar..rest.len() - tail.len()]);
            }
            rest = tail;
        } else {
            out.push('$');
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::expand;

    #[test]
    fn follows_the_rules_of_kubernetes() {
        let lookup = |name: &str| match name {
            "USER" => Some("alice"),
            "EMPTY" => Some(""),
            "NESTED" => Some("$(USER)"),
            _ => None,
        };
        for (text, expect) in [
            ("plain", "plain"),
            ("$(USER)", "alice"),
            ("/home/$(USER)/x", "/home/alice/x"),
            ("$(EMPTY)", ""),
            ("$(MISSING)", "$(MISSING)"),
            ("$$(USER)", "$(USER)"),
            ("$$$(USER)", "$alice"),
            ("$(NESTED)", "$(USER)"),
            ("$(USER", "$(USER"),
            ("$USER ${USER}", "$USER ${USER}"),
            ("cost: 5$", "cost: 5$"),
            ("$(USER)$(USER)", "alicealice"),
            ("é$(USER)é", "éaliceé"),
        ] {
            assert_eq!(expand(text, lookup), expect, "{text:?}");
        }
    }
}
