//! Expands `$(NAME)` in variables, as Kubernetes does in a container's `env` (`Expand` of
//! `third_party/forked/golang/expansion`): a known variable is replaced by its value, an unknown one stays as it is, and
//! `$$` is `$`.
//!
//! Other than in Kubernetes, a reference to a credential stays as it is, and so does one in text of the user: the host cannot
//! know which part of a policy's text came from the user, so no reference counts that overlaps a text which the user could
//! choose.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::names::EnvName;

/// The longest chain of variables that refer to each other.
const MAX_CHAIN: usize = 32;

/// The variables of a lab.
pub(super) struct References<'a> {
    /// The texts in which references are expanded, by the variable.
    pub(super) expanded: BTreeMap<&'a EnvName, &'a str>,
    /// The values of the other variables to which a text may refer.
    pub(super) plain: BTreeMap<&'a EnvName, &'a str>,
    /// Variables of `expanded` whose values are credentials.
    pub(super) is_credential: &'a dyn Fn(&EnvName, &str) -> bool,
    /// The texts that the user could choose, that could be a part of a reference, and that may be in the variable.
    pub(super) of_user: &'a dyn Fn(&EnvName) -> &'a [&'a str],
    /// The largest length of a value, in bytes.
    pub(super) max_bytes: usize,
}

/// A value became too long.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

impl References<'_> {
    /// Returns the values of the texts that are expanded.
    pub(super) fn values(&self) -> Result<BTreeMap<EnvName, String>, TooLong> {
        let mut known = BTreeMap::new();
        for name in self.expanded.keys() {
            self.value(name, &mut Vec::new(), &mut known)?;
        }
        Ok(known.into_iter().map(|(name, value)| (name.clone(), value)).collect())
    }

    fn value<'b>(
        &'b self,
        name: &'b EnvName,
        chain: &mut Vec<&'b EnvName>,
        known: &mut BTreeMap<&'b EnvName, String>,
    ) -> Result<String, TooLong> {
        if let Some(value) = known.get(name) {
            return Ok(value.clone());
        }
        let text = self.expanded.get(name).copied().unwrap_or_default();
        chain.push(name);
        let value = self.expand(text, (self.of_user)(name), chain, known)?;
        chain.pop();
        known.insert(name, value.clone());
        Ok(value)
    }

    fn expand<'b>(
        &'b self,
        text: &str,
        of_user: &[&str],
        chain: &mut Vec<&'b EnvName>,
        known: &mut BTreeMap<&'b EnvName, String>,
    ) -> Result<String, TooLong> {
        let of_user = places(of_user, text);
        let overlaps =
            |span: Range<usize>| of_user.iter().any(|user| user.start < span.end && span.start < user.end);
        let mut out = String::new();
        let mut at = 0;
        while let Some(dollar) = text[at..].find('$').map(|found| at + found) {
            out.push_str(&text[at..dollar]);
            let rest = &text[dollar + 1..];
            at = dollar + 1;
            if rest.starts_with('$') && !overlaps(dollar..dollar + 2) {
                out.push('$');
                at += 1;
            } else if let Some((name, length)) = reference(rest)
                && !overlaps(dollar..dollar + 1 + length)
                && let Some(value) = self.referred(name, chain, known)?
            {
                out.push_str(&value);
                at += length;
            } else {
                out.push('$');
            }
            if out.len() > self.max_bytes {
                return Err(TooLong);
            }
        }
        out.push_str(&text[at..]);
        Ok(out)
    }

    /// The value of the variable to which a text refers; `None` if the reference stays as it is.
    fn referred<'b>(
        &'b self,
        name: &str,
        chain: &mut Vec<&'b EnvName>,
        known: &mut BTreeMap<&'b EnvName, String>,
    ) -> Result<Option<String>, TooLong> {
        let Ok(name) = EnvName::parse(name) else { return Ok(None) };
        if let Some(value) = self.plain.get(&name) {
            return Ok(Some((*value).to_owned()));
        }
        let Some((name, text)) = self.expanded.get_key_value(&name) else { return Ok(None) };
        if chain.contains(name) || chain.len() >= MAX_CHAIN || (self.is_credential)(name, text) {
            return Ok(None);
        }
        let value = self.value(name, chain, known)?;
        Ok((!(self.is_credential)(name, &value)).then_some(value))
    }
}

/// The places at which one of these parts is in a text.
fn places(parts: &[&str], text: &str) -> Vec<Range<usize>> {
    let of = |part: &str| {
        let starts = text.char_indices().map(|(at, _)| at).filter(|at| text[*at..].starts_with(part));
        starts.map(|at| at..at + part.len()).collect::<Vec<_>>()
    };
    parts.iter().filter(|part| !part.is_empty()).flat_map(|part| of(part)).collect()
}

