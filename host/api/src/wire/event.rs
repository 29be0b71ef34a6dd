//! The events of an operation: as JSON in its history, and as the events of a stream.

use std::borrow::Cow;

use serde::Serialize;
use utoipa::openapi::schema::Discriminator;
use utoipa::openapi::{Object, ObjectBuilder, OneOfBuilder, Ref, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};
use wasmspawner_core::lifecycle::progress::{Entry, LoggedEntry};

use super::stage::StageReport;

/// An event of an operation.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LoggedEvent {
    /// The event's number in the operation, from 1; the last part of its id in the stream.
    #[schema(value_type = u64, minimum = 1)]
    number: usize,
    /// When the event was published, RFC 3339.
    #[schema(format = DateTime)]
    at: String,
    #[serde(flatten)]
    event: Event,
}

/// The type and the data of an event.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "type", content = "data", rename_all = "lowercase")]
enum Event {
    /// A sentence for the user.
    Info(String),
    /// What went wrong, as a sentence for the user; the operation may still succeed.
    Error(String),
    /// How far the operation is, from 0 to 100; never falling.
    Progress(u8),
    /// A stage was entered.
    Stage(StageReport),
    /// The operation succeeded.
    Complete(String),
    /// The operation failed.
    Failed(String),
}

impl From<&LoggedEntry> for LoggedEvent {
    fn from(logged: &LoggedEntry) -> Self {
        let event = match &logged.entry {
            Entry::Info(text) => Event::Info(text.clone()),
            Entry::Error(text) => Event::Error(text.clone()),
            Entry::Progress(percent) => Event::Progress(*percent),
            Entry::Stage(report) => Event::Stage(report.into()),
            Entry::Complete(text) => Event::Complete(text.clone()),
            Entry::Failed(text) => Event::Failed(text.clone()),
        };
        Self { number: logged.number, at: logged.at.to_string(), event }
    }
}

/// The schema of a stream of events. OpenAPI 3.1 describes a stream by the schema of one event, whose fields are those
/// of the event-stream format. There, every `data` is text.
pub(crate) struct StreamEvent;

/// Each kind of event: its name, the name of its schema, its description, and the schema of its data.
fn kinds() -> [(&'static str, &'static str, &'static str, Object); 6] {
    let sentence =
        || ObjectBuilder::new().schema_type(Type::String).description(Some("A sentence for the user"));
    let percent = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^(100|[1-9]?[0-9])$"));
    let report = ObjectBuilder::new()
        .schema_type(Type::String)
        .content_media_type("application/json")
        .content_schema(Some(Ref::from_schema_name(StageReport::name())));
    [
        ("info", "InfoEvent", "Something was done.", sentence().build()),
        ("error", "ErrorEvent", "Something went wrong; the operation may still succeed.", sentence().build()),
        (
            "progress",
            "ProgressEvent",
            "How far the operation is: never falling.",
            percent.description(Some("0 to 100")).build(),
        ),
        (
            "stage",
            "StageEvent",
            "A stage was entered.",
            report.description(Some("A `StageReport`, as JSON")).build(),
        ),
        ("complete", "CompleteEvent", "The operation succeeded. The last event.", sentence().build()),
        ("failed", "FailedEvent", "The operation failed. The last event.", sentence().build()),
    ]
}

/// The URL of a lab that has been started, until it is stopped.
fn url() -> ObjectBuilder {
    let description = "The URL at which the Hub reaches the lab that has been started";
    ObjectBuilder::new().schema_type(Type::String).description(Some(description))
}

fn stream_event(kind: &str, description: &str, data: Object) -> Schema {
    let job_id = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
    let id = ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(format!("^{job_id}-[1-9][0-9]*$")))
        .description(Some("The operation and the event's number in it, for `Last-Event-ID`"));
    let fields = ObjectBuilder::new()
        .description(Some(description))
        .property("id", id)
        .property("event", ObjectBuilder::new().schema_type(Type::String).enum_values(Some([kind])))
        .property("data", data);
    let fields = if kind == "complete" { fields.property("url", url()) } else { fields };
    fields.required("id").required("event").required("data").into()
}

impl PartialSchema for StreamEvent {
    fn schema() -> RefOr<Schema> {
        let kinds = kinds();
        let mapping =
            kinds.iter().map(|(kind, name, ..)| ((*kind).to_owned(), format!("#/components/schemas/{name}")));
        let discriminator = Discriminator::with_mapping("event", mapping);
        let any = OneOfBuilder::new()
            .description(Some("One event of the stream."))
            .discriminator(Some(discriminator));
        kinds.iter().fold(any, |any, (_, name, ..)| any.item(Ref::from_schema_name(*name))).into()
    }
}

impl ToSchema for StreamEvent {
    fn name() -> Cow<'static, str> {
        "StreamEvent".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        for (kind, name, description, data) in kinds() {
            schemas.push((name.to_owned(), stream_event(kind, description, data).into()));
        }
        schemas.push((StageReport::name().into_owned(), StageReport::schema()));
        StageReport::schemas(schemas);
    }
}
