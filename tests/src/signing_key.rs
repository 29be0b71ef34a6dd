//! Keys that sign tokens. They do not use the library with which the service checks tokens.

use anyhow::anyhow;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::rsa::{KeyPairComponents, PublicKeyComponents};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use serde_json::{Value, json};

/// A key with its `kid`.
pub struct SigningKey {
    id: String,
    pair: Pair,
}

enum Pair {
    Rsa(Box<RsaKeyPair>),
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl SigningKey {
    /// The RSA key of RFC 7515, appendix A.2, whose public and private parts are published.
    pub fn rsa(id: &str) -> anyhow::Result<Self> {
        let decoded = |text: &str| URL_SAFE_NO_PAD.decode(text);
        let components = KeyPairComponents {
            public_key: PublicKeyComponents { n: decoded(N)?, e: decoded("AQAB")? },
            d: decoded(D)?,
            p: decoded(P)?,
            q: decoded(Q)?,
            dP: decoded(DP)?,
            dQ: decoded(DQ)?,
            qInv: decoded(QI)?,
        };
        let pair = RsaKeyPair::from_components(&components).map_err(|error| anyhow!("{error}"))?;
        Ok(Self { id: id.into(), pair: Pair::Rsa(Box::new(pair)) })
    }

    /// A new key for ES256.
    pub fn p256(id: &str) -> anyhow::Result<Self> {
        let (random, scheme) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let encoded = EcdsaKeyPair::generate_pkcs8(scheme, &random).map_err(|error| anyhow!("{error}"))?;
        let pair = EcdsaKeyPair::from_pkcs8(scheme, encoded.as_ref(), &random);
        Ok(Self { id: id.into(), pair: Pair::P256(pair.map_err(|error| anyhow!("{error}"))?) })
    }

    /// A new key for `EdDSA`.
    pub fn ed25519(id: &str) -> anyhow::Result<Self> {
        let encoded =
            Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|error| anyhow!("{error}"))?;
        let pair = Ed25519KeyPair::from_pkcs8(encoded.as_ref()).map_err(|error| anyhow!("{error}"))?;
        Ok(Self { id: id.into(), pair: Pair::Ed25519(pair) })
    }

    /// The public part, as a JSON Web Key.
    pub fn public(&self) -> Value {
        let mut key = match &self.pair {
            Pair::Rsa(_) => json!({ "kty": "RSA", "n": N, "e": "AQAB" }),
            Pair::P256(pair) => {
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({ "kty": "EC", "crv": "P-256", "x": encode(x), "y": encode(y) })
            }
            Pair::Ed25519(pair) => json!({ "kty": "OKP", "crv": "Ed25519", "x": encode(pair.public_key()) }),
        };
        key["kid"] = json!(self.id);
        key["use"] = json!("sig");
        key["alg"] = json!(self.algorithm());
        key
    }

    /// The header of its tokens.
    pub fn header(&self) -> Value {
        json!({ "alg": self.algorithm(), "typ": "JWT", "kid": self.id })
    }

    /// A token with these claims.
    pub fn token(&self, claims: &Value) -> anyhow::Result<String> {
        self.token_with(&self.header(), claims)
    }

    /// A token with this header and these claims. It is signed with this key, whatever the header says.
    pub fn token_with(&self, header: &Value, claims: &Value) -> anyhow::Result<String> {
        let message = message(header, claims);
        let signature = self.sign(message.as_bytes())?;
        Ok(format!("{message}.{}", encode(signature)))
    }

    fn sign(&self, message: &[u8]) -> anyhow::Result<Vec<u8>> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)
                    .map_err(|error| anyhow!("{error}"))?;
                Ok(signature)
            }
            Pair::P256(pair) => {
                Ok(pair.sign(&random, message).map_err(|error| anyhow!("{error}"))?.as_ref().to_vec())
            }
            Pair::Ed25519(pair) => Ok(pair.sign(message).as_ref().to_vec()),
        }
    }

    fn algorithm(&self) -> &'static str {
        match &self.pair {
            Pair::Rsa(_) => "RS256",
            Pair::P256(_) => "ES256",
            Pair::Ed25519(_) => "EdDSA",
        }
    }
}

