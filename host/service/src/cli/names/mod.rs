//! `wasmspawner names`: the names that KubeSpawner and this service give to a user's objects, for comparison before a
//! site moves.

mod answer;
mod batch;
#[cfg(test)]
mod tests;
mod text;

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use wasmspawner_core::names::kubespawner::KubeSpawner;
use wasmspawner_core::names::{Compat, SlugScheme};

use answer::Asker;

/// Prints every template field of a user's server and the names that result, under both slug schemes or one.
#[derive(Debug, Clone, Args)]
pub struct NamesArgs {
    /// The username, as JupyterHub has it
    #[arg(long, required_unless_present = "batch", conflicts_with = "batch")]
    user: Option<String>,
    /// The server name; empty for the default server
    #[arg(long, default_value = "", conflicts_with = "batch")]
    server: String,
    /// JupyterHub's number for the user; the default is only an example
    #[arg(long, default_value_t = 42, allow_negative_numbers = true)]
    userid: i64,
    /// One slug scheme; without it both are shown
    #[arg(long)]
    scheme: Option<SchemeArg>,
    /// Also render this template, which may use any of the fields
    #[arg(long, allow_hyphen_values = true)]
    template: Option<String>,
    /// What to follow where KubeSpawner's documentation and its release 7.1.0 differ
    #[arg(long, default_value = "7.1.0")]
    compat: CompatArg,
    /// KubeSpawner's namespace; the default is only an example
    #[arg(long, default_value = "jhub")]
    namespace: String,
    /// The Hub's namespace; the default is only an example
    #[arg(long, default_value = "user")]
    hub_namespace: String,
    /// Answer in JSON: the report of the one scheme, else an object with a key for each scheme
    #[arg(long)]
    json: bool,
    /// A file, or - for standard input, with one JSON object per line: {"username": ..., "servername": ...}. One line
    /// of JSON is printed for each; names that two of them would share are listed on standard error
    #[arg(long, value_name = "FILE")]
    batch: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SchemeArg {
    Safe,
    Escape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CompatArg {
    #[value(name = "7.1.0")]
    Release,
    Documented,
}

impl NamesArgs {
    /// Prints answers to `out` and remarks to `remarks`. The exit code is 1 if a name or template is bad or a name is
    /// shared.
    pub fn run(
        &self,
        input: impl BufRead,
        out: &mut impl Write,
        remarks: &mut impl Write,
    ) -> anyhow::Result<ExitCode> {
        let names = match KubeSpawner::new(self.template.as_deref()) {
            Ok(names) => names,
            Err(error) => return self.refuse(&error, out, remarks),
        };
        let asker = Asker { args: self, names: &names };
        if let Some(file) = &self.batch {
            return batch::run(&asker, file, input, out, remarks);
        }
        let user = self.user.as_deref().unwrap_or_default();
        let reports = match asker.ask(user, &self.server, self.userid) {
            Ok(reports) => reports,
            Err(error) => return self.refuse(&error, out, remarks),
        };
        if let Some(remark) = answer::refused_here(user, &self.server) {
            writeln!(remarks, "note: wasmspawner itself refuses this name: {remark}")?;
        }
        if self.json {
            serde_json::to_writer(&mut *out, &asker.json(&reports)?)?;
            writeln!(out)?;
        } else {
            text::write(out, user, &self.server, &reports)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn refuse(
        &self,
        error: &dyn std::error::Error,
        out: &mut impl Write,
        remarks: &mut impl Write,
    ) -> anyhow::Result<ExitCode> {
        if self.json || self.batch.is_some() {
            writeln!(out, "{}", answer::error(&error.to_string()))?;
        } else {
            writeln!(remarks, "error: {error}")?;
        }
        Ok(ExitCode::FAILURE)
    }

    fn schemes(&self) -> Vec<SlugScheme> {
        match self.scheme {
            Some(SchemeArg::Safe) => vec![SlugScheme::Safe],
            Some(SchemeArg::Escape) => vec![SlugScheme::Escape],
            None => vec![SlugScheme::Safe, SlugScheme::Escape],
        }
    }

    fn compat(&self) -> Compat {
        match self.compat {
            CompatArg::Release => Compat::V7_1_0,
            CompatArg::Documented => Compat::Documented,
        }
    }
}
