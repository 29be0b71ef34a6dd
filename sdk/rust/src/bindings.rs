//! The bindings generated from `wit/`: the shared types once, and one world per hook.
//!
//! Each hook has its own world, so a policy exports only the hooks that it implements. Every world has an export macro,
//! and the linker merges the worlds whose macros were used.

#![allow(missing_docs, clippy::pedantic, reason = "generated; `wit/` documents it")]

mod shared {
    wit_bindgen::generate!({
        inline: "
            package wasmspawner:sdk;
            world shared {
                import wasmspawner:policy/types@0.1.0;
                import wasmspawner:policy/host@0.1.0;
            }
        ",
        path: "../../wit",
        generate_all,
        generate_unused_types: true,
        pub_export_macro: true,
        additional_derives: [PartialEq],
    });
}

pub use shared::wasmspawner::policy::{host, types};

macro_rules! hook_world {
    ($module:ident, $world:literal, $export:literal $(, $shared:literal: $types:path)?) => {
        pub mod $module {
            wit_bindgen::generate!({
                inline: $world,
                path: "../../wit",
                with: { $($shared: $types)? },
                generate_all,
                generate_unused_types: true,
                pub_export_macro: true,
                export_macro_name: $export,
                additional_derives: [PartialEq],
            });
            pub use exports::wasmspawner::policy::$module::*;
        }
    };
}

hook_world!(
    metadata,
    "package wasmspawner:sdk; world metadata { export wasmspawner:policy/metadata@0.1.0; }",
    "export_metadata"
);
hook_world!(
    config,
    "package wasmspawner:sdk; world config { export wasmspawner:policy/config@0.1.0; }",
    "export_config",
    "wasmspawner:policy/types@0.1.0": crate::bindings::types
);
hook_world!(
    prepare,
    "package wasmspawner:sdk; world prepare { export wasmspawner:policy/prepare@0.1.0; }",
    "export_prepare"
);
hook_world!(
    form,
    "package wasmspawner:sdk; world form { export wasmspawner:policy/form@0.1.0; }",
    "export_form",
    "wasmspawner:policy/types@0.1.0": crate::bindings::types
);
hook_world!(
    quota,
    "package wasmspawner:sdk; world quota { export wasmspawner:policy/quota@0.1.0; }",
    "export_quota",
    "wasmspawner:policy/types@0.1.0": crate::bindings::types
);
hook_world!(
    authorize,
    "package wasmspawner:sdk; world authorize { export wasmspawner:policy/authorize@0.1.0; }",
    "export_authorize",
    "wasmspawner:policy/types@0.1.0": crate::bindings::types
);
hook_world!(
    inject,
    "package wasmspawner:sdk; world inject { export wasmspawner:policy/inject@0.1.0; }",
    "export_inject",
    "wasmspawner:policy/types@0.1.0": crate::bindings::types
);
hook_world!(
    events,
    "package wasmspawner:sdk; world events { export wasmspawner:policy/events@0.1.0; }",
    "export_events"
);
hook_world!(
    build_pod,
    "package wasmspawner:sdk; world build-pod { export wasmspawner:policy/build-pod@0.1.0; }",
    "export_build_pod",
    "wasmspawner:policy/types@0.1.0": crate::bindings::types
);
hook_world!(
    images,
    "package wasmspawner:sdk; world images { export wasmspawner:policy/images@0.1.0; }",
    "export_images",
    "wasmspawner:policy/types@0.1.0": crate::bindings::types
);
hook_world!(
    lab_files,
    "package wasmspawner:sdk; world lab-files { export wasmspawner:policy/lab-files@0.1.0; }",
    "export_lab_files",
    "wasmspawner:policy/types@0.1.0": crate::bindings::types
);
hook_world!(
    lab_server,
    "package wasmspawner:sdk; world lab-server { export wasmspawner:policy/lab-server@0.1.0; }",
    "export_lab_server",
    "wasmspawner:policy/types@0.1.0": crate::bindings::types
);