/// The name in `(NAME)` at the beginning of a text, and the length with the parentheses.
fn reference(text: &str) -> Option<(&str, usize)> {
    let (name, _) = text.strip_prefix('(')?.split_once(')')?;
    Some((name, name.len() + 2))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(text: &str) -> EnvName {
        EnvName::parse(text).unwrap()
    }

    /// The value of `X` where the operator wrote `texts`, the Hub sent `plain`, and the user could choose `of_user`.
    fn value(texts: &[(&str, &str)], plain: &[(&str, &str)], of_user: &[&str]) -> Result<String, TooLong> {
        let texts: Vec<_> = texts.iter().map(|(key, text)| (name(key), *text)).collect();
        let plain: Vec<_> = plain.iter().map(|(key, text)| (name(key), *text)).collect();
        let references = References {
            expanded: texts.iter().map(|(name, text)| (name, *text)).collect(),
            plain: plain.iter().map(|(name, text)| (name, *text)).collect(),
            is_credential: &|name, text| name.as_str().contains("TOKEN") || text.contains("hunter2"),
            of_user: &|_| of_user,
            max_bytes: 1000,
        };
        references.values().map(|values| values[&name("X")].clone())
    }

    #[test]
    fn references_are_expanded_as_kubernetes_does() {
        let user = [("JUPYTERHUB_USER", "ada")];
        for (text, expected) in [
            ("s3://b/$(JUPYTERHUB_USER)", "s3://b/ada"),
            ("$(JUPYTERHUB_USER)$(JUPYTERHUB_USER)", "adaada"),
            ("$$(JUPYTERHUB_USER)", "$(JUPYTERHUB_USER)"),
            ("$$$(JUPYTERHUB_USER)", "$ada"),
            ("a$$b $c $", "a$b $c $"),
            ("$(UNKNOWN) $(JUPYTERHUB_USER", "$(UNKNOWN) $(JUPYTERHUB_USER"),
            ("$() $(a b) ${JUPYTERHUB_USER}", "$() $(a b) ${JUPYTERHUB_USER}"),
            ("$(A)", "1-2"),
            ("$(X)", "$(X)"),
            ("$(LOOP)", "$(LOOP)!"),
            ("é$(JUPYTERHUB_USER)é", "éadaé"),
        ] {
            let loops = if text == "$(LOOP)" { "$(LOOP)!" } else { "" };
            let texts = [("X", text), ("A", "1-$(B)"), ("B", "2"), ("LOOP", loops)];
            assert_eq!(value(&texts, &user, &[]).unwrap(), expected, "{text}");
        }
        // A value is not expanded again.
        assert_eq!(value(&[("X", "$(Y)"), ("Z", "z")], &[("Y", "$(Z)")], &[]).unwrap(), "$(Z)");
        assert_eq!(value(&[("X", "$(Y)"), ("Y", "$(X)")], &[], &[]).unwrap(), "$(X)");
    }

    #[test]
    fn a_credential_is_never_expanded() {
        let texts = [
            ("X", "$(MY_TOKEN) $(URL) $(VIA)"),
            ("MY_TOKEN", "abc"),
            ("URL", "hunter2"),
            ("VIA", "$(MY_TOKEN)"),
        ];
        assert_eq!(value(&texts, &[], &[]).unwrap(), "$(MY_TOKEN) $(URL) $(MY_TOKEN)");
        let joined = [("X", "$(VIA)"), ("VIA", "hun$(PART)"), ("PART", "ter2")];
        assert_eq!(value(&joined, &[], &[]).unwrap(), "$(VIA)");
    }

    #[test]
    fn text_of_the_user_stays_as_it_is() {
        let user = [("JUPYTERHUB_USER", "ada"), ("B", "b")];
        for (text, of_user, expected) in [
            ("$(JUPYTERHUB_USER)", &["$(JUPYTERHUB_USER)"][..], "$(JUPYTERHUB_USER)"),
            ("$(B)/$(JUPYTERHUB_USER)", &["$(JUPYTERHUB_USER)"], "b/$(JUPYTERHUB_USER)"),
            ("a$(B)", &["(B)"], "a$(B)"),
            ("a$(B)", &["a$"], "a$(B)"),
            ("a$$(B)", &["a$"], "a$b"),
            ("$$$(B)", &["$$$(B)"], "$$$(B)"),
            ("$(B) (x)", &["(x)"], "b (x)"),
            ("$(B)", &[""], "b"),
        ] {
            assert_eq!(value(&[("X", text)], &user, of_user).unwrap(), expected, "{text} {of_user:?}");
        }
    }

    #[test]
    fn values_that_grow_without_end_are_refused() {
        let names: Vec<String> = (0..40).map(|number| format!("A{number}")).collect();
        let texts: Vec<String> = (1..=40).map(|number| format!("$(A{number})$(A{number})")).collect();
        let mut chain: Vec<_> =
            names.iter().map(String::as_str).zip(texts.iter().map(String::as_str)).collect();
        chain.push(("X", "$(A0)"));
        assert_eq!(value(&chain, &[], &[]), Err(TooLong));
    }

    proptest! {
        /// Whatever an operator writes around it, a user's text is in the result as it was typed, and no credential is.
        #[test]
        fn neither_a_user_nor_an_operator_gets_a_credential(
            before in "[$()AT_OKEN ]{0,8}", typed in "[$()AT_OKEN]{1,8}", after in "[$()AT_OKEN ]{0,8}",
        ) {
            let text = format!("{before}{typed}{after}");
            let marked = typed.contains(['$', '(', ')']);
            let of_user: &[&str] = if marked { &[&typed] } else { &[] };
            let found = value(&[("X", &text), ("A_TOKEN", "1secret"), ("TOKEN", "2secret")], &[("A", "a")], of_user);
            let found = found.unwrap();
            prop_assert!(!found.contains("secret"), "{found}");
            prop_assert!(!marked || found.contains(&typed), "{found}");
        }
    }
}
