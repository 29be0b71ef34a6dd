//! A policy that chooses the lab by the username: `fault.crash-loop` gets a lab that crashes, `pull.30s` one whose
//! image takes that long to pull, for `slow.1` the policy answers after some seconds, and for `act.loop` never. All
//! others get an ordinary lab.
//! Annotations tell the simulated kubelet what to do.
#![cfg(target_arch = "wasm32")]
#![expect(clippy::panic, reason = "it is what this guest is for")]

use std::hint::black_box;
use std::thread::sleep;
use std::time::Duration;

use wasmspawner_sdk::event::Event;
use wasmspawner_sdk::pod::{Customization, EnvVar};
use wasmspawner_sdk::{
    Action, AuthorizeRequest, Denial, Error, Image, Info, Options, Pair, Policy, Section, User, Verdict,
    export, hooks, host,
};

struct Stagehand;

impl Policy for Stagehand {
    fn info() -> Info {
        Info {
            name: "stagehand".into(),
            version: "0.0.0".into(),
            description: "Stages labs for tests".into(),
        }
    }

    fn from_config(_: &mut Section<'_>) -> Self {
        Self
    }
}

impl hooks::Authorize for Stagehand {
    fn decide(&self, request: &AuthorizeRequest) -> Result<Verdict, Error> {
        match request.user.name.as_str() {
            "denied" => Ok(Verdict::deny("Ask your local support for access.")),
            // What people see of it must say what it is.
            "denied-strangely" => Ok(Verdict::deny(format!("No\u{202e}\0!\u{1b}[2J{}", "x".repeat(900_000)))),
            "hurried" => Err(Error::RetryLater(7)),
            "trapped" => endless(),
            "frugal" if request.action == Action::Spawn => Ok(frugal()),
            "sparing" if is_large_pool(request) => {
                Ok(Verdict::deny(Denial::by_rule("few-large-workers", "At most 4 where workers are large.")))
            }
            "strict" if host::blueprint().is_some_and(|blueprint| blueprint.spec.contains("FORBIDDEN")) => {
                Ok(Verdict::deny(Denial::by_rule("no-such-blueprint", "Not this blueprint.")))
            }
            _ => Ok(Verdict::Allow),
        }
    }
}

impl hooks::Events for Stagehand {
    fn on_event(&self, event: &Event) {
        let Event { what, username, server, image, reason, .. } = event;
        let child = host::child().map(|child| child.name);
        host::info(&format!("heard: {what:?} {username}/{server} {child:?} {image:?} {reason:?}"));
        if username == "deaf" {
            endless();
        }
    }
}

/// True for a pool of more than 4 workers, if this part of it is large.
fn is_large_pool(request: &AuthorizeRequest) -> bool {
    let is_large = Options::from(request.options.clone()).text("size") == Some("large");
    is_large && host::child().is_some_and(|child| child.workers > 4)
}

/// Starts nothing any more once labs have run for a second.
fn frugal() -> Verdict {
    let used = host::past_use(1).lab_seconds;
    if used == 0 { Verdict::Allow } else { Verdict::deny(format!("Used {used} seconds.")) }
}

impl hooks::BuildPod for Stagehand {
    fn customize(&self, user: &User, _: &str, _: &Options) -> Result<Customization, Error> {
        let (act, how) = user.name.split_once('.').unwrap_or_default();
        match act {
            "fault" => Ok(staged("fault", how)),
            "later" => Ok(later(how)),
            "once" => Ok(once(how)),
            "pull" => Ok(staged("pull-delay", how)),
            "ready" => Ok(staged("ready-delay", how)),
            "stop" => Ok(staged("stop-delay", how)),
            "slow" => {
                sleep(Duration::from_secs(3));
                Ok(ordinary())
            }
            "act" => misbehave(how),
            "tell" => Ok(told()),
            _ => Ok(ordinary()),
        }
    }
}

fn ordinary() -> Customization {
    let image = Image { reference: "lab:1".into(), digest: None, description: Some("Plain".into()) };
    Customization { image: Some(image), ..Customization::default() }
}

/// A lab that tells which blueprints it is of.
fn told() -> Customization {
    let names = host::blueprint().map(|blueprint| blueprint.consists_of.join(" ")).unwrap_or_default();
    Customization { env: vec![EnvVar::literal("BLUEPRINTS", names)], ..ordinary() }
}

/// A lab that has the fault after two seconds of running.
fn later(fault: &str) -> Customization {
    let mut lab = staged("fault", fault);
    lab.annotations.extend(staged("fault-after", "2s").annotations);
    lab
}

/// A lab that has the fault only once, after two seconds of running.
fn once(fault: &str) -> Customization {
    let mut lab = later(fault);
    lab.annotations.extend(staged("fault-times", "1").annotations);
    lab
}

fn staged(direction: &str, value: &str) -> Customization {
    let annotation = Pair::new(format!("simulated.kubelet/{direction}"), value);
    Customization { annotations: vec![annotation], ..ordinary() }
}

fn misbehave(how: &str) -> Result<Customization, Error> {
    match how {
        "loop" => endless(),
        "memory" => {
            let mut hoard = Vec::new();
            while black_box(true) {
                hoard.push(vec![1_u8; 1 << 20]);
            }
        }
        "panic" => panic!("as asked"),
        "huge" => return Ok(Customization { working_dir: Some("x".repeat(10 << 20)), ..ordinary() }),
        "many" => {
            let env = (0..200_000).map(|n| EnvVar::literal(n.to_string(), "")).collect();
            return Ok(Customization { env, ..ordinary() });
        }
        "nul" => return Ok(Customization { env: vec![EnvVar::literal("A", "a\0b")], ..ordinary() }),
        "nul-in-path" => return Ok(Customization { working_dir: Some("/a\0b".into()), ..ordinary() }),
        "reordered" => {
            let env = vec![EnvVar::literal(format!("A\u{202e}{}", "b".repeat(200_000)), "x")];
            return Ok(Customization { env, ..ordinary() });
        }
        "long" => {
            let env = vec![EnvVar::literal("A", "x".repeat(900_000))];
            return Ok(Customization { env, ..ordinary() });
        }
        "long-path" => {
            return Ok(Customization {
                working_dir: Some(format!("/{}", "x".repeat(900_000))),
                ..ordinary()
            });
        }
        "long-image" => {
            let image = Image { reference: "x".repeat(900_000), digest: None, description: None };
            return Ok(Customization { image: Some(image), ..ordinary() });
        }
        "internal" => return Err(Error::Internal("a secret of the site".into())),
        _ => {}
    }
    Ok(ordinary())
}

fn endless() -> ! {
    let mut turns = 0_u64;
    loop {
        turns = black_box(turns.wrapping_add(1));
    }
}

export!(Stagehand: authorize, build_pod, events);
