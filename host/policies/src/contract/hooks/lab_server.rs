//! `lab-server`: decides how the program in a lab's container is reached.

use std::sync::Arc;

use serde_json::Value;
use wasmspawner_core::policy::{LabProbe, LabRequest, LabServer};

use super::{About, Exports, Question, call, input, refusal};
use crate::contract::bindings::hooks::lab_server as wit;
use crate::contract::convert::{option_entries, user};
use crate::contract::guest::Calling;
use crate::names::hook::Hook;

/// Asks how the program of a lab is reached.
#[derive(Clone)]
pub(crate) struct ServeLab(pub(crate) Arc<LabRequest>);

impl Question for ServeLab {
    const HOOK: Hook = Hook::new("lab-server.decide");

    type Interface = wit::GuestIndices;
    type Answer = LabServer;

    fn interface(exports: &Exports) -> Option<&wit::GuestIndices> {
        exports.lab_server.as_ref()
    }

    fn call(&self, interface: &wit::GuestIndices) -> Calling<LabServer> {
        let request = wit::Request {
            user: user(&self.0.user),
            server: self.0.server.clone(),
            options: option_entries(&self.0.options),
        };
        call!(interface, |exports, store| exports.call_decide(&mut store, &request), |answer| {
            answer.map(lab_server).map_err(refusal)
        })
    }

    fn about(&self) -> About {
        About { lab: self.0.fields.clone(), subject: self.0.subject.clone() }
    }

    fn input(&self) -> Option<Value> {
        Some(input::of_lab(&self.0))
    }
}

fn lab_server(answer: wit::Settings) -> LabServer {
    let probe = |probe| match probe {
        wit::Probe::Http(path) => LabProbe::Http(path),
        wit::Probe::Tcp => LabProbe::Tcp,
        wit::Probe::None => LabProbe::None,
    };
    LabServer { port: answer.port, probe: answer.probe.map(probe) }
}
