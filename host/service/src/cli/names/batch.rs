//! `--batch`: the names for a whole list of users, one user per line.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use serde::Deserialize;
use serde_json::Value;
use wasmspawner_core::names::SlugScheme;
use wasmspawner_core::names::kubespawner::{Collision, Collisions};

use super::answer::{self, Asker};

#[derive(Deserialize)]
struct Line {
    username: String,
    #[serde(default)]
    servername: String,
    userid: Option<i64>,
}

/// Prints the names for every line of the file, or of `input` if the file is `-`.
pub(super) fn run(
    asker: &Asker<'_>,
    file: &Path,
    input: impl BufRead,
    out: &mut impl Write,
    remarks: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let mut batch = Batch { asker, collisions: Vec::new(), refused: 0 };
    if file == Path::new("-") {
        batch.answer(input, out)?;
    } else {
        let opened = File::open(file).with_context(|| format!("--batch {}", file.display()))?;
        batch.answer(BufReader::new(opened), out)?;
    }
    batch.conclude(remarks)
}

struct Batch<'a> {
    asker: &'a Asker<'a>,
    collisions: Vec<(SlugScheme, Collisions)>,
    refused: usize,
}

impl Batch<'_> {
    fn answer(&mut self, input: impl BufRead, out: &mut impl Write) -> anyhow::Result<()> {
        for (index, line) in input.lines().enumerate() {
            let line = line.with_context(|| format!("--batch, line {}", index + 1))?;
            if line.trim().is_empty() {
                continue;
            }
            let answer = match self.line(&line) {
                Ok(answer) => answer,
                Err(error) => {
                    self.refused += 1;
                    answer::error(&format!("line {}: {error}", index + 1))
                }
            };
            writeln!(out, "{answer}")?;
        }
        Ok(())
    }

    fn line(&mut self, line: &str) -> anyhow::Result<Value> {
        let line: Line = serde_json::from_str(line)?;
        let userid = line.userid.unwrap_or(self.asker.args.userid);
        let reports = self.asker.ask(&line.username, &line.servername, userid)?;
        for (scheme, report) in &reports {
            let known = self.collisions.iter().position(|(known, _)| known == scheme);
            let index = known.unwrap_or_else(|| {
                self.collisions.push((*scheme, Collisions::default()));
                self.collisions.len() - 1
            });
            if let Some((_, collisions)) = self.collisions.get_mut(index) {
                collisions.add(&line.username, &line.servername, report);
            }
        }
        Ok(self.asker.json(&reports)?)
    }

    fn conclude(&self, remarks: &mut impl Write) -> anyhow::Result<ExitCode> {
        let mut shared = 0;
        for (scheme, collisions) in &self.collisions {
            for collision in collisions.found() {
                shared += 1;
                writeln!(remarks, "collision, scheme {}: {}", scheme.as_str(), describe(&collision))?;
            }
        }
        if shared == 0 && self.refused == 0 {
            return Ok(ExitCode::SUCCESS);
        }
        writeln!(remarks, "{} lines refused, {shared} names shared", self.refused)?;
        Ok(ExitCode::FAILURE)
    }
}

fn describe(collision: &Collision) -> String {
    let owner = |(user, server): &(String, String)| {
        if server.is_empty() { format!("{user:?}") } else { format!("{user:?} server {server:?}") }
    };
    let owners: Vec<String> = collision.owners.iter().map(owner).collect();
    format!("{} {:?} would be shared by {}", collision.what, collision.name, owners.join(" and "))
}
