//! The keys of the chart beside the controller's configuration.

use serde_json::{Value, json};

use super::reader::Reader;
use super::{controller, duration};
use crate::draft::is_nothing;
use crate::values_file::below;

/// The key of the controller's configuration.
pub(super) const CONFIG: &str = "controller.config";

const OF_THE_HUB: &str = "is about the Hub and its proxy, which Nublado's chart goes on installing";
const OF_THE_CHART: &str = "is about a part of Nublado's chart that this service does not replace";

/// Reads all values. The controller's configuration is last, because it needs what the others say.
pub(super) fn read(reader: &mut Reader<'_>, values: &Value) {
    for (key, value) in values.as_object().into_iter().flatten() {
        match key.as_str() {
            "controller" => {
                for (path, key, value) in reader.entries("controller", value) {
                    of_controller(reader, &path, key, value);
                }
            }
            "global" => {
                for (path, key, value) in reader.entries("global", value) {
                    global(reader, &path, key, value);
                }
            }
            "hub" => {
                for (path, key, value) in reader.entries("hub", value) {
                    hub(reader, &path, key, value);
                }
            }
            "jupyterhub" | "proxy" => reader.stays(key, OF_THE_HUB),
            "cloudsql" | "cronjob" | "purger" | "secrets" => reader.stays(key, OF_THE_CHART),
            _ => reader.unknown(key),
        }
    }
    if let Some(config) = values.pointer("/controller/config") {
        controller::read(reader, CONFIG, config);
    }
    site_url(reader, values);
}

fn of_controller(reader: &mut Reader<'_>, path: &str, key: &str, value: &Value) {
    match key {
        "config" => {}
        _ if is_nothing(value) => reader.not_needed(path, "has no value"),
        "affinity" | "nodeSelector" | "podAnnotations" | "tolerations" => {
            reader.set_chart(key, value.clone());
            reader.carried(path, &format!("{key} of the chart's values"), "");
        }
        "resources" => reader.not_needed(path, "was about the controller; `resources` of the chart's values are measured for this service"),
        "image" => image(reader, path, value),
        "ingress" => reader.open(
            path,
            "was about the ingresses of the controller",
            "The chart makes those of this service with `gafaelfawr`; annotations have no counterpart there",
        ),
        "googleServiceAccount" => reader.open(
            path,
            "was the account with which the controller read Google's registry",
            "Name a Secret with a login for the registry in `secrets.registryLogins` of the chart's values, unless everybody may read it",
        ),
        "slackAlerts" if value == &Value::Bool(false) => reader.not_needed(path, "is off"),
        "slackAlerts" => reader.open(
            path,
            "reported errors to Slack",
            "Switch on `monitoring.alerts` of the chart's values, and let Alertmanager send them",
        ),
        _ => reader.unknown(path),
    }
}

/// Reads the image of the controller, in which also the program is that makes homes.
fn image(reader: &mut Reader<'_>, path: &str, value: &Value) {
    for (path, key, value) in reader.entries(path, value) {
        match key {
            "repository" | "tag" if value.is_string() => {
                reader.nublado_image.get_or_insert_with(|| json!({}))[key] = value.clone();
                reader.carried(
                    &path,
                    "policies[rubin].config.lab.inithomeImage",
                    "As far as `standardInithome` needs it",
                );
            }
            "pullPolicy" => reader.not_needed(&path, "was about the controller"),
            _ => reader.unknown(&path),
        }
    }
}

fn global(reader: &mut Reader<'_>, path: &str, key: &str, value: &Value) {
    match (key, value) {
        _ if is_nothing(value) => reader.not_needed(path, "has no value"),
        ("baseUrl", Value::String(_)) => {
            reader.carried(path, "policies[rubin].config.lab.env.EXTERNAL_INSTANCE_URL", "");
        }
        ("host", Value::String(host)) => {
            reader.set_chart("gafaelfawr.host", host.as_str().into());
            reader.carried(path, "gafaelfawr.host of the chart's values", "");
        }
        ("repertoireUrl", Value::String(url)) => {
            reader.set_env("REPERTOIRE_BASE_URL", url.as_str().into());
            reader.carried(path, "policies[rubin].config.lab.env.REPERTOIRE_BASE_URL", "");
        }
        _ => reader.stays(path, OF_THE_CHART),
    }
}

fn hub(reader: &mut Reader<'_>, path: &str, key: &str, value: &Value) {
    match key {
        _ if is_nothing(value) => reader.not_needed(path, "has no value"),
        "minimumTokenLifetime" => match duration::seconds(value) {
            Some(seconds) => {
                reader.set_chart("gafaelfawr.minimumLifetime", seconds.into());
                reader.carried(
                    path,
                    "gafaelfawr.minimumLifetime of the chart's values",
                    "It stays in the Hub's values, too",
                );
            }
            None => reader.other_form(path),
        },
        _ => reader.stays(path, OF_THE_HUB),
    }
}

/// Sets the URL of the site, which Argo CD gives to Nublado's chart.
fn site_url(reader: &mut Reader<'_>, values: &Value) {
    let target = reader.target;
    let given = values.pointer("/global/baseUrl").and_then(Value::as_str);
    let url = target.base_url.as_deref().or(given.filter(|url| !url.is_empty()));
    let Some(url) = url else {
        reader.open(
            &below("policies[rubin].config.lab.env", "EXTERNAL_INSTANCE_URL"),
            "of the new configuration is missing: Argo CD gave the URL of the site to Nublado's chart, and the host to its ingresses",
            "Write it, and `gafaelfawr.host` of the chart's values, or convert again with `--base-url https://HOST`",
        );
        return;
    };
    reader.set_env("EXTERNAL_INSTANCE_URL", url.into());
    let host = url.split_once("://").map_or(url, |(_, host)| host).trim_end_matches('/');
    if reader.chart["gafaelfawr"].get("host").is_none() {
        reader.set_chart("gafaelfawr.host", host.into());
    }
}
