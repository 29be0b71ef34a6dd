//! The claims of an access token whose signature, issuer, audience and times are already checked (RFC 7519, RFC 9068).

use std::fmt;

use serde_json::{Map, Value};

use crate::config::auth::{ClaimName, OidcAuth};
use crate::names::Username;
use crate::users::access::ScopeSet;

/// The claims of a token.
pub struct Claims(Value);

/// The user whom a token describes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenUser {
    /// The username.
    pub username: Username,
    /// UID and GID, if the token has them.
    pub numbers: Option<(u32, u32)>,
    /// The names of the user's groups; `None` if the token does not list them.
    pub groups: Option<Vec<String>>,
    /// The mail address, unless the provider says that nobody has verified it.
    pub email: Option<String>,
    /// The full name.
    pub display_name: Option<String>,
    /// The scopes that the token carries.
    pub scopes: ScopeSet,
}

/// A claim that makes a token unusable. The error says nothing that the sender of the token cannot read in the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("its claim `{claim}` {problem}")]
pub struct BadClaim {
    /// The name of the claim.
    pub claim: String,
    /// The problem with the claim.
    pub problem: String,
}

impl Claims {
    /// Wraps the claims of a token's payload.
    pub fn new(payload: Map<String, Value>) -> Self {
        Self(Value::Object(payload))
    }

    /// Returns the user whom the token describes. Tokens for other purposes, such as ID tokens, are refused.
    pub fn user(&self, config: &OidcAuth) -> Result<TokenUser, BadClaim> {
        self.check_purpose()?;
        let name =
            self.text(&config.username_claim)?.ok_or_else(|| bad(&config.username_claim, "is missing"))?;
        let username =
            Username::parse(name).map_err(|error| bad(&config.username_claim, error.to_string()))?;
        let groups = self.groups(&config.groups_claim)?;
        let of_token = self.scopes(config.scope_claim.as_ref())?;
        let scopes = config.scopes(&username, groups.as_deref().unwrap_or_default(), of_token);
        let uid = self.number(config.uid_claim.as_ref())?;
        let gid = self.number(config.gid_claim.as_ref())?;
        let verified = self.0.get("email_verified") != Some(&Value::Bool(false));
        let standard = |name| self.0.get(name).and_then(Value::as_str).map(str::to_owned);
        Ok(TokenUser {
            username,
            numbers: uid.zip(gid.or(uid)),
            groups,
            email: standard("email").filter(|_| verified),
            display_name: standard("name"),
            scopes,
        })
    }

    /// Refuses tokens that are not meant to be presented as bearer tokens. Keycloak states a token's purpose in `typ`,
    /// and only ID tokens have hashes of other tokens. The sender of a token with `cnf` would have to prove possession
    /// of a key (RFC 9449, section 7).
    fn check_purpose(&self) -> Result<(), BadClaim> {
        let bearer = |typ: &Value| typ.as_str().is_some_and(|typ| typ.eq_ignore_ascii_case("bearer"));
        if self.0.get("typ").is_some_and(|typ| !bearer(typ)) {
            return Err(bad("typ", "says that it is no access token"));
        }
        if let Some(hash) = ["at_hash", "c_hash"].into_iter().find(|hash| self.0.get(hash).is_some()) {
            return Err(bad(hash, "says that it is an ID token; send the access token"));
        }
        if self.0.get("cnf").is_some() {
            return Err(bad("cnf", "binds it to a key, which this service cannot check"));
        }
        Ok(())
    }

    fn text(&self, name: &ClaimName) -> Result<Option<&str>, BadClaim> {
        name.find(&self.0).map(|value| value.as_str().ok_or_else(|| bad(name, "is not text"))).transpose()
    }

