use std::collections::BTreeSet;
use std::fmt::Write as _;

/// What became of every key.
#[derive(Debug, Default)]
pub struct Report {
    /// The entries, in the order in which the keys were converted.
    pub entries: Vec<Entry>,
}

/// What became of one key.
#[derive(Debug)]
pub struct Entry {
    /// The key, such as `singleuser.memory.limit`.
    pub path: String,
    /// The file and the line of the key; none for a default of the chart.
    pub place: Option<(String, u64)>,
    /// What became of it.
    pub outcome: Outcome,
}

/// What becomes of a key.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is in the new configuration.
    Carried {
        /// The key there.
        to: String,
        /// What is different, if anything is.
        note: String,
    },
    /// The Hub goes on reading it.
    Stays(String),
    /// Nothing has to take its place.
    NotNeeded(String),
    /// A person decides.
    Open {
        /// What it did.
        did: String,
        /// The ways to have that here.
        ways: String,
    },
}

impl Report {
    /// The number of entries that a person has to decide about.
    pub fn open(&self) -> usize {
        self.entries.iter().filter(|entry| matches!(entry.outcome, Outcome::Open { .. })).count()
    }

    /// Reports each key once: the last outcome counts.
    pub(crate) fn keep_last_outcomes(&mut self) {
        let mut seen = BTreeSet::new();
        self.entries.reverse();
        self.entries.retain(|entry| seen.insert(entry.path.clone()));
        self.entries.reverse();
    }

    /// Adds a key of the new configuration that the service would refuse.
    pub fn invalid(&mut self, key: &str, problem: &str) {
        let did = format!("is a key of the new configuration that cannot be used: {problem}");
        let ways = "Correct it there".to_owned();
        self.entries.push(Entry { path: key.to_owned(), place: None, outcome: Outcome::Open { did, ways } });
    }

    /// The report as text, in Markdown.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let is_default = |entry: &&Entry| entry.place.is_none();
        let section = |text: &mut String,
                       title: &str,
                       line: &dyn Fn(&Entry) -> Option<String>,
                       defaults: bool| {
            let lines: Vec<_> =
                self.entries.iter().filter(|entry| is_default(entry) == defaults).filter_map(line).collect();
            if !lines.is_empty() {
                _ = write!(text, "## {title}\n\n{}\n", lines.concat());
            }
        };
        section(&mut text, "To be decided", &open, false);
        section(&mut text, "To be decided, about defaults of the chart", &open, true);
        section(&mut text, "Carried over", &carried, false);
        section(&mut text, "Carried over from the chart's defaults", &carried, true);
        section(&mut text, "Stays in the Hub's values", &stays, false);
        section(&mut text, "Not needed", &not_needed, false);
        text
    }
}

impl Entry {
    fn name(&self) -> String {
        match &self.place {
            Some((file, line)) => format!("- `{}` ({file}:{line})", self.path),
            None => format!("- `{}`", self.path),
        }
    }
}

fn open(entry: &Entry) -> Option<String> {
    let Outcome::Open { did, ways } = &entry.outcome else { return None };
    Some(format!("{}: {did}. {ways}\n", entry.name()))
}

fn carried(entry: &Entry) -> Option<String> {
    let Outcome::Carried { to, note } = &entry.outcome else { return None };
    let note = if note.is_empty() { String::new() } else { format!(". {note}") };
    Some(format!("{} → `{to}`{note}\n", entry.name()))
}

fn stays(entry: &Entry) -> Option<String> {
    let Outcome::Stays(why) = &entry.outcome else { return None };
    Some(format!("{}: {why}\n", entry.name()))
}

fn not_needed(entry: &Entry) -> Option<String> {
    let Outcome::NotNeeded(why) = &entry.outcome else { return None };
    Some(format!("{}: {why}\n", entry.name()))
}
