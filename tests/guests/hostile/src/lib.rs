//! A policy that misbehaves as its configuration says. The host must survive each `act` and report the policy's name.

#![cfg(target_arch = "wasm32")]
#![expect(clippy::panic, reason = "it is what this guest is for")]

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use wasmspawner_sdk::bindings::prepare;
use wasmspawner_sdk::form::{Field, FormContext};
use wasmspawner_sdk::pod::{Customization, EnvVar};
use wasmspawner_sdk::{Denial, Error, FieldError, Info, Options, Policy, Section, User, hooks, host};

/// How often this instance, or the one of which it is a copy, was prepared and called.
static PREPARED: AtomicU32 = AtomicU32::new(0);
static CALLED: AtomicU32 = AtomicU32::new(0);

struct Hostile {
    act: String,
}

impl Policy for Hostile {
    fn info() -> Info {
        if wasmspawner_sdk::bindings::host::config().contains("strange-info") {
            return Info {
                name: strange("title", 200_000),
                version: strange("1", 200_000),
                description: strange("x", 200_000),
            };
        }
        Info { name: "hostile".into(), version: "0.0.0".into(), description: "Breaks every rule".into() }
    }

    fn from_config(config: &mut Section<'_>) -> Self {
        let act: String = config.or_default("act");
        match act.as_str() {
            "loop-at-load" => endless(),
            "wrong-config" => config.problem("act", "is wrong, as asked"),
            "warn" => config.warning("act", "is strange"),
            "strange-warnings" => (0..1000).for_each(|_| config.warning("act", &strange("warning", 500))),
            "strange-config" => (0..1000).for_each(|_| config.problem("act", strange("problem", 500))),
            _ => {}
        }
        Self { act }
    }
}

impl hooks::BuildPod for Hostile {
    fn customize(&self, user: &User, _: &str, _: &Options) -> Result<Customization, Error> {
        let mut customization = Customization::default();
        match self.act.as_str() {
            "loop" => endless(),
            "sleep" => std::thread::sleep(Duration::from_hours(1)),
            "recurse" => customization.working_dir = Some(deeper(0).to_string()),
            "memory" => hoard(),
            "panic" => panic!("as asked"),
            "strange-panic" => panic!("{}", strange("panic", 200_000)),
            "strange-log" => host::info("said\u{202e}\nINFO forged\0"),
            "strange-denied" => {
                return Err(Error::denied(Denial::by_rule(
                    strange("rule", 200_000),
                    strange("denied", 200_000),
                )));
            }
            "strange-errors" => {
                let errors =
                    (0..1000).map(|_| FieldError { field: strange("field", 500), message: "x".into() });
                return Err(Error::Invalid(errors.collect()));
            }
            "abort" => std::process::abort(),
            "exit" => std::process::exit(3),
            "huge" => customization.working_dir = Some("x".repeat(10 << 20)),
            "many" => customization.env = (0..200_000).map(|n| EnvVar::literal(n.to_string(), "")).collect(),
            "log-flood" => (0..100_000).for_each(|line| host::info(&format!("line {line}"))),
            "log-huge" => host::info(&"x".repeat(512 << 10)),
            "random" => customization.working_dir = Some(format!("{}", host::random(u32::MAX).len())),
            "read-file" => {
                customization.working_dir = Some(format!("{:?}", std::fs::read("/etc/passwd").is_err()));
            }
            "environment" => customization.working_dir = Some(format!("{}", std::env::vars().count())),
            "count" => {
                let called = CALLED.fetch_add(1, Ordering::Relaxed);
                let prepared = PREPARED.load(Ordering::Relaxed);
                customization.working_dir = Some(format!("/prepared/{prepared}/called/{called}"));
            }
            "data" => {
                let told = |name| host::data(name).map(|data| format!("{} {}", data.version, data.json));
                customization.working_dir = Some(format!("{:?} {:?}", told("teams"), told("other")));
            }
            "denied" => return Err(Error::denied(format!("not for {}", user.name))),
            "invalid" => return Err(Error::invalid("size", "is wrong")),
            "retry" => return Err(Error::RetryLater(7)),
            "internal" => return Err(Error::Internal("a secret of the site".into())),
            _ => {}
        }
        Ok(customization)
    }
}

/// The form of a policy that behaves while it is tried, and for nobody after that.
impl hooks::Form for Hostile {
    fn fields(&self, context: &FormContext) -> Result<Vec<Field>, Error> {
        let field = |name: &str| Field::text(name, "Name", "");
        if context.user.name == "policy-trial" {
            return Ok(vec![field("name")]);
        }
        match self.act.as_str() {
            "loop-after-trial" => endless(),
            "memory-after-trial" => hoard(),
            "panic-after-trial" => panic!("as asked"),
            "strange-form" => {
                return Ok(vec![field(&strange("name", 200_000)), field(&strange("name", 200_000))]);
            }
            "last-options" => {
                let last = host::last_options();
                return Ok(vec![Field::text("name", "Name", last.text("name").unwrap_or("none"))]);
            }
            "unusable-form" => return Ok(vec![field("name"); 1000]),
            _ => {}
        }
        Ok(vec![field("name")])
    }
}

/// A text which is long, and shows something else than it says.
fn strange(text: &str, length: usize) -> String {
    format!("{text}\u{202e}\0\n{}", "x".repeat(length))
}

fn endless() {
    let mut turns = 0_u64;
    while black_box(true) {
        turns = black_box(turns.wrapping_add(1));
    }
}

fn deeper(depth: u64) -> u64 {
    let frame = black_box([depth; 64]);
    if black_box(true) { deeper(depth + 1) + frame[7] } else { depth }
}

fn hoard() {
    let mut hoard = Vec::new();
    while black_box(true) {
        hoard.push(vec![1_u8; 1 << 20]);
    }
    black_box(hoard);
}

/// Prepares nothing, and misbehaves as the configuration says. The hook after that does not.
impl prepare::Guest for Hostile {
    fn run() {
        PREPARED.fetch_add(1, Ordering::Relaxed);
        let config = wasmspawner_sdk::bindings::host::config();
        let asked = |act: &str| config.contains(&format!("{act}-when-prepared"));
        if asked("loop") {
            endless();
        } else if asked("memory") {
            hoard();
        } else if asked("panic") {
            panic!("as asked");
        } else if asked("fill") {
            // As much as is allowed, so that nothing is left for whoever reads it.
            while black_box(true) && core::arch::wasm32::memory_grow(0, 1) != usize::MAX {}
        } else if asked("log-flood") {
            (0..1_000).for_each(|line| host::info(&format!("line {line}")));
        } else if asked("random") {
            black_box(host::random(8));
        } else if asked("data") {
            black_box(host::data("teams"));
        }
    }
}

mod exported {
    type Exported = wasmspawner_sdk::component::Component<super::Hostile>;
    type Prepared = super::Hostile;
    wasmspawner_sdk::export_hook!(metadata, Exported);
    wasmspawner_sdk::export_hook!(config, Exported);
    wasmspawner_sdk::export_hook!(build_pod, Exported);
    wasmspawner_sdk::export_hook!(form, Exported);
    wasmspawner_sdk::export_hook!(prepare, Prepared);
}
