//! The site policy of the Rubin Science Platform. Its configuration has the sections `images`, `dropdownMenu` and `lab`
//! of Nublado's controller, which the service replaces.
//!
//! - `tag` reads tags, and knows nothing of registries.
//! - `inventory` resolves aliases among the tags.
//! - `images` decides which images are offered, listed and pulled in advance.
//! - `lab` reads the settings of labs; `pod` builds one.

mod access;
mod date;
mod duration;
mod form;
mod images;
mod inventory;
mod lab;
mod owned;
mod pod;
mod quota;
mod tag;

use wasmspawner_sdk::{Info, Policy, Section, export};

use images::{Dropdown, Offer};
use lab::Lab;

/// Keys of Nublado's controller beside those sections.
const OWNED: [(&str, &str); 9] = [
    ("fileserver", "this policy makes no file servers"),
    ("fsadmin", "this policy makes no pods for the administration of file systems"),
    ("metadataPath", "the service needs no such files"),
    ("pathPrefix", "set `http.prefix` in the service's configuration"),
    ("watchReconnectTimeout", "the service begins its watches anew by itself"),
    ("logLevel", "set `telemetry.filter` in the service's configuration"),
    ("logProfile", "set `telemetry.format` in the service's configuration"),
    ("metrics", "the service's metrics are at /metrics of `http.health_listen`"),
    ("name", "remove it"),
];

/// The policy with its configuration.
pub struct RubinPolicy {
    offer: Offer,
    dropdown: Dropdown,
    lab: Lab,
}

impl Policy for RubinPolicy {
    fn info() -> Info {
        Info {
            name: "rubin".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            description: "The Rubin Science Platform, configured as Nublado's controller".into(),
        }
    }

    fn config_schema() -> &'static str {
        include_str!("../schema.json")
    }

    fn from_config(config: &mut Section<'_>) -> Self {
        owned::ignore(config, &OWNED);
        for key in ["images", "lab"] {
            if !config.has(key) {
                config.problem(key, "is missing");
            }
        }
        Self {
            offer: config.section("images", Offer::read).unwrap_or_default(),
            dropdown: Dropdown::read(config),
            lab: config.section("lab", Lab::read).unwrap_or_default(),
        }
    }
}

export!(RubinPolicy: form, quota, authorize, build_pod, images);

#[cfg(test)]
mod tests;
