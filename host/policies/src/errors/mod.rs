//! Errors of calls, and of loading policies.

use std::fmt;
use std::path::PathBuf;

use oci_client::ParseError;
use wasmspawner_core::policy::{Denial, FieldError, GrantViolation, HookError};

use super::signature::{NotSigned, WrongKey};
use crate::names::hook::Hook;
use crate::names::message::{MESSAGES, message};
use crate::names::policy_name::PolicyName;
use wasmspawner_core::values::digest::DigestError;
use wasmspawner_files::confined_file::UnreadableFile;
use wasmspawner_registry::RegistryError;

/// The error of a call of a policy.
#[derive(Debug, thiserror::Error)]
#[error("policy `{policy}`, {hook}: {kind}")]
pub struct CallError {
    /// The policy that was called.
    pub policy: PolicyName,
    /// The hook that was called.
    pub hook: Hook,
    /// The kind of the error.
    pub kind: CallErrorKind,
}

/// The reason that a call gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallErrorKind {
    /// The policy denied the request. The message is the policy's own and is shown to the user.
    #[error("denied: {0}")]
    Denied(Denial),
    /// The request is invalid, field by field.
    #[error("the request is invalid: {}", Listed(.0))]
    Invalid(Vec<FieldError>),
    /// The policy asks the caller to retry after this many seconds.
    #[error("asks to try again in {0} s")]
    RetryLater(u32),
    /// The policy reported an internal error. The message is for the log and never for the user.
    #[error("reports a failure of its own: {0}")]
    Guest(String),
    /// The policy crashed: a panic, an abort, a stack overflow, or an answer that violates the Component Model. The
    /// text is the policy's standard error, shortened.
    #[error("crashed: {0}")]
    Trap(String),
    /// The policy computed for longer than its limit, in milliseconds.
    #[error("took longer than {0} ms")]
    Deadline(u64),
    /// The policy requested more memory than its limit.
    #[error("asked for {asked} bytes of memory, more than the {limit} it may have")]
    Memory {
        /// The requested memory, summed over all memories of the policy, in bytes.
        asked: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The policy's answer is larger than this many bytes.
    #[error("its answer is larger than {0} bytes")]
    OutputTooLarge(usize),
    /// Too many calls at once: no slot became free within this many milliseconds.
    #[error("no slot for the call became free in {0} ms; the service is overloaded")]
    Overloaded(u64),
    /// Too much memory at once: the calls in progress have taken all memory for calls.
    #[error(
        "no memory is left for the call; the calls of policies under way have too much, or the service's memory limit is too small"
    )]
    NoMemory,
    /// Too little CPU: the call could compute all the time, but has not ended within this many milliseconds.
    #[error("had too little CPU to answer within {0} ms; the machine is overloaded")]
    NoCpu(u64),
    /// The policy's answer needs a grant that the policy does not have.
    #[error(transparent)]
    NotGranted(GrantViolation),
    /// The policy's form cannot be filled in, field by field.
    #[error("its form cannot be filled in: {}", Listed(.0))]
    UnusableForm(Vec<FieldError>),
    /// The policy's menu of images, or its list of images to pull, cannot be used, field by field.
    #[error("its images cannot be offered: {}", Listed(.0))]
    UnusableMenu(Vec<FieldError>),
    /// The hook exists, but its type differs from that in the WIT package.
    #[error("its types are not those of the WIT package it was built for: {0}")]
    Incompatible(String),
    /// The policy could not be loaded when the service started, so none of the policies is asked.
    #[error("is not loaded: {0}")]
    NotLoaded(String),
    /// The WebAssembly engine failed.
    #[error("the engine failed: {0}")]
    Engine(String),
}

/// The party at fault when a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallBlame {
    /// The user or their request.
    Request,
    /// The policy.
    Policy,
    /// This service.
    Host,
}

impl CallErrorKind {
    /// Returns the party at fault.
    pub fn blame(&self) -> CallBlame {
        match self {
            Self::Denied(_) | Self::Invalid(_) | Self::RetryLater(_) => CallBlame::Request,
            Self::Guest(_)
            | Self::Trap(_)
            | Self::Deadline(_)
            | Self::Memory { .. }
            | Self::OutputTooLarge(_)
            | Self::NotGranted(_)
            | Self::UnusableForm(_)
            | Self::UnusableMenu(_)
            | Self::Incompatible(_)
            | Self::NotLoaded(_) => CallBlame::Policy,
            Self::Overloaded(_) | Self::NoMemory | Self::NoCpu(_) | Self::Engine(_) => CallBlame::Host,
        }
    }

    /// Returns true for an overload, after which the same call may succeed in a moment.
    pub fn is_overload(&self) -> bool {
        matches!(self, Self::Overloaded(_) | Self::NoMemory | Self::NoCpu(_))
    }

