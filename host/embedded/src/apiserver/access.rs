//! Who may talk to the server over the network.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// A caller. There is no authorization: whoever is let in may do everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The user name, e.g. `alice` or `system:admin`.
    pub name: String,
    /// The user's groups, e.g. `system:masters`.
    pub groups: Vec<String>,
}

impl Identity {
    /// A user in no group.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), groups: Vec::new() }
    }

    /// The user of calls inside the process.
    pub fn admin() -> Self {
        Self { name: "system:admin".to_owned(), groups: vec!["system:masters".to_owned()] }
    }
}

/// The bearer tokens that let a caller in.
#[derive(Clone, Default)]
pub struct Access {
    /// Digests, so that neither a dump of memory nor the time of a comparison tells a token.
    tokens: Vec<([u8; 32], Identity)>,
    anonymous: Option<Identity>,
    beyond_loopback: bool,
}

impl Access {
    /// Lets nobody in.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets in who presents `token`, as `identity`.
    #[must_use]
    pub fn token(mut self, token: &str, identity: Identity) -> Self {
        self.tokens.push((Sha256::digest(token.as_bytes()).into(), identity));
        self
    }

    /// Lets everybody in who presents no token, as `identity`. A wrong token is refused still.
    #[must_use]
    pub fn anonymous(mut self, identity: Identity) -> Self {
        self.anonymous = Some(identity);
        self
    }

    /// Allows listening on other addresses than loopback. Whoever is let in may do everything, and the
    /// [`Certificate`](super::Certificate) is for loopback: put something in front that does TLS.
    #[must_use]
    pub fn allow_beyond_loopback(mut self) -> Self {
        self.beyond_loopback = true;
        self
    }

    pub(super) fn allows_beyond_loopback(&self) -> bool {
        self.beyond_loopback
    }

    /// Who calls, by the value of the `Authorization` header. Every token is compared, in constant time.
    pub(super) fn identify(&self, authorization: Option<&str>) -> Option<Identity> {
        let Some(authorization) = authorization else { return self.anonymous.clone() };
        let (scheme, token) = authorization.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let digest: [u8; 32] = Sha256::digest(token.trim().as_bytes()).into();
        let mut known = None;
        for (candidate, identity) in &self.tokens {
            if bool::from(candidate.ct_eq(&digest)) {
                known = Some(identity);
            }
        }
        known.cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::{Access, Identity};

    #[test]
    fn only_known_tokens_are_let_in() {
        let access = Access::new().token("s3cret", Identity::new("alice"));
        assert_eq!(access.identify(Some("Bearer s3cret")), Some(Identity::new("alice")));
        for refused in [None, Some("Bearer s3cre"), Some("Bearer "), Some("Basic s3cret"), Some("s3cret")] {
            assert_eq!(access.identify(refused), None, "{refused:?}");
        }
    }

    #[test]
    fn anonymous_callers_are_let_in_when_told_so_but_wrong_tokens_are_not() {
        let access = Access::new().anonymous(Identity::new("anyone"));
        assert_eq!(access.identify(None), Some(Identity::new("anyone")));
        assert_eq!(access.identify(Some("Bearer wrong")), None);
    }
}
