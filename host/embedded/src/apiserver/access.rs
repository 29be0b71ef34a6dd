//! Who may talk to the server over the network.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The bearer token that lets a caller in. There is no authorization: whoever has it may do everything.
#[derive(Clone)]
pub struct Access {
    /// The token's digest, so that neither a dump of memory nor the time of a comparison gives the token away.
    digest: [u8; 32],
}

impl Access {
    /// Lets in who presents `token`.
    pub fn token(token: &str) -> Self {
        Self { digest: Sha256::digest(token.as_bytes()).into() }
    }

    /// Whether the value of an `Authorization` header lets its sender in.
    pub(super) fn admits(&self, authorization: Option<&str>) -> bool {
        let Some((scheme, token)) = authorization.and_then(|header| header.split_once(' ')) else {
            return false;
        };
        let digest: [u8; 32] = Sha256::digest(token.trim().as_bytes()).into();
        scheme.eq_ignore_ascii_case("bearer") && bool::from(self.digest.ct_eq(&digest))
    }
}

#[cfg(test)]
mod tests {
    use super::Access;

    #[test]
    fn only_the_token_is_let_in() {
        let access = Access::token("s3cret");
        assert!(access.admits(Some("Bearer s3cret")));
        for refused in [None, Some("Bearer s3cre"), Some("Bearer "), Some("Basic s3cret"), Some("s3cret")] {
            assert!(!access.admits(refused), "{refused:?}");
        }
    }
}