    /// Returns a short name for metrics and for machine-readable reasons. The name does not change between versions.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Denied(_) => "denied",
            Self::Invalid(_) => "invalid",
            Self::RetryLater(_) => "retry_later",
            Self::Guest(_) => "guest",
            Self::Trap(_) => "trap",
            Self::Deadline(_) => "deadline",
            Self::Memory { .. } => "memory",
            Self::OutputTooLarge(_) => "output_too_large",
            Self::NotGranted(_) => "not_granted",
            Self::UnusableForm(_) => "unusable_form",
            Self::UnusableMenu(_) => "unusable_menu",
            Self::Overloaded(_) | Self::NoMemory | Self::NoCpu(_) => "overloaded",
            Self::Incompatible(_) => "incompatible",
            Self::NotLoaded(_) => "not_loaded",
            Self::Engine(_) => "engine",
        }
    }
}

impl CallErrorKind {
    /// Creates the error for problems that a policy found in a request, cut to a readable length.
    pub(crate) fn invalid(fields: Vec<FieldError>) -> Self {
        Self::Invalid(readable_fields(fields))
    }

    /// Creates the error for problems that the service found in a policy's form, cut to a readable length.
    pub(crate) fn unusable_form(fields: Vec<FieldError>) -> Self {
        Self::UnusableForm(readable_fields(fields))
    }

    /// Creates the error for problems that the service found in a policy's images, cut to a readable length.
    pub(crate) fn unusable_menu(fields: Vec<FieldError>) -> Self {
        Self::UnusableMenu(readable_fields(fields))
    }
}

/// Cuts a policy's denial to a readable length.
pub(crate) fn readable(denial: Denial) -> Denial {
    Denial { message: message(denial.message), rule: denial.rule.map(message) }
}

/// Cuts field errors that quote a policy to a readable length.
fn readable_fields(mut fields: Vec<FieldError>) -> Vec<FieldError> {
    fields.truncate(MESSAGES);
    let short = |error: FieldError| FieldError::new(message(error.field), message(error.message));
    fields.into_iter().map(short).collect()
}

/// The longest pause that a policy can request, in seconds.
const MAX_PAUSE_SECONDS: u32 = 24 * 60 * 60;

impl From<HookError> for CallErrorKind {
    fn from(error: HookError) -> Self {
        match error {
            HookError::Denied(denial) => Self::Denied(readable(denial)),
            HookError::Invalid(fields) => Self::invalid(fields),
            HookError::RetryLater(seconds) => Self::RetryLater(seconds.clamp(1, MAX_PAUSE_SECONDS)),
            HookError::Internal(text) => Self::Guest(message(text)),
        }
    }
}

/// The error of a policy that cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[error("policy `{policy}`: {kind}")]
pub struct LoadError {
    /// The policy that cannot be loaded.
    pub policy: PolicyName,
    /// The kind of the error.
    pub kind: LoadErrorKind,
}

