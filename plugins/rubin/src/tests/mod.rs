//! Tests of the whole policy.

mod configuration;
mod images;
mod labs;
mod vectors;

use serde_json::Value;
use wasmspawner_sdk::testing::TestKit;
use wasmspawner_sdk::{User, UserQuota};

use crate::RubinPolicy;

fn example() -> Value {
    serde_json::from_str(include_str!("../../example.json")).unwrap()
}

/// The policy with this configuration.
fn site(config: &Value) -> TestKit<RubinPolicy> {
    TestKit::new(config).unwrap()
}

fn ada() -> User {
    User { uid: Some(1001), gid: Some(1002), ..User::named("ada") }
}

fn with_quota(cpu_millis: u64, memory_bytes: u64) -> User {
    let quota = UserQuota { cpu_millis: Some(cpu_millis), memory_bytes: Some(memory_bytes), spawn: true };
    User { quota: Some(quota), ..ada() }
}