    /// Reads a UID or GID. Providers that store attributes as text send digits as text.
    fn number(&self, name: Option<&ClaimName>) -> Result<Option<u32>, BadClaim> {
        let Some((name, value)) = name.and_then(|name| Some((name, name.find(&self.0)?))) else {
            return Ok(None);
        };
        let number = match value {
            Value::String(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok(),
            other => other.as_u64().and_then(|number| u32::try_from(number).ok()),
        };
        number.map(Some).ok_or_else(|| bad(name, format!("is not a number from 0 to {}", u32::MAX)))
    }

    fn groups(&self, name: &ClaimName) -> Result<Option<Vec<String>>, BadClaim> {
        let Some(value) = name.find(&self.0) else { return Ok(None) };
        let list = value.as_array().and_then(|list| {
            list.iter().map(|group| group.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        });
        list.map(Some).ok_or_else(|| bad(name, "is not a list of names"))
    }

    /// Reads the scopes of this service from the claim: a text with spaces between them (RFC 8693, section 4.2), or a
    /// list.
    fn scopes(&self, name: Option<&ClaimName>) -> Result<ScopeSet, BadClaim> {
        let Some((name, value)) = name.and_then(|name| Some((name, name.find(&self.0)?))) else {
            return Ok(ScopeSet::new());
        };
        match value {
            Value::String(text) => Ok(text.split(' ').filter_map(|scope| scope.parse().ok()).collect()),
            Value::Array(list) => {
                Ok(list.iter().filter_map(Value::as_str).filter_map(|scope| scope.parse().ok()).collect())
            }
            _ => Err(bad(name, "is neither text nor a list")),
        }
    }
}

fn bad(claim: impl fmt::Display, problem: impl Into<String>) -> BadClaim {
    BadClaim { claim: claim.to_string(), problem: problem.into() }
}

/// Shows no claims, because they are personal data.
impl fmt::Debug for Claims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Claims(..)")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::users::access::Scope;

    fn config(yaml: &str) -> OidcAuth {
        serde_saphyr::from_str(&format!("issuer: https://sso.example.org\naudience: wasmspawner\n{yaml}"))
            .unwrap()
    }

    fn user(claims: &Value, yaml: &str) -> Result<TokenUser, String> {
        let mut all = json!({ "preferred_username": "ada" });
        let (all, claims) = (all.as_object_mut().unwrap(), claims.as_object().unwrap());
        all.extend(claims.clone());
        Claims::new(all.clone()).user(&config(yaml)).map_err(|error| error.to_string())
    }

    fn ada() -> TokenUser {
        TokenUser {
            username: Username::parse("ada").unwrap(),
            numbers: None,
            groups: None,
            email: None,
            display_name: None,
            scopes: [Scope::ExecNotebook].into(),
        }
    }

    #[test]
    fn a_token_says_who_its_user_is() {
        let owned = |names: &[&str]| Some(names.iter().map(|&name| name.to_owned()).collect());
        let ids = "uid_claim: uid\ngid_claim: gid\n";
        let roles = "groups_claim: /realm_access/roles\nscope_claim: scp\n";
        for (claims, yaml, expected) in [
            (json!({}), "", ada()),
            (json!({ "groups": [] }), "", TokenUser { groups: owned(&[]), ..ada() }),
            (json!({ "groups": null }), "", ada()),
            (
                json!({ "groups": ["a", "/b"], "uid": 7 }),
                "",
                TokenUser { groups: owned(&["a", "/b"]), ..ada() },
            ),
            (
                json!({ "realm_access": { "roles": ["x"] } }),
                roles,
                TokenUser { groups: owned(&["x"]), ..ada() },
            ),
            (json!({ "uid": 7, "gid": "8" }), ids, TokenUser { numbers: Some((7, 8)), ..ada() }),
            (
                json!({ "uid": 4_294_967_295_u64 }),
                ids,
                TokenUser { numbers: Some((u32::MAX, u32::MAX)), ..ada() },
            ),
            (json!({ "gid": 8 }), ids, ada()),
            (
                json!({ "name": "Ada", "email": "a@b" }),
                "",
                TokenUser { display_name: Some("Ada".into()), email: Some("a@b".into()), ..ada() },
            ),
            (json!({ "email": "a@b", "email_verified": false }), "", ada()),
            (
                json!({ "scope": "openid admin:notebook x" }),
                "",
                TokenUser { scopes: [Scope::ExecNotebook, Scope::AdminNotebook].into(), ..ada() },
            ),
            (json!({ "scope": "admin:notebook" }), "scope_claim: null\n", ada()),
            (
                json!({ "scp": ["admin:notebook", 7] }),
                roles,
                TokenUser { scopes: [Scope::ExecNotebook, Scope::AdminNotebook].into(), ..ada() },
            ),
            (json!({ "typ": "Bearer" }), "", ada()),
        ] {
            assert_eq!(user(&claims, yaml), Ok(expected), "{claims} {yaml}");
        }
    }

    /// A claim that is present but cannot be understood is never treated as absent.
    #[test]
    fn a_token_with_an_unusable_claim_is_refused() {
        let ids = "uid_claim: uid\ngid_claim: gid\n";
        for (claims, yaml, expected) in [
            (json!({ "preferred_username": null }), "", "`preferred_username` is missing"),
            (json!({}), "username_claim: upn\n", "`upn` is missing"),
            (json!({ "preferred_username": 7 }), "", "`preferred_username` is not text"),
            (json!({ "preferred_username": "a/b" }), "", "`preferred_username`"),
            (json!({ "preferred_username": " ada" }), "", "`preferred_username`"),
            (json!({ "preferred_username": "" }), "", "`preferred_username`"),
            (json!({ "preferred_username": "ada\u{0}" }), "", "`preferred_username`"),
            (json!({ "groups": "staff" }), "", "`groups` is not a list of names"),
            (json!({ "groups": ["staff", 7] }), "", "`groups` is not a list of names"),
            (json!({ "uid": -1 }), ids, "`uid` is not a number"),
            (json!({ "uid": 4_294_967_296_u64 }), ids, "`uid` is not a number"),
            (json!({ "uid": 1.5 }), ids, "`uid` is not a number"),
            (json!({ "uid": "" }), ids, "`uid` is not a number"),
            (json!({ "uid": "+7" }), ids, "`uid` is not a number"),
            (json!({ "uid": 7, "gid": [8] }), ids, "`gid` is not a number"),
            (json!({ "scope": 7 }), "", "`scope` is neither"),
            (json!({ "typ": "ID" }), "", "`typ` says that it is no access token"),
            (json!({ "typ": "Refresh" }), "", "`typ` says that it is no access token"),
            (json!({ "typ": 7 }), "", "`typ` says that it is no access token"),
            (json!({ "at_hash": "x" }), "", "`at_hash` says that it is an ID token"),
            (json!({ "c_hash": "x" }), "", "`c_hash` says that it is an ID token"),
            (json!({ "cnf": { "jkt": "x" } }), "", "`cnf` binds it to a key"),
        ] {
            let error = user(&claims, yaml).unwrap_err();
            assert!(error.contains(expected), "{claims} {yaml}: {error}");
        }
    }
}
