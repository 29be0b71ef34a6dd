use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use wasmspawner_core::values::digest::Digest;
use wasmspawner_registry::{SIGNATURE_PREDICATE, StoredSignature};

/// The claim of a signature about artifacts. It is only true if the signature was made with a trusted key.
#[derive(Debug)]
pub(super) struct Claim {
    /// The signed bytes.
    pub(super) signed: Vec<u8>,
    /// The signatures of the bytes, by one key or several.
    pub(super) signatures: Vec<Vec<u8>>,
    /// The digests of the artifacts that the claim is about.
    pub(super) about: Vec<Digest>,
}

/// The only type of payload in the older form.
const SIMPLE_SIGNING: &str = "cosign container image signature";
/// The media type of the signed payload in a bundle.
const STATEMENT: &str = "application/vnd.in-toto+json";

/// The maximum number of signatures of one statement that are verified.
const SIGNATURES: usize = 8;

#[derive(Deserialize)]
struct Payload {
    critical: Critical,
}

#[derive(Deserialize)]
struct Critical {
    image: Image,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Image {
    docker_manifest_digest: String,
}

/// The bundle of an artifact (<https://docs.sigstore.dev/about/bundle/>).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bundle {
    dsse_envelope: Option<Envelope>,
}

/// The bundle of a file. Each form has one of the two fields.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileBundle {
    message_signature: Option<MessageSignature>,
    /// The field of versions before cosign 3.
    base64_signature: Option<String>,
}

#[derive(Deserialize)]
struct MessageSignature {
    signature: String,
}

/// The envelope in a bundle (<https://github.com/secure-systems-lab/dsse/blob/master/envelope.md>).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    payload: String,
    payload_type: String,
    signatures: Vec<EnvelopeSignature>,
}

#[derive(Deserialize)]
struct EnvelopeSignature {
    sig: String,
}

/// The signed statement (<https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md>).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Statement {
    subject: Vec<Subject>,
    predicate_type: String,
}

#[derive(Deserialize)]
struct Subject {
    digest: SubjectDigest,
}

#[derive(Deserialize)]
struct SubjectDigest {
    sha256: String,
}

impl Claim {
    /// Reads the claim of a signature that is stored beside an artifact. Returns `None` if it is not a signature.
    pub(super) fn read(stored: &StoredSignature) -> Option<Self> {
        match stored {
            StoredSignature::SimpleSigning { payload, signature } => {
                let Critical { image, kind } = json::<Payload>(payload.as_bytes())?.critical;
                let about = vec![image.docker_manifest_digest.parse().ok()?];
                let signatures = vec![BASE64.decode(signature).ok()?];
                (kind == SIMPLE_SIGNING).then(|| Self {
                    signed: payload.clone().into_bytes(),
                    signatures,
                    about,
                })
            }
            StoredSignature::Bundle(bundle) => {
                Self::of_envelope(json::<Bundle>(bundle.as_bytes())?.dsse_envelope?)
            }
        }
    }

    fn of_envelope(envelope: Envelope) -> Option<Self> {
        let payload = BASE64.decode(envelope.payload).ok()?;
        let statement: Statement = json(&payload)?;
        let is_signature =
            envelope.payload_type == STATEMENT && statement.predicate_type == SIGNATURE_PREDICATE;
        let about = statement.subject.into_iter().map(|subject| {
            let digest: Option<Digest> = format!("sha256:{}", subject.digest.sha256).parse().ok();
            digest
        });
        let signatures = envelope
            .signatures
            .into_iter()
            .take(SIGNATURES)
            .map(|signature| BASE64.decode(signature.sig).ok());
        let claim = Self {
            signed: encoded(&payload),
            signatures: signatures.collect::<Option<_>>()?,
            about: about.collect::<Option<_>>()?,
        };
        is_signature.then_some(claim)
    }
}

/// Returns the bytes of an envelope that are signed
/// (<https://github.com/secure-systems-lab/dsse/blob/master/protocol.md>).
fn encoded(payload: &[u8]) -> Vec<u8> {
    let mut signed = format!("DSSEv1 {} {STATEMENT} {} ", STATEMENT.len(), payload.len()).into_bytes();
    signed.extend_from_slice(payload);
    signed
}

/// Returns the signature of a file from its bundle, in the format of `cosign sign-blob`.
pub(super) fn signature_of_file(bundle: &str) -> Option<Vec<u8>> {
    let FileBundle { message_signature, base64_signature } = json(bundle.as_bytes())?;
    let signature = message_signature.map(|message| message.signature).or(base64_signature);
    BASE64.decode(signature?).ok()
}

fn json<T: DeserializeOwned>(text: &[u8]) -> Option<T> {
    serde_json::from_slice(text).ok()
}
