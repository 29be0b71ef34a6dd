use wasmspawner_sdk::lab_server::Settings;
use wasmspawner_sdk::{Image, Section};

use crate::lab_server;

/// A container image that users may choose.
pub(crate) struct ImageChoice {
    pub(crate) image: Image,
    pub(crate) program: Program,
    /// True if nodes pull the image before anyone asks for it.
    pub(crate) prepull: bool,
}

/// The program of an image that replaces the site's command, with its port and probe.
pub(crate) struct Program {
    pub(crate) command: Option<Vec<String>>,
    pub(crate) args: Option<Vec<String>>,
    pub(crate) server: Settings,
}

impl Program {
    pub(crate) fn read(entry: &mut Section<'_>) -> Self {
        Self {
            command: entry.optional("command"),
            args: entry.optional("args"),
            server: lab_server::read(entry),
        }
    }
}

impl ImageChoice {
    pub(crate) fn read(entry: &mut Section<'_>) -> (Self, Option<String>) {
        let reference: String = entry.required("reference");
        let digest: Option<String> = entry.optional("digest");
        if digest.as_deref().is_some_and(|digest| !is_digest(digest)) {
            entry.problem("digest", "must be `sha256:` and 64 hexadecimal digits");
        }
        let label: Option<String> = entry.optional("label");
        let tag = reference.rsplit('/').next().unwrap_or(&reference).to_owned();
        let image = Image { reference, digest, description: label };
        let prepull = entry.or_default("prepull");
        (Self { image, program: Program::read(entry), prepull }, Some(tag))
    }

    /// The reference with the digest, as the service writes it into pods. A digest in the reference is kept.
    pub(crate) fn pinned(&self) -> String {
        let reference = &self.image.reference;
        match &self.image.digest {
            Some(digest) if !reference.contains('@') => format!("{reference}@{digest}"),
            _ => reference.clone(),
        }
    }
}

fn is_digest(text: &str) -> bool {
    let digits = text.strip_prefix("sha256:");
    digits.is_some_and(|digits| digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
