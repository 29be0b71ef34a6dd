//! The functions that a policy can import.

use super::bindings::{host, types};
use crate::wasm::call_state::CallState;

impl types::Host for CallState {}

impl host::Host for CallState {
    fn config(&mut self) -> String {
        self.policy_config().to_owned()
    }

    fn log(&mut self, level: host::Level, message: String) {
        let level = match level {
            host::Level::Debug => tracing::Level::DEBUG,
            host::Level::Info => tracing::Level::INFO,
            host::Level::Warn => tracing::Level::WARN,
            host::Level::Error => tracing::Level::ERROR,
        };
        self.write_log(level, &message);
    }

    fn clock_now(&mut self) -> u64 {
        self.now_ms()
    }

    fn random(&mut self, length: u32) -> Vec<u8> {
        self.random_bytes(length)
    }

    fn expand(&mut self, template: String) -> Result<String, String> {
        self.expand_template(template)
    }
}
