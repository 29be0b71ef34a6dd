//! A component with an import that no policy may have.
#![cfg(target_arch = "wasm32")]
#![allow(missing_docs, unsafe_code, clippy::pedantic, reason = "generated bindings")]

wit_bindgen::generate!({
    inline: "
        package acme:greedy@1.0.0;
        interface disk {
            read: func(path: string) -> string;
        }
        interface report {
            secrets: func() -> string;
        }
        world greedy {
            import disk;
            export report;
        }
    ",
});

struct Greedy;

impl exports::acme::greedy::report::Guest for Greedy {
    fn secrets() -> String {
        acme::greedy::disk::read("/etc/shadow")
    }
}

export!(Greedy);
