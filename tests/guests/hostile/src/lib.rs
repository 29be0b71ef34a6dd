//! A policy that misbehaves as its configuration says. The host must survive each `act` and report the policy's name.

#![cfg(target_arch = "wasm32")]
#![expect(clippy::panic, reason = "it is what this guest is for")]

use std::hint::black_box;
use std::time::Duration;

use wasmspawner_sdk::pod::{Customization, EnvVar};
use wasmspawner_sdk::{Error, Info, Options, Policy, Section, User, export, hooks, host};

struct Hostile {
    act: String,
}

impl Policy for Hostile {
    fn info() -> Info {
        Info { name: "hostile".into(), version: "0.0.0".into(), description: "Breaks every rule".into() }
    }

    fn from_config(config: &mut Section<'_>) -> Self {
        let act: String = config.or_default("act");
        match act.as_str() {
            "loop-at-load" => endless(),
            "wrong-config" => config.problem("act", "is wrong, as asked"),
            "warn" => config.warning("act", "is strange"),
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
            "denied" => return Err(Error::Denied(format!("not for {}", user.name))),
            "invalid" => return Err(Error::invalid("size", "is wrong")),
            "retry" => return Err(Error::RetryLater(7)),
            "internal" => return Err(Error::Internal("a secret of the site".into())),
            _ => {}
        }
        Ok(customization)
    }
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

export!(Hostile: build_pod);
