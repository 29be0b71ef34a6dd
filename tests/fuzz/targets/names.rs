//! Names and other short texts in paths, queries and headers.

#![no_main]
#![allow(clippy::panic, reason = "a finding is reported by panicking")]

use libfuzzer_sys::fuzz_target;
use wasmspawner_core::lifecycle::progress::EventId;
use wasmspawner_core::names::{NameTemplates, NamesConfig, ServerName, Username};
use wasmspawner_core::policy::user_string::UserString;
use wasmspawner_core::users::access::Scope;
use wasmspawner_core::users::quota::Quantity;

fuzz_target!(|text: &str| {
    if let Ok(id) = text.parse::<EventId>() {
        assert_eq!(id.to_string().parse(), Ok(id));
    }
    let _ = text.parse::<Scope>();
    if let Ok(quantity) = text.parse::<Quantity>() {
        assert_eq!(quantity.to_string().parse(), Ok(quantity), "{text}");
    }
    if let Ok(asked) = UserString::parse(text) {
        assert_eq!(UserString::parse(&asked.to_string()), Ok(asked), "{text}");
    }
    let (user, server) = text.split_once('/').unwrap_or((text, ""));
    let (Ok(user), Ok(server)) = (Username::parse(user), ServerName::parse(server)) else { return };
    let Ok(templates) = NameTemplates::parse(&NamesConfig::default()) else {
        panic!("the default templates")
    };
    if let Ok(names) = templates.resolve(&user, &server, None) {
        let label = |name: &str| {
            let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            (1..=63).contains(&name.len())
                && name.bytes().all(allowed)
                && !name.starts_with('-')
                && !name.ends_with('-')
        };
        assert!(label(names.namespace.as_str()) && label(names.pod.as_str()), "{names:?}");
    }
});
