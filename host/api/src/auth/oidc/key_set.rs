//! The public keys of a provider (RFC 7517).

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;

use wasmspawner_outgoing::json_problem;

/// The most keys that are accepted from one provider. Real providers have fewer than ten.
const MAX_KEYS: usize = 100;

/// The keys of a provider that can check signatures of tokens.
#[derive(Default)]
pub(super) struct KeySet(Vec<Key>);

struct Key {
    id: Option<String>,
    /// The algorithms that the key may be used with. They are all asymmetric.
    algorithms: Vec<Algorithm>,
    decoding: DecodingKey,
}

/// A key set as providers publish it. Keys of unknown kinds are skipped.
#[derive(Deserialize)]
struct Published {
    keys: Vec<Value>,
}

impl KeySet {
    /// Parses a published key set and keeps its usable keys.
    pub(super) fn parse(json: &[u8]) -> Result<Self, String> {
        let Published { keys } =
            serde_json::from_slice(json).map_err(|error| format!("no key set: {}", json_problem(&error)))?;
        if keys.len() > MAX_KEYS {
            return Err(format!("{} keys; at most {MAX_KEYS} are read", keys.len()));
        }
        let keys: Vec<Key> = keys.into_iter().filter_map(Key::parse).collect();
        if keys.is_empty() {
            Err("no key for signatures with RSA, P-256, P-384 or Ed25519".into())
        } else {
            Ok(Self(keys))
        }
    }

    /// True if a newer version of the key set could not add anything about this `kid` and algorithm.
    pub(super) fn knows(&self, id: Option<&str>, algorithm: Algorithm) -> bool {
        match id {
            Some(_) => self.0.iter().any(|key| key.id.as_deref() == id),
            None => self.0.iter().any(|key| key.algorithms.contains(&algorithm)),
        }
    }

    /// The key with this `kid` that may be used with the algorithm. Without a `kid`, exactly one key must match: trying
    /// all of them would let a stranger choose how much the service computes.
    pub(super) fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<&DecodingKey> {
        let mut fitting = self
            .0
            .iter()
            .filter(|key| key.algorithms.contains(&algorithm) && (id.is_none() || key.id.as_deref() == id));
        let found = fitting.next()?;
        fitting.next().is_none().then_some(&found.decoding)
    }
}

impl Key {
    fn parse(json: Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(json).ok()?;
        let common = &jwk.common;
        let for_signatures = matches!(common.public_key_use, None | Some(PublicKeyUse::Signature));
        let may_verify =
            common.key_operations.as_ref().is_none_or(|all| all.contains(&KeyOperations::Verify));
        if !for_signatures || !may_verify {
            return None;
        }
        let mut algorithms = algorithms(&jwk.algorithm).to_vec();
        if let Some(only) = common.key_algorithm {
            algorithms.retain(|algorithm| only == (*algorithm).into());
        }
        let decoding = DecodingKey::from_jwk(&jwk).ok()?;
        (!algorithms.is_empty()).then(|| Self { id: jwk.common.key_id, algorithms, decoding })
    }
}

