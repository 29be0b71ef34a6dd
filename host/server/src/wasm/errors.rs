use std::fmt;
use std::path::PathBuf;

use wasmspawner_core::policy::{FieldError, GrantViolation, HookError};

use super::digest::DigestError;
use super::hook::Hook;
use super::policy_name::PolicyName;

/// A policy that gave no answer to one call.
#[derive(Debug, thiserror::Error)]
#[error("policy `{policy}`, {hook}: {kind}")]
pub struct CallError {
    /// Which policy.
    pub policy: PolicyName,
    /// Which of its hooks.
    pub hook: Hook,
    /// What happened.
    pub kind: CallErrorKind,
}

/// What kept a call from an answer.
#[derive(Debug, thiserror::Error)]
pub enum CallErrorKind {
    /// The user may not do this; the message is the policy's own and is shown to them.
    #[error("denied: {0}")]
    Denied(String),
    /// The request is at fault, field by field.
    #[error("the request is invalid: {}", Listed(.0))]
    Invalid(Vec<FieldError>),
    /// Not now; try again after so many seconds.
    #[error("asks to try again in {0} s")]
    RetryLater(u32),
    /// The policy reports a failure of its own. For the log, never for the user.
    #[error("reports a failure of its own: {0}")]
    Guest(String),
    /// The policy crashed: a panic, an abort, a stack overflow, an answer that breaks the Component Model's
    /// rules. Carries what it wrote to its standard error, shortened.
    #[error("crashed: {0}")]
    Trap(String),
    /// It computed for longer than it may.
    #[error("took longer than {0} ms")]
    Deadline(u64),
    /// It wanted more memory than it may have, in bytes.
    #[error("asked for {asked} bytes of memory, more than the {limit} it may have")]
    Memory {
        /// Sum over all its memories, in bytes.
        asked: usize,
        /// What it may have, in bytes.
        limit: usize,
    },
    /// Its answer exceeds so many bytes.
    #[error("its answer is larger than {0} bytes")]
    OutputTooLarge(usize),
    /// Too many calls at once: no slot became free in time.
    #[error("no slot for the call became free in {0} ms; the service is overloaded")]
    Overloaded(u64),
    /// It answers what it has no grant for.
    #[error(transparent)]
    NotGranted(GrantViolation),
    /// Its form is one that nobody could fill in, field by field.
    #[error("its form cannot be filled in: {}", Listed(.0))]
    UnusableForm(Vec<FieldError>),
    /// The hook is there, with another type than this host's WIT package.
    #[error("its types are not those of wasmspawner:policy@0.1.0: {0}")]
    Incompatible(String),
    /// The engine itself failed.
    #[error("the engine failed: {0}")]
    Engine(String),
}

/// Whose fault a failed call is.
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
    /// Whose fault it is.
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
            | Self::Incompatible(_) => CallBlame::Policy,
            Self::Overloaded(_) | Self::Engine(_) => CallBlame::Host,
        }
    }

    /// A short, stable name for metrics and machine-readable reasons.
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
            Self::Overloaded(_) => "overloaded",
            Self::Incompatible(_) => "incompatible",
            Self::Engine(_) => "engine",
        }
    }
}

/// Field errors of one answer that are passed on.
const FIELD_ERRORS: usize = 100;
/// Bytes of a policy's message that are passed on.
const MESSAGE_BYTES: usize = 2000;

impl CallErrorKind {
    /// What a policy finds wrong with a request: as much of it as somebody reads.
    pub(super) fn invalid(mut fields: Vec<FieldError>) -> Self {
        fields.truncate(FIELD_ERRORS);
        let short = |error: FieldError| FieldError::new(shortened(error.field), shortened(error.message));
        Self::Invalid(fields.into_iter().map(short).collect())
    }
}

fn shortened(mut message: String) -> String {
    if message.len() > MESSAGE_BYTES {
        message.truncate(message.floor_char_boundary(MESSAGE_BYTES));
        message.push_str(" ...");
    }
    message
}

impl From<HookError> for CallErrorKind {
    fn from(error: HookError) -> Self {
        match error {
            HookError::Denied(message) => Self::Denied(shortened(message)),
            HookError::Invalid(fields) => Self::invalid(fields),
            HookError::RetryLater(seconds) => Self::RetryLater(seconds),
            HookError::Internal(message) => Self::Guest(shortened(message)),
        }
    }
}

