//! Questions as input of `wasmspawner policy run`.

use serde_json::{Value, json};
use wasmspawner_core::names::spawn_key::ChildKind;
use wasmspawner_core::policy::{LabRequest, Options, Subject, User};

pub(super) fn of_user(user: &User, server: &str) -> Value {
    let groups: Vec<Value> =
        user.groups.iter().map(|group| json!({ "name": group.name, "gid": group.gid })).collect();
    let user = json!({ "name": user.name, "uid": user.uid, "gid": user.gid, "groups": groups });
    json!({ "user": user, "server": server })
}

pub(super) fn of_lab(request: &LabRequest) -> Value {
    about(with_options(of_user(&request.user, &request.server), &request.options), &request.subject)
}

pub(super) fn with_options(mut input: Value, options: &Options) -> Value {
    input["options"] = json!(options);
    input
}

pub(super) fn about(mut input: Value, subject: &Subject) -> Value {
    input["use"] = json!(subject.use_of_user);
    if let Some(child) = &subject.child {
        let kind = match child.kind {
            ChildKind::Kernel => "kernel",
            ChildKind::DaskPool => "dask-pool",
        };
        input["child"] = json!({ "kind": kind, "name": child.name, "workers": child.workers });
    }
    input
}
