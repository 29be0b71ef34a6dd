//! The configuration of Nublado's controller, without the sections of images and labs.

use serde_json::Value;

use super::reader::Reader;
use super::{images, lab};
use crate::draft::is_nothing;

pub(super) fn read(reader: &mut Reader<'_>, path: &str, config: &Value) {
    for (path, key, value) in reader.entries(path, config) {
        match key {
            "images" => images::source_and_prepull(reader, &path, value),
            "dropdownMenu" => images::dropdown(reader, &path, value),
            "lab" => lab::read(reader, &path, value),
            "fileserver" => fileserver(reader, &path, value),
            _ if is_nothing(value) => reader.not_needed(&path, "has no value"),
            "fsadmin" => reader.open(
                &path,
                "was the pod with all volumes that an administrator could start by the API",
                "Keep a Pod manifest with these volumes, and start it with kubectl",
            ),
            "logLevel" => log_level(reader, &path, value),
            "logProfile" => log_profile(reader, &path, value),
            "metrics" if value.get("enabled") == Some(&Value::Bool(true)) => reader.open(
                &path,
                "sent events about labs to Kafka",
                "Metrics of this service are read from /metrics by Prometheus (`monitoring.serviceMonitor` of the chart's values); what happened to each lab is in `history`, of which NATS passes it on to other programs",
            ),
            "metrics" => reader.not_needed(&path, "is off; metrics of this service are at /metrics"),
            "pathPrefix" => path_prefix(reader, &path, value),
            "watchReconnectTimeout" => {
                reader.not_needed(&path, "this service begins each watch anew after 70 seconds");
            }
            "name" => reader.not_needed(&path, "was the name in messages to Slack"),
            "metadataPath" => reader.not_needed(&path, "this service needs no such files"),
            _ => reader.unknown(&path),
        }
    }
}

fn fileserver(reader: &mut Reader<'_>, path: &str, value: &Value) {
    if value.get("enabled") == Some(&Value::Bool(true)) {
        reader.open(
            path,
            "gave each user a WebDAV server with their files",
            "This service has none. Keep Nublado's controller for file servers alone, or serve the file system by other means",
        );
    } else {
        reader.not_needed(path, "is off");
    }
}

/// The API of the controller is served as well, for the site's Hub as it is.
fn path_prefix(reader: &mut Reader<'_>, path: &str, value: &Value) {
    match value.as_str().filter(|prefix| prefix.starts_with('/')) {
        Some(prefix) => {
            reader.set_service("http.nublado_prefix", prefix.trim_end_matches('/').into());
            reader.carried(path, "http.nublado_prefix", "");
        }
        None => reader.other_form(path),
    }
}

fn log_level(reader: &mut Reader<'_>, path: &str, value: &Value) {
    let level = value.as_str().unwrap_or_default().to_ascii_lowercase();
    let filter = match level.as_str() {
        "debug" | "info" | "error" => level.as_str(),
        "warning" => "warn",
        "critical" => "error",
        _ => return reader.other_form(path),
    };
    reader.set_service("telemetry.filter", filter.into());
    reader.carried(path, "telemetry.filter", "");
}

fn log_profile(reader: &mut Reader<'_>, path: &str, value: &Value) {
    let format = match value.as_str() {
        Some("production") => "json",
        Some("development") => "text",
        _ => return reader.other_form(path),
    };
    reader.set_service("telemetry.format", format.into());
    reader.carried(path, "telemetry.format", "");
}
