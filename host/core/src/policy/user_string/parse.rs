//! Parses user strings.

use super::{InvalidRepository, Repository, SpawnString, UserString, Wanted};
use crate::names::spawn_key::{ChildKey, ChildKind};
use crate::names::{ChildName, InvalidName, ObjectName, ServerName, Username};
use crate::workload::{InvalidWorkload, Workload};

/// The largest length of a user string, in bytes.
const MAX_USER_STRING_BYTES: usize = 1024;

/// Text that is not a user string.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("character {position} of the user string: {problem}")]
pub struct InvalidUserString {
    /// The position of the mistake: the number of a character, from 1.
    pub position: usize,
    /// The mistake.
    pub problem: UserStringProblem,
}

/// The mistake in a user string.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UserStringProblem {
    /// The text is too long.
    #[error("a user string has at most 1024 bytes, and this one has {0}")]
    TooLong(usize),
    /// A `%` without two hexadecimal digits, or bytes that are not UTF-8.
    #[error("`%` stands before two hexadecimal digits of a byte of UTF-8: `%7E` is `~`")]
    Escape,
    /// A name that JupyterHub or Kubernetes does not allow.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// The name of a server is missing after the `/`.
    #[error("the name of a server is missing after `/`")]
    NoServer,
    /// A setting without a value.
    #[error("a setting is `KEY=VALUE`, and KEY is one of {KEYS}")]
    NoValue,
    /// A setting of an unknown name.
    #[error("there is no setting `{0}`; there are {KEYS}")]
    UnknownKey(String),
    /// A setting that occurs twice.
    #[error("`{0}` is there twice")]
    Twice(String),
    /// A kernel or a pool where a lab is asked for.
    #[error("`{0}` names what a lab has started, and this is about a lab")]
    Child(String),
    /// More than one kernel or pool.
    #[error("one kernel or one pool is named at a time")]
    Children,
    /// The repository is invalid.
    #[error(transparent)]
    Repository(#[from] InvalidRepository),
    /// The workload is invalid.
    #[error(transparent)]
    Workload(#[from] InvalidWorkload),
}

const KEYS: &str = "`blueprint`, `repo` and `workload`, and `kernel` or `dask-pool` where what a lab has started may be named";

/// A part of the text, and the position at which it begins.
#[derive(Clone, Copy)]
struct Part<'a> {
    text: &'a str,
    /// The number of the part's first character, from 1.
    position: usize,
}

impl<'a> Part<'a> {
    fn refuse<T>(self, problem: impl Into<UserStringProblem>) -> Result<T, InvalidUserString> {
        Err(InvalidUserString { position: self.position, problem: problem.into() })
    }

    /// Splits the part at the first `separator`.
    fn split_at(self, separator: char) -> (Self, Option<Self>) {
        let Some((first, rest)) = self.text.split_once(separator) else { return (self, None) };
        let position = self.position + first.chars().count() + 1;
        (Self { text: first, ..self }, Some(Self { text: rest, position }))
    }

    /// Returns the text without its percent-encoding.
    fn decoded(self) -> Result<String, InvalidUserString> {
        let mut bytes = Vec::with_capacity(self.text.len());
        let mut rest = self.text.as_bytes();
        while let [first, after @ ..] = rest {
            rest = after;
            if *first != b'%' {
                bytes.push(*first);
                continue;
            }
            let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
            let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
            let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) else {
                let before = &self.text[..self.text.len() - after.len() - 1];
                let position = self.position + before.chars().count();
                return Self { position, ..self }.refuse(UserStringProblem::Escape);
            };
            bytes.push(byte);
            rest = &after[2..];
        }
        String::from_utf8(bytes).or_else(|_| self.refuse(UserStringProblem::Escape))
    }

    fn parsed<T, E: Into<UserStringProblem>>(
        self,
        parse: impl FnOnce(&'a str) -> Result<T, E>,
    ) -> Result<T, InvalidUserString> {
        parse(self.text).or_else(|problem| self.refuse(problem))
    }
}

impl UserString {
    /// Parses a user string.
    pub fn parse(text: &str) -> Result<Self, InvalidUserString> {
        parse(text, |kind, key, _| key.refuse(UserStringProblem::Child(kind.to_owned())))
    }
}

impl SpawnString {
    /// Parses a user string that may name a kernel or a pool.
    pub fn parse(text: &str) -> Result<Self, InvalidUserString> {
        let mut child = None;
        let lab = parse(text, |kind, key, name| {
            let name = name.parsed(ChildName::parse)?;
            let kind = if kind == KERNEL { ChildKind::Kernel } else { ChildKind::DaskPool };
            match child.replace(ChildKey { kind, name }) {
                None => Ok(()),
                Some(_) => key.refuse(UserStringProblem::Children),
            }
        })?;
        Ok(Self { lab, child })
    }
}

/// The setting that names a kernel of the lab.
pub(super) const KERNEL: &str = "kernel";
/// The setting that names a Dask pool of the lab.
pub(super) const DASK_POOL: &str = "dask-pool";

/// Parses a user string. `child` gets the name of a setting that names a child, its place, and its value.
fn parse<'a>(
    text: &'a str,
    mut child: impl FnMut(&'a str, Part<'a>, Part<'a>) -> Result<(), InvalidUserString>,
) -> Result<UserString, InvalidUserString> {
    let all = Part { text, position: 1 };
    if text.len() > MAX_USER_STRING_BYTES {
        return all.refuse(UserStringProblem::TooLong(text.len()));
    }
    let (lab, mut settings) = all.split_at('~');
    let (user, server) = lab.split_at('/');
    let user = Username::parse(user.decoded()?).or_else(|problem| user.refuse(problem))?;
    let server = match server {
        Some(part) if part.text.is_empty() => return part.refuse(UserStringProblem::NoServer),
        Some(part) => Some(ServerName::parse(part.decoded()?).or_else(|problem| part.refuse(problem))?),
        None => None,
    };
    let mut wanted = Wanted::default();
    while let Some(rest) = settings {
        let (setting, following) = rest.split_at('~');
        let (key, value) = setting.split_at('=');
        let Some(value) = value.filter(|value| !value.text.is_empty()) else {
            return setting.refuse(UserStringProblem::NoValue);
        };
        match key.text {
            kind @ (KERNEL | DASK_POOL) => child(kind, key, value)?,
            _ => wanted.set(key, value)?,
        }
        settings = following;
    }
    Ok(UserString { user, server, wanted })
}

impl Wanted {
    fn set(&mut self, key: Part<'_>, value: Part<'_>) -> Result<(), InvalidUserString> {
        let is_set = match key.text {
            "blueprint" => self.blueprint.replace(value.parsed(ObjectName::parse)?).is_some(),
            "repo" => self.repository.replace(value.parsed(Repository::parse)?).is_some(),
            "workload" => self.workload.replace(value.parsed(Workload::parse)?).is_some(),
            unknown => return key.refuse(UserStringProblem::UnknownKey(unknown.to_owned())),
        };
        if is_set { key.refuse(UserStringProblem::Twice(key.text.to_owned())) } else { Ok(()) }
    }
}
