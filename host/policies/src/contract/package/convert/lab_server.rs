use wasmspawner_core::policy::{LabProbe, LabRequest, LabServer};

use super::super::bindings::hooks::lab_server as wit;
use super::user::{option_entries, user};

pub(in super::super) fn lab_server_request(request: &LabRequest) -> wit::Request {
    wit::Request {
        user: user(&request.user),
        server: request.server.clone(),
        options: option_entries(&request.options),
    }
}

pub(in super::super) fn lab_server(answer: wit::Settings) -> LabServer {
    let probe = |probe| match probe {
        wit::Probe::Http(path) => LabProbe::Http(path),
        wit::Probe::Tcp => LabProbe::Tcp,
        wit::Probe::None => LabProbe::None,
    };
    LabServer { port: answer.port, probe: answer.probe.map(probe) }
}
