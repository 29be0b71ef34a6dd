//! The few objects that kubectl sends as protobuf whatever the server would rather have: those of `kubectl create
//! namespace` and its siblings, and of `kubectl auth`. Everything else is JSON.
//!
//! The numbers are those of the `generated.proto` files of Kubernetes.

use super::failure::Failure;
use super::metadata::Document;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The media type.
pub(super) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// What every object begins with.
const MAGIC: &[u8] = b"k8s\0";

/// A field of a message.
struct Field(u64, &'static str, Type);

/// How a field's bytes are read.
enum Type {
    Text,
    /// Base64 in JSON.
    Bytes,
    Integer,
    Switch,
    /// `{string = 1}`, which is only its text in JSON.
    Quantity,
    Message(&'static [Field]),
    /// A map from texts to what this type says.
    Map(&'static Type),
    List(&'static Type),
    /// Fields that clients leave empty, and servers fill.
    Ignored,
}

use Type::{Bytes, Ignored, Integer, List, Map, Message, Quantity, Switch, Text};

const METADATA: &[Field] = &[
    Field(1, "name", Text),
    Field(2, "generateName", Text),
    Field(3, "namespace", Text),
    Field(5, "uid", Text),
    Field(6, "resourceVersion", Text),
    Field(7, "generation", Ignored),
    Field(8, "creationTimestamp", Ignored),
    Field(11, "labels", Map(&Text)),
    Field(12, "annotations", Map(&Text)),
    Field(14, "finalizers", List(&Text)),
];
const META: Field = Field(1, "metadata", Message(METADATA));
const NAMESPACE: &[Field] = &[META, Field(2, "spec", Ignored), Field(3, "status", Ignored)];
const CONFIG_MAP: &[Field] =
    &[META, Field(2, "data", Map(&Text)), Field(3, "binaryData", Map(&Bytes)), Field(4, "immutable", Switch)];
const SECRET: &[Field] = &[
    META,
    Field(2, "data", Map(&Bytes)),
    Field(3, "type", Text),
    Field(4, "stringData", Map(&Text)),
    Field(5, "immutable", Switch),
];
const SERVICE_ACCOUNT: &[Field] = &[META, Field(4, "automountServiceAccountToken", Switch)];
const QUANTITY: &[Field] = &[Field(1, "string", Text)];
const QUOTA_SPEC: &[Field] = &[Field(1, "hard", Map(&Quantity)), Field(2, "scopes", List(&Text))];
const QUOTA: &[Field] = &[META, Field(2, "spec", Message(QUOTA_SPEC)), Field(3, "status", Ignored)];
const REVIEW: &[Field] = &[META, Field(2, "status", Ignored)];
const RESOURCE_ATTRIBUTES: &[Field] = &[
    Field(1, "namespace", Text),
    Field(2, "verb", Text),
    Field(3, "group", Text),
    Field(4, "version", Text),
    Field(5, "resource", Text),
    Field(6, "subresource", Text),
    Field(7, "name", Text),
];
const PATH_ATTRIBUTES: &[Field] = &[Field(1, "path", Text), Field(2, "verb", Text)];
const ACCESS_SPEC: &[Field] = &[
    Field(1, "resourceAttributes", Message(RESOURCE_ATTRIBUTES)),
    Field(2, "nonResourceAttributes", Message(PATH_ATTRIBUTES)),
];
const ACCESS_REVIEW: &[Field] = &[META, Field(2, "spec", Message(ACCESS_SPEC)), Field(3, "status", Ignored)];
const DELETE_OPTIONS: &[Field] = &[
    Field(1, "gracePeriodSeconds", Integer),
    Field(4, "propagationPolicy", Text),
    Field(5, "dryRun", List(&Text)),
];

const TYPE_META: &[Field] = &[Field(1, "apiVersion", Text), Field(2, "kind", Text)];
const ENVELOPE: &[Field] = &[Field(1, "typeMeta", Message(TYPE_META)), Field(2, "raw", Bytes)];

fn message_of(kind: &str) -> Option<&'static [Field]> {
    Some(match kind {
        "Namespace" => NAMESPACE,
        "ConfigMap" => CONFIG_MAP,
        "Secret" => SECRET,
        "ServiceAccount" => SERVICE_ACCOUNT,
        "ResourceQuota" => QUOTA,
        "SelfSubjectReview" => REVIEW,
        "SelfSubjectAccessReview" => ACCESS_REVIEW,
        "DeleteOptions" => DELETE_OPTIONS,
        _ => return None,
    })
}

/// Whether a body is in this form.
pub(super) fn is_protobuf(body: &[u8]) -> bool {
    body.starts_with(MAGIC)
}

/// Reads an object as if it had been sent as JSON.
pub(super) fn parse(body: &[u8]) -> Result<Document, Failure> {
    let broken = || Failure::bad_request("cannot read the body as protobuf");
    let envelope = read(body.strip_prefix(MAGIC).ok_or_else(broken)?, ENVELOPE).ok_or_else(broken)?;
    let head = envelope.get("typeMeta").and_then(Value::as_object).cloned().unwrap_or_default();
    let kind = head.get("kind").and_then(Value::as_str).unwrap_or_default();
    let fields = message_of(kind).ok_or_else(|| {
        let why =
            format!("application/json, application/yaml ({MEDIA_TYPE} is not read for {kind:?}; use -f)");
        Failure::unsupported_media_type(&why)
    })?;
    let raw = envelope.get("raw").and_then(Value::as_str).unwrap_or_default();
    let raw = STANDARD.decode(raw).map_err(|_| broken())?;
    let mut document = read(&raw, fields).ok_or_else(broken)?;
    document.extend(head);
    Ok(document)
}

/// What a key on the wire is followed by.
enum Content<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn read(mut bytes: &[u8], fields: &[Field]) -> Option<Document> {
    let mut document = Document::new();
    while !bytes.is_empty() {
        let key = number(&mut bytes)?;
        let content = match key & 7 {
            0 => Content::Number(number(&mut bytes)?),
            1 => Content::Bytes(take(&mut bytes, 8)?),
            2 => {
                let length = usize::try_from(number(&mut bytes)?).ok()?;
                Content::Bytes(take(&mut bytes, length)?)
            }
            5 => Content::Bytes(take(&mut bytes, 4)?),
            _ => return None,
        };
        if let Some(Field(_, name, kind)) = fields.iter().find(|field| field.0 == key >> 3) {
            set(&mut document, name, kind, &content)?;
        }
    }
    Some(document)
}

fn set(document: &mut Document, name: &str, kind: &Type, content: &Content<'_>) -> Option<()> {
    match kind {
        Ignored => {}
        Map(kind) => {
            let Content::Bytes(entry) = content else { return None };
            let (key, value) = entry_of(entry, kind)?;
            if let Value::Object(map) = document.entry(name).or_insert_with(|| json!({})) {
                map.insert(key, value);
            }
        }
        List(kind) => {
            let value = value_of(kind, content)?;
            if let Value::Array(items) = document.entry(name).or_insert_with(|| json!([])) {
                items.push(value);
            }
        }
        kind => {
            let value = value_of(kind, content)?;
            // What is not set is an empty text on this wire.
            if value != json!("") {
                document.insert(name.to_owned(), value);
            }
        }
    }
    Some(())
}

fn entry_of(mut entry: &[u8], kind: &Type) -> Option<(String, Value)> {
    let (mut key, mut value) = (String::new(), None);
    while !entry.is_empty() {
        let field = number(&mut entry)?;
        let length = usize::try_from(number(&mut entry)?).ok()?;
        let bytes = take(&mut entry, length)?;
        match field >> 3 {
            1 => key = String::from_utf8(bytes.to_vec()).ok()?,
            _ => value = Some(value_of(kind, &Content::Bytes(bytes))?),
        }
    }
    Some((key, value.unwrap_or_else(|| json!(""))))
}

fn value_of(kind: &Type, content: &Content<'_>) -> Option<Value> {
    Some(match (kind, content) {
        (Text, Content::Bytes(bytes)) => json!(std::str::from_utf8(bytes).ok()?),
        (Bytes, Content::Bytes(bytes)) => json!(STANDARD.encode(bytes)),
        (Quantity, Content::Bytes(bytes)) => {
            read(bytes, QUANTITY)?.remove("string").unwrap_or_else(|| json!("0"))
        }
        (Message(fields), Content::Bytes(bytes)) => Value::Object(read(bytes, fields)?),
        (Integer, Content::Number(number)) => json!(i64::from_ne_bytes(number.to_ne_bytes())),
        (Switch, Content::Number(number)) => json!(*number != 0),
        _ => return None,
    })
}

/// A varint.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::parse;
    use serde_json::json;

    /// A field of bytes.
    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![number << 3 | 2, u8::try_from(content.len()).unwrap()];
        bytes.extend_from_slice(content);
        bytes
    }

    fn object(kind: &str, message: &[u8]) -> Vec<u8> {
        let head = [field(1, b"v1"), field(2, kind.as_bytes())].concat();
        [b"k8s\0".to_vec(), field(1, &head), field(2, message), field(3, b""), field(4, b"")].concat()
    }

    #[test]
    fn a_config_map_is_read() {
        let metadata = field(1, &[field(1, b"m"), field(3, b"")].concat());
        let data = field(2, &[field(1, b"k"), field(2, b"v")].concat());
        let document = parse(&object("ConfigMap", &[metadata, data].concat())).unwrap();
        let expected =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"k": "v"}});
        assert_eq!(json!(document), expected);
    }

    #[test]
    fn what_is_not_known_or_broken_is_refused() {
        assert_eq!(parse(&object("Pod", b"")).unwrap_err().code(), 415);
        for broken in [
            &b"k8s\0\x0a\xff"[..],
            b"k8s\0\x0a\x05ab",
            b"nothing",
            b"k8s\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        ] {
            assert!(parse(broken).is_err(), "{broken:?}");
        }
    }
}
