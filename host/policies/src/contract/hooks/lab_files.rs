//! `lab-files`: gives text files to a lab.

use std::sync::Arc;

use serde_json::Value;
use wasmspawner_core::policy::{LabRequest, TextFile};

use super::{About, Exports, Question, call, input, refusal};
use crate::contract::bindings::hooks::lab_files as wit;
use crate::contract::convert::{option_entries, user};
use crate::contract::guest::Calling;
use crate::names::hook::Hook;

/// Asks which text files a lab has.
#[derive(Clone)]
pub(crate) struct FilesOfLab(pub(crate) Arc<LabRequest>);

impl Question for FilesOfLab {
    const HOOK: Hook = Hook::new("lab-files.decide");

    type Interface = wit::GuestIndices;
    type Answer = Vec<TextFile>;

    fn interface(exports: &Exports) -> Option<&wit::GuestIndices> {
        exports.lab_files.as_ref()
    }

    fn call(&self, interface: &wit::GuestIndices) -> Calling<Vec<TextFile>> {
        let request = wit::Request {
            user: user(&self.0.user),
            server: self.0.server.clone(),
            options: option_entries(&self.0.options),
        };
        call!(interface, |exports, store| exports.call_decide(&mut store, &request), |answer| {
            answer.map(|files| files.into_iter().map(text_file).collect()).map_err(refusal)
        })
    }

    fn about(&self) -> About {
        About { lab: self.0.fields.clone(), subject: self.0.subject.clone() }
    }

    fn input(&self) -> Option<Value> {
        Some(input::of_lab(&self.0))
    }
}

fn text_file(file: wit::TextFile) -> TextFile {
    TextFile { path: file.path, content: file.content }
}