/// A policy that does not go live.
#[derive(Debug, thiserror::Error)]
#[error("policy `{policy}`: {kind}")]
pub struct LoadError {
    /// Which policy.
    pub policy: PolicyName,
    /// Why.
    pub kind: LoadErrorKind,
}

/// Why a policy does not go live.
#[derive(Debug, thiserror::Error)]
pub enum LoadErrorKind {
    /// Two policies of one set with one name.
    #[error("the name is taken by another policy; give each its own `name`")]
    DuplicateName,
    /// The file cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    Read {
        /// What was to be read.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A directory that does not hold exactly one component.
    #[error("{} holds {found} files named *.wasm; it must hold exactly one, or `path` must name the file", .path.display())]
    AmbiguousDirectory {
        /// The directory.
        path: PathBuf,
        /// How many components it holds.
        found: usize,
    },
    /// Larger than a policy may be.
    #[error("{} has {size} bytes; a policy may have {limit}", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The pin is no digest.
    #[error(transparent)]
    Digest(DigestError),
    /// Not what the operator pinned.
    #[error("the file's digest is sha256:{actual}, the configuration pins sha256:{pinned}")]
    DigestMismatch {
        /// Hexadecimal.
        pinned: String,
        /// Hexadecimal.
        actual: String,
    },
    /// Not a component, or not one that compiles.
    #[error("not a usable WebAssembly component (build for wasm32-wasip2): {0}")]
    Compile(String),
    /// Compilation takes suspiciously long.
    #[error("compiling it took longer than {0} s")]
    CompileTimeout(u64),
    /// It wants something no policy gets.
    #[error(
        "imports `{0}`, which no policy gets; a policy may import wasmspawner:policy/host@0.1.0 and, inert, wasi:*@0.2"
    )]
    Import(String),
    /// It cannot be linked: an import exists with another type.
    #[error("its imports do not fit wasmspawner:policy@0.1.0: {0}")]
    Link(String),
    /// It does not say who it is.
    #[error("does not export wasmspawner:policy/metadata@0.1.0")]
    NoMetadata,
    /// It got a configuration and has no use for one.
    #[error("has a `config`, but does not export wasmspawner:policy/config@0.1.0 and takes none")]
    ConfigNotTaken,
    /// The policy refuses its configuration.
    #[error("its configuration is wrong: {}", Listed(.0))]
    Config(Vec<FieldError>),
    /// A call at load time failed.
    #[error("a trial call failed: {0}")]
    Trial(CallErrorKind),
    /// This service failed.
    #[error("the engine failed: {0}")]
    Engine(String),
}

/// The engine cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Settings this machine cannot serve.
    #[error("the WebAssembly engine cannot be set up: {0}")]
    Setup(String),
    /// The cache directory is not private.
    #[error("the policy cache {} must belong to this user and be closed to others (0700)", .0.display())]
    CacheNotPrivate(PathBuf),
    /// The cache directory cannot be made.
    #[error("cannot use the policy cache {}: {source}", .path.display())]
    Cache {
        /// The directory.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The thread that measures time cannot be started.
    #[error("cannot start the engine's clock thread")]
    Clock(#[source] std::io::Error),
}

/// Field errors as one line.
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

    #[test]
    fn a_policy_does_not_flood_logs_and_answers_with_messages() {
        let flood = vec![FieldError::new("é".repeat(5000), "x"); 5000];
        let CallErrorKind::Invalid(fields) = HookError::Invalid(flood).into() else { panic!("invalid") };
        assert_eq!(fields.len(), FIELD_ERRORS);
        assert!(fields[0].field.len() <= MESSAGE_BYTES + 4);
    }

    #[test]
    fn an_error_names_policy_hook_and_fields() {
        let kind =
            CallErrorKind::invalid(vec![FieldError::new("size", "is wrong"), FieldError::new("", "odd")]);
        let error = CallError { policy: "site".into(), hook: Hook::ParseForm, kind };
        assert_eq!(
            error.to_string(),
            "policy `site`, form.parse: the request is invalid: size: is wrong; /: odd"
        );
    }
}