/// The reason that a policy cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadErrorKind {
    /// Two policies of the chain have the same name.
    #[error("the name is taken by another policy; give each its own `name`")]
    DuplicateName,
    /// The file cannot be read.
    #[error("cannot read {}: {error}", .path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// The reason that it cannot be read.
        error: UnreadableFile,
    },
    /// Site data cannot be read or used.
    #[error("data.{name}: {place}: {problem}")]
    Data {
        /// The name of the data.
        name: String,
        /// The file, or the URL of the document.
        place: String,
        /// A description of the problem.
        problem: String,
    },
    /// The configuration names no source, or two.
    #[error("has no source, or two; write either `path` or `oci`")]
    NoSource,
    /// The reference to an artifact in a registry is malformed.
    #[error(
        "{text:?} is not a reference such as ghcr.io/site/policy:1.2 or ghcr.io/site/policy@sha256:...: {error}"
    )]
    Reference {
        /// The reference, as the configuration has it.
        text: String,
        /// The error of the parser.
        error: ParseError,
    },
    /// The component cannot be read from its registry.
    #[error("cannot get {reference}: {error}")]
    Registry {
        /// The reference to the artifact.
        reference: String,
        /// The error of the registry.
        error: RegistryError,
    },
    /// The directory does not contain exactly one component.
    #[error("{} holds {found} files named *.wasm; it must hold exactly one, or `path` must name the file", .path.display())]
    AmbiguousDirectory {
        /// The directory.
        path: PathBuf,
        /// The number of components in it.
        found: usize,
    },
    /// The digest in the configuration is malformed.
    #[error(transparent)]
    Digest(DigestError),
    /// The file's digest differs from the one in the configuration.
    #[error("the file's digest is sha256:{actual}, the configuration pins sha256:{pinned}")]
    DigestMismatch {
        /// The digest in the configuration, in hexadecimal.
        pinned: String,
        /// The file's digest, in hexadecimal.
        actual: String,
    },
    /// A public key of the configuration cannot be used.
    #[error(transparent)]
    WrongKey(WrongKey),
    /// No key of the configuration has signed the component.
    #[error(transparent)]
    NotSigned(NotSigned),
    /// The component lacks a hook of `requires`.
    #[error(
        "does not export `{missing}`, which `requires` names; it exports {}. Export it in the policy, or change `requires`",
        .has.join(", ")
    )]
    MissingHook {
        /// The missing hook.
        missing: &'static str,
        /// The hooks that the component exports.
        has: Vec<&'static str>,
    },
    /// The file is not WebAssembly.
    #[error("is not WebAssembly; `wasmspawner policy build` makes a component of a policy's sources")]
    NotWebAssembly,
    /// The file is a core module.
    #[error(
        "is a core WebAssembly module and not a component; build it for wasm32-wasip2, or with `wasmspawner policy build`"
    )]
    CoreModule,
    /// The file is not a component, or cannot be compiled.
    #[error("not a usable WebAssembly component (build for wasm32-wasip2): {0}")]
    Compile(String),
    /// The compilation took longer than this many seconds.
    #[error("compiling it took longer than {0} s; make the component smaller, or give the service more CPU")]
    CompileTimeout(u64),
    /// The compilation needs more than this much memory, in MiB.
    #[error(
        "compiling it took more than {0} MiB of memory, or ended the compiler; give the service more memory (it takes five eighths \
         of what its container may have, at most 2 GiB), or make the component smaller"
    )]
    CompileMemory(u64),
    /// The machine code of the component is larger than this, in MiB.
    #[error("its machine code has more than {0} MiB; make the component smaller")]
    MachineCode(u64),
    /// The policy imports an interface that the service does not offer to policies.
    #[error(
        "imports `{0}`, which no policy gets; a policy may import wasmspawner:policy/host and, inert, wasi:*@0.2"
    )]
    Import(String),
    /// The policy cannot be linked: the type of one of its imports differs from that of the host.
    #[error("its imports do not fit the WIT package it was built for: {0}")]
    Link(String),
    /// The policy does not export its metadata.
    #[error("does not export wasmspawner:policy/metadata, which every policy must")]
    NoMetadata,
    /// The policy was built for a version of the WIT package that the service does not implement.
    #[error(
        "was built for wasmspawner:policy@{number}; this service implements {implemented}: build the policy with an SDK of that version, or install a service that knows {number}"
    )]
    OtherVersion {
        /// The version that the policy was built for.
        number: String,
        /// The version that the service implements.
        implemented: &'static str,
    },
    /// The policy exports a hook that its version of the WIT package does not have, so it would never be called.
    #[error(
        "exports `{name}`, which wasmspawner:policy@{version} does not have; all hooks of a policy must be of one version"
    )]
    UnknownHook {
        /// The exported interface.
        name: String,
        /// The version of the policy's metadata.
        version: &'static str,
    },
    /// The configuration has a `config` for the policy, but the policy does not accept one.
    #[error("has a `config`, but does not export wasmspawner:policy/config and takes none")]
    ConfigNotTaken,
    /// The policy rejects its configuration.
    #[error("its configuration is wrong: {}", Listed(.0))]
    Config(Vec<FieldError>),
    /// A call of the policy while it was loaded failed.
    #[error("a test call at load time failed: {0}")]
    Trial(CallErrorKind),
    /// The WebAssembly engine failed.
    #[error("the engine failed: {0}")]
    Engine(String),
}

/// The reason that the engine cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The machine does not support the settings.
    #[error("the WebAssembly engine cannot be set up: {0}")]
    Setup(String),
    /// Other users can access the cache directory.
    #[error("the policy cache {} must belong to this user and be closed to others (0700)", .0.display())]
    CacheNotPrivate(PathBuf),
    /// The cache directory cannot be created or read.
    #[error("cannot use the policy cache {}: {error}", .path.display())]
    Cache {
        /// The cache directory.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// The thread that measures time cannot be started.
    #[error("cannot start the engine's clock thread")]
    Clock(#[source] std::io::Error),
    /// The threads for long computations cannot be started.
    #[error("cannot start the engine's background threads")]
    Threads(#[source] std::io::Error),
}

/// Displays field errors on one line.
struct Listed<'a>(&'a [FieldError]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            let field = if error.field.is_empty() { "/" } else { &error.field };
            write!(f, "{field}: {}", error.message)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::message::MAX_MESSAGE_BYTES;

    #[test]
    fn messages_of_a_policy_are_cut_to_a_bounded_length() {
        let flood = vec![FieldError::new("é".repeat(5000), "x"); 5000];
        let CallErrorKind::Invalid(fields) = HookError::Invalid(flood).into() else { panic!("invalid") };
        assert_eq!(fields.len(), MESSAGES);
        assert!(fields[0].field.len() <= MAX_MESSAGE_BYTES + 4);
    }

    #[test]
    fn an_error_names_policy_hook_and_fields() {
        let kind =
            CallErrorKind::invalid(vec![FieldError::new("size", "is wrong"), FieldError::new("", "odd")]);
        let error = CallError { policy: "site".into(), hook: Hook::new("form.parse"), kind };
        assert_eq!(
            error.to_string(),
            "policy `site`, form.parse: the request is invalid: size: is wrong; /: odd"
        );
    }
}
