//! Reading objects in protobuf: `kubectl create namespace` and its siblings send nothing else.
//!
//! The bytes are `k8s\0` and a `runtime.Unknown`, which has the object's type and its own bytes
//! (<https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding>). The numbers of the fields are those of
//! Kubernetes' `generated.proto` files. A field that is not listed here, and not empty, is an error: nothing is lost.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Buf as _;
use prost::encoding::{WireType, decode_key, decode_varint};
use serde_json::{Value, json};

use super::failure::Failure;
use super::metadata::Document;

/// The first bytes of every object in protobuf.
const MAGIC: &[u8] = b"k8s\0";

/// A field of a message: its number, its name in JSON, and its form.
type Field = (u32, &'static str, Form);

/// The form of a field.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Truth,
    Whole,
    /// Bytes, which are base64 in JSON.
    Bytes,
    /// A message with one text, which is that text in JSON.
    Quantity,
    Message(&'static [Field]),
    List(&'static Form),
    /// A map from texts.
    Map(&'static Form),
    /// A field that the server decides about. What a client writes there counts in no encoding.
    Ignored,
}

use Form::{Bytes, Ignored, List, Map, Message, Quantity, Text, Truth, Whole};

const METADATA: Field = (
    1,
    "metadata",
    Message(&[
        (1, "name", Text),
        (2, "generateName", Text),
        (3, "namespace", Text),
        (4, "selfLink", Ignored),
        (5, "uid", Text),
        (6, "resourceVersion", Text),
        (7, "generation", Ignored),
        (8, "creationTimestamp", Ignored),
        (11, "labels", Map(&Text)),
        (12, "annotations", Map(&Text)),
        (14, "finalizers", List(&Text)),
        (17, "managedFields", Ignored),
    ]),
);

/// The kinds that kubectl creates from arguments and that this server has.
const KINDS: &[(&str, &str, &[Field])] = &[
    (
        "v1",
        "Namespace",
        &[METADATA, (2, "spec", Message(&[(1, "finalizers", List(&Text))])), (3, "status", Ignored)],
    ),
    (
        "v1",
        "ConfigMap",
        &[METADATA, (2, "data", Map(&Text)), (3, "binaryData", Map(&Bytes)), (4, "immutable", Truth)],
    ),
    (
        "v1",
        "Secret",
        &[
            METADATA,
            (2, "data", Map(&Bytes)),
            (3, "type", Text),
            (4, "stringData", Map(&Text)),
            (5, "immutable", Truth),
        ],
    ),
    (
        "v1",
        "ServiceAccount",
        &[
            METADATA,
            (3, "imagePullSecrets", List(&Message(&[(1, "name", Text)]))),
            (4, "automountServiceAccountToken", Truth),
        ],
    ),
    (
        "v1",
        "ResourceQuota",
        &[
            METADATA,
            (2, "spec", Message(&[(1, "hard", Map(&Quantity)), (2, "scopes", List(&Text))])),
            (3, "status", Ignored),
        ],
    ),
    (
        "meta.k8s.io/v1",
        "DeleteOptions",
        &[
            (1, "gracePeriodSeconds", Whole),
            (2, "preconditions", Message(&[(1, "uid", Text), (2, "resourceVersion", Text)])),
            (3, "orphanDependents", Truth),
            (4, "propagationPolicy", Text),
            (5, "dryRun", List(&Text)),
        ],
    ),
];

/// Returns true for an object in protobuf.
pub(super) fn is_protobuf(body: &[u8]) -> bool {
    body.starts_with(MAGIC)
}

/// Reads an object. The names of its fields are those of JSON.
pub(super) fn parse(body: &[u8]) -> Result<Value, Failure> {
    let unknown = body.strip_prefix(MAGIC).unwrap_or(body);
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for (number, value) in entries(unknown)? {
        match (number, value) {
            (1, Wire::Bytes(type_meta)) => {
                for (number, value) in entries(type_meta)? {
                    match (number, value) {
                        (1, Wire::Bytes(bytes)) => api_version = text(bytes)?,
                        (2, Wire::Bytes(bytes)) => kind = text(bytes)?,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    // `DeleteOptions` are sent under the group of the object, too.
    let named = |(of, name, _): &&(&str, &str, &[Field])| {
        *name == kind && (*of == api_version || kind == "DeleteOptions")
    };
    let Some((_, _, fields)) = KINDS.iter().find(named) else {
        return Err(unsupported(&format!("{kind} of {api_version}")));
    };
    let mut document = message(raw, fields, &kind)?;
    document.insert("apiVersion".to_owned(), json!(api_version));
    document.insert("kind".to_owned(), json!(kind));
    Ok(Value::Object(document))
}

/// The refusal of something that this server only reads as JSON.
pub(super) fn unsupported(what: &str) -> Failure {
    Failure::unsupported_media_type(&format!(
        "application/json (this server does not read {what} in protobuf; use kubectl create -f)"
    ))
}

/// A value as it is on the wire.
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// Eight or four bytes, which no field here has.
    Fixed,
}

impl Wire<'_> {
    /// True for what Kubernetes also writes for an absent field.
    fn is_empty(&self) -> bool {
        match self {
            Self::Number(number) => *number == 0,
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::Fixed => false,
        }
    }
}

/// Returns the fields of a message in their order.
fn entries(mut message: &[u8]) -> Result<Vec<(u32, Wire<'_>)>, Failure> {
    let mut found = Vec::new();
    while !message.is_empty() {
        let (number, wire_type) = decode_key(&mut message).map_err(malformed)?;
        let value = match wire_type {
            WireType::Varint => Wire::Number(decode_varint(&mut message).map_err(malformed)?),
            WireType::LengthDelimited => {
                let length = usize::try_from(decode_varint(&mut message).map_err(malformed)?).ok();
                let parts = length.and_then(|length| message.split_at_checked(length));
                let (bytes, rest) = parts.ok_or_else(|| malformed("a field is longer than the message"))?;
                message = rest;
                Wire::Bytes(bytes)
            }
            WireType::SixtyFourBit | WireType::ThirtyTwoBit => {
                let length = if wire_type == WireType::ThirtyTwoBit { 4 } else { 8 };
                if message.len() < length {
                    return Err(malformed("a field is longer than the message"));
                }
                message.advance(length);
                Wire::Fixed
            }
            WireType::StartGroup | WireType::EndGroup => return Err(malformed("it has groups")),
        };
        found.push((number, value));
    }
    Ok(found)
}

fn message(bytes: &[u8], fields: &[Field], path: &str) -> Result<Document, Failure> {
    let mut document = Document::new();
    for (number, wire) in entries(bytes)? {
        let Some((_, name, form)) = fields.iter().find(|(of, ..)| *of == number) else {
            if wire.is_empty() {
                continue;
            }
            return Err(unsupported(&format!("the field number {number} of {path}")));
        };
        let path = format!("{path}.{name}");
        match form {
            Ignored => {}
            List(item) => {
                let list = document.entry(*name).or_insert_with(|| json!([]));
                if let (Value::Array(list), item) = (list, value(&wire, item, &path)?) {
                    list.push(item);
                }
            }
            Map(of) => {
                let (key, item) = entry(&wire, of, &path)?;
                let map = document.entry(*name).or_insert_with(|| json!({}));
                if let Value::Object(map) = map {
                    map.insert(key, item);
                }
            }
            _ if wire.is_empty() && matches!(form, Text) => {}
            _ => {
                document.insert((*name).to_owned(), value(&wire, form, &path)?);
            }
        }
    }
    Ok(document)
}

/// Reads an entry of a map: a message with the key and the value.
fn entry(wire: &Wire<'_>, form: &Form, path: &str) -> Result<(String, Value), Failure> {
    let Wire::Bytes(bytes) = wire else { return Err(malformed(path)) };
    let (mut key, mut found) = (String::new(), None);
    for (number, wire) in entries(bytes)? {
        match (number, &wire) {
            (1, Wire::Bytes(bytes)) => key = text(bytes)?,
            (2, _) => found = Some(value(&wire, form, path)?),
            _ => {}
        }
    }
    // An entry without a value has the empty one.
    let found = found.map_or_else(|| value(&Wire::Bytes(&[]), form, path), Ok)?;
    Ok((key, found))
}

fn value(wire: &Wire<'_>, form: &Form, path: &str) -> Result<Value, Failure> {
    match (form, wire) {
        (Text, Wire::Bytes(bytes)) => text(bytes).map(Value::String),
        (Bytes, Wire::Bytes(bytes)) => Ok(json!(STANDARD.encode(bytes))),
        (Truth, Wire::Number(number)) => Ok(json!(*number != 0)),
        (Whole, Wire::Number(number)) => Ok(json!(number.cast_signed())),
        (Message(fields), Wire::Bytes(bytes)) => message(bytes, fields, path).map(Value::Object),
        (Quantity, Wire::Bytes(bytes)) => {
            let amount = message(bytes, &[(1, "amount", Text)], path)?;
            Ok(amount.get("amount").cloned().unwrap_or_else(|| json!("0")))
        }
        _ => Err(malformed(path)),
    }
}

fn text(bytes: &[u8]) -> Result<String, Failure> {
    String::from_utf8(bytes.to_vec()).map_err(|_| malformed("a text is not UTF-8"))
}

fn malformed(problem: impl std::fmt::Display) -> Failure {
    Failure::bad_request(format!("cannot read the body as protobuf: {problem}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A field with bytes.
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let length = u8::try_from(bytes.len()).unwrap();
        assert!(length < 128, "one byte for the length");
        [&[number << 3 | 2, length], bytes].concat()
    }

    fn object(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let type_meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), field(1, &type_meta), field(2, raw), field(3, b""), field(4, b"")].concat()
    }

    #[test]
    fn an_object_is_what_it_is_in_json() {
        // As Kubernetes writes it: fields that are absent are there, and empty.
        let metadata =
            [field(1, b"team"), field(2, b""), field(5, b""), vec![7 << 3, 0], field(8, b"")].concat();
        let entry = [field(1, b"password"), field(2, b"\xff\x00")].concat();
        let raw = [field(1, &metadata), field(2, &entry), field(3, b"Opaque"), vec![5 << 3, 1]].concat();
        let expected = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "team"}, "data": {"password": "/wA="},
            "type": "Opaque", "immutable": true
        });
        assert_eq!(parse(&object("v1", "Secret", &raw)).unwrap(), expected);
    }

    #[test]
    fn what_is_not_known_is_refused_and_not_lost() {
        let raw = field(1, &field(13, &field(1, b"owner")));
        for (kind, raw, named) in [
            ("ConfigMap", raw.as_slice(), "the field number 13 of ConfigMap.metadata"),
            ("Pod", &[], "Pod of v1"),
        ] {
            let refused = parse(&object("v1", kind, raw)).unwrap_err();
            assert!(format!("{refused:?}").contains(named), "{refused:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_fail(bytes in proptest::collection::vec(any::<u8>(), 0..200), kind in "Secret|ResourceQuota") {
            let _ = parse(&[MAGIC, &bytes].concat());
            if bytes.len() < 120 {
                let _ = parse(&object("v1", &kind, &bytes));
            }
        }
    }
}