/// The part of a token that is signed.
pub fn message(header: &Value, claims: &Value) -> String {
    format!("{}.{}", encode(header.to_string()), encode(claims.to_string()))
}

/// A token with this header and these claims, signed with HMAC-SHA-256 and a shared secret.
pub fn token_with_secret(secret: &[u8], header: &Value, claims: &Value) -> String {
    let message = message(header, claims);
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
    let signature = ring::hmac::sign(&key, message.as_bytes());
    format!("{message}.{}", encode(signature))
}

/// Base64 as in tokens.
pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

const N: &str = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2l\
                 ZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTB\
                 EMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91k\
                 zk2PAcDTW9gb54h4FRWyuXpoQ";
const D: &str = "Eq5xpGnNCivDflJsRQBXHx1hdR1k6Ulwe2JZD50LpXyWPEAeP88vLNO97IjlA7_GQ5sLKMgvfTeXZx9SE-7YwVol2NXOoAJe\
                 46sui395IW_GO-pWJ1O0BkTGoVEn2bKVRUCgu-GjBVaYLU6f3l9kJfFNS3E0QbVdxzubSu3Mkqzjkn439X0M_V51gfpRLI9J\
                 YanrC4D4qAdGcopV_0ZHHzQlBjudU2QvXt4ehNYTCBr6XCLQUShb1juUO1ZdiYoFaFQT5Tw8bGUl_x_jTj3ccPDVZFD9pIuh\
                 LhBOneufuBiB4cS98l2SR_RQyGWSeWjnczT0QU91p1DhOVRuOopznQ";
const P: &str = "4BzEEOtIpmVdVEZNCqS7baC4crd0pqnRH_5IB3jw3bcxGn6QLvnEtfdUdiYrqBdss1l58BQ3KhooKeQTa9AB0Hw_Py5PJdTJ\
                 NPY8cQn7ouZ2KKDcmnPGBY5t7yLc1QlQ5xHdwW1VhvKn-nXqhJTBgIPgtldC-KDV5z-y2XDwGUc";
const Q: &str = "uQPEfgmVtjL0Uyyx88GZFF1fOunH3-7cepKmtH4pxhtCoHqpWmT8YAmZxaewHgHAjLYsp1ZSe7zFYHj7C6ul7TjeLQeZD_Yw\
                 D66t62wDmpe_HlB-TnBA-njbglfIsRLtXlnDzQkv5dTltRJ11BKBBypeeF6689rjcJIDEz9RWdc";
const DP: &str = "BwKfV3Akq5_MFZDFZCnW-wzl-CCo83WoZvnLQwCTeDv8uzluRSnm71I3QCLdhrqE2e9YkxvuxdBfpT_PI7Yz-FOKnu1R6HsJ\
                  eDCjn12Sk3vmAktV2zb34MCdy7cpdTh_YVr7tss2u6vneTwrA86rZtu5Mbr1C1XsmvkxHQAdYo0";
const DQ: &str = "h_96-mK1R_7glhsum81dZxjTnYynPbZpHziZjeeHcXYsXaaMwkOlODsWa7I9xXDoRwbKgB719rrmI2oKr6N3Do9U0ajaHF-N\
                  KJnwgjMd2w9cjz3_-kyNlxAr2v4IKhGNpmM5iIgOS1VZnOZ68m6_pbLBSp3nssTdlqvd0tIiTHU";
const QI: &str = "IYd7DHOhrWvxkwPQsRM2tOgrjbcrfvtQJipd-DlcxyVuuM9sQLdgjVk2oy26F0EmpScGLq2MowX7fhd_QJQ3ydy5cY7YIBi8\
                  7w93IKLEdfnbJtoOPLUW0ITrJReOgo1cq9SbsxYawBgfp_gh6A5603k2-ZQwVK0JKSHuLFkuQ3U";