/// The algorithms for a kind of key. A shared secret (`oct`) has none: anyone who can check its signatures can also
/// make them.
fn algorithms(key: &AlgorithmParameters) -> &'static [Algorithm] {
    match key {
        AlgorithmParameters::RSA(_) => &[
            Algorithm::RS256,
            Algorithm::RS384,
            Algorithm::RS512,
            Algorithm::PS256,
            Algorithm::PS384,
            Algorithm::PS512,
        ],
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => &[Algorithm::ES256],
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P384 => &[Algorithm::ES384],
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => &[Algorithm::EdDSA],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const X: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";

    fn set(keys: &Value) -> Result<KeySet, String> {
        KeySet::parse(json!({ "keys": keys }).to_string().as_bytes())
    }

    /// Columns: what the key says about itself, an algorithm, and whether it may be used with it.
    #[test]
    fn a_key_is_used_for_what_it_is_meant_for() {
        let ed = |more: Value| {
            let mut key = json!({ "kty": "OKP", "crv": "Ed25519", "x": X, "kid": "a" });
            key.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            key
        };
        let ec = |curve: &str| json!({ "kty": "EC", "crv": curve, "x": X, "y": X, "kid": "a" });
        let rsa = |alg: &str| json!({ "kty": "RSA", "n": X, "e": "AQAB", "kid": "a", "alg": alg });
        for (key, algorithm, expected) in [
            (ed(json!({})), Algorithm::EdDSA, true),
            (ed(json!({ "use": "sig", "alg": "EdDSA", "key_ops": ["verify"] })), Algorithm::EdDSA, true),
            (ed(json!({ "use": "enc" })), Algorithm::EdDSA, false),
            (ed(json!({ "key_ops": ["sign"] })), Algorithm::EdDSA, false),
            (ed(json!({ "alg": "ES256" })), Algorithm::EdDSA, false),
            (ed(json!({ "alg": "HS256" })), Algorithm::HS256, false),
            (ed(json!({})), Algorithm::ES256, false),
            (ed(json!({ "crv": "X25519" })), Algorithm::EdDSA, false),
            (ec("P-256"), Algorithm::ES256, true),
            (ec("P-256"), Algorithm::ES384, false),
            (ec("P-384"), Algorithm::ES384, true),
            (ec("P-521"), Algorithm::ES384, false),
            (ec("secp256k1"), Algorithm::ES256, false),
            (rsa("RS256"), Algorithm::RS256, true),
            (rsa("RS256"), Algorithm::PS256, false),
            (rsa("RSA-OAEP"), Algorithm::RS256, false),
            (rsa("none"), Algorithm::RS256, false),
            (json!({ "kty": "oct", "k": X, "kid": "a", "alg": "HS256" }), Algorithm::HS256, false),
            (json!({ "kty": "oct", "k": X, "kid": "a" }), Algorithm::EdDSA, false),
            (json!("no key"), Algorithm::EdDSA, false),
        ] {
            let other = json!({ "kty": "OKP", "crv": "Ed25519", "x": X, "kid": "other" });
            let set = set(&json!([other, key])).unwrap();
            assert_eq!(set.find(Some("a"), algorithm).is_some(), expected, "{key} {algorithm:?}");
            assert!(set.find(Some("other"), Algorithm::EdDSA).is_some(), "{key}");
        }
    }

    #[test]
    fn without_a_kid_one_key_alone_has_to_fit() {
        let ed = |kid: &str| json!({ "kty": "OKP", "crv": "Ed25519", "x": X, "kid": kid });
        let one = set(&json!([ed("a"), { "kty": "EC", "crv": "P-256", "x": X, "y": X }])).unwrap();
        let two = set(&json!([ed("a"), ed("b")])).unwrap();
        assert!(one.find(None, Algorithm::EdDSA).is_some() && one.find(None, Algorithm::ES256).is_some());
        assert!(
            two.find(None, Algorithm::EdDSA).is_none() && two.find(Some("b"), Algorithm::EdDSA).is_some()
        );
        assert!(two.knows(None, Algorithm::EdDSA) && !two.knows(None, Algorithm::ES256));
        assert!(two.knows(Some("a"), Algorithm::ES256), "its kind would be the same in another version");
        assert!(!two.knows(Some("c"), Algorithm::EdDSA));
    }

    #[test]
    fn a_set_without_usable_keys_or_with_too_many_is_refused() {
        let ed = json!({ "kty": "OKP", "crv": "Ed25519", "x": X });
        for (keys, expected) in [
            (json!([]), "no key for signatures"),
            (json!([{ "kty": "oct", "k": X }]), "no key for signatures"),
            (json!("keys"), "no key set"),
            (vec![ed; MAX_KEYS + 1].into(), "101 keys; at most 100"),
        ] {
            let error = set(&keys).err().unwrap();
            assert!(error.contains(expected), "{error}");
        }
        assert!(KeySet::parse(b"<html>").is_err());
    }
}
