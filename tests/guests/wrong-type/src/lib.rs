//! A component that exports a hook under the right name with a wrong type.
#![cfg(target_arch = "wasm32")]
#![allow(missing_docs, unsafe_code, clippy::pedantic, reason = "generated bindings")]

wit_bindgen::generate!({
    inline: "
        package wasmspawner:policy@0.1.0;
        interface metadata {
            record info { name: string, version: string, description: string }
            describe: func() -> info;
            config-schema: func() -> string;
        }
        interface quota {
            limits: func() -> u32;
        }
        world wrong {
            export metadata;
            export quota;
        }
    ",
});

use exports::wasmspawner::policy::{metadata, quota};

struct WrongType;

impl metadata::Guest for WrongType {
    fn describe() -> metadata::Info {
        metadata::Info { name: "wrong".into(), version: "0.0.0".into(), description: String::new() }
    }

    fn config_schema() -> String {
        "true".into()
    }
}

impl quota::Guest for WrongType {
    fn limits() -> u32 {
        7
    }
}

export!(WrongType);
