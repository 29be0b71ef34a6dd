//! Assignments of literals in a configuration of JupyterHub, which is Python.

use serde_json::{Map, Number, Value};

/// The deepest nesting of lists and dictionaries.
const MAX_DEPTH: u32 = 64;

/// A configuration in Python, taken apart.
pub(crate) struct Config {
    /// The settings of the spawner that are literals, by class and name, in their order.
    pub(crate) literals: Vec<(String, String, Value)>,
    /// Everything else, without comments and without texts that stand alone, such as docstrings.
    pub(crate) rest: String,
}

/// Finds assignments such as `c.KubeSpawner.mem_limit = "2G"` that begin a line and whose value is a literal.
pub(crate) fn read(text: &str) -> Config {
    let mut config = Config { literals: Vec::new(), rest: String::new() };
    let mut at = 0;
    while at < text.len() {
        let line = &text[at..];
        if let Some((class, name, value, length)) = assignment(line) {
            config.literals.push((class, name, value));
            at += length;
        } else {
            at += statement(line, &mut config.rest);
        }
    }
    config
}

/// Adds a line to `rest`, with the further lines of a text or of brackets that begin in it, and returns their length.
fn statement(text: &str, rest: &mut String) -> usize {
    let (start, mut depth) = (rest.len(), 0_u32);
    let mut reader = Reader { text, at: 0 };
    // The place of a text with which the line begins, which is a docstring if the line ends with it.
    let mut docstring = None;
    while let Some(char) = reader.rest().chars().next() {
        let before = reader.at;
        match char {
            '#' => {
                reader.at += reader.rest().find('\n').unwrap_or(reader.rest().len());
                continue;
            }
            '\'' | '"' => {
                reader.skip_string();
                let alone = rest[start..].trim().is_empty() && depth == 0;
                docstring = alone.then_some(rest.len());
            }
            _ => {
                reader.at += char.len_utf8();
                match char {
                    '(' | '[' | '{' => depth += 1,
                    ')' | ']' | '}' => depth = depth.saturating_sub(1),
                    '\\' if reader.take("\n") || reader.take("\r\n") => {}
                    '\n' if depth == 0 => {
                        if let Some(place) = docstring {
                            rest.truncate(place);
                        }
                        rest.push('\n');
                        return reader.at;
                    }
                    _ => {}
                }
                if !char.is_whitespace() {
                    docstring = None;
                }
            }
        }
        rest.push_str(&text[before..reader.at]);
    }
    if let Some(place) = docstring {
        rest.truncate(place);
    }
    reader.at
}

/// Reads one assignment at the beginning of a text, and its length with the end of the line.
fn assignment(text: &str) -> Option<(String, String, Value, usize)> {
    let after = text.strip_prefix("c.")?;
    let (class, after) = after.split_once('.')?;
    if !matches!(class, "KubeSpawner" | "Spawner") {
        return None;
    }
    let end = after.find(|char: char| !char.is_ascii_alphanumeric() && char != '_')?;
    let (name, after) = after.split_at(end);
    let after =
        after.trim_start_matches([' ', '\t']).strip_prefix('=').filter(|rest| !rest.starts_with('='))?;
    let mut reader = Reader { text: after, at: 0 };
    reader.skip_blanks(false);
    let value = reader.value(0)?;
    reader.skip_blanks(false);
    let rest = &reader.text[reader.at..];
    let length = match rest.chars().next() {
        None => 0,
        Some('\n') => 1,
        Some('#') => rest.find('\n').map_or(rest.len(), |end| end + 1),
        Some('\r') if rest.starts_with("\r\n") => 2,
        Some(_) => return None,
    };
    let used = text.len() - rest.len() + length;
    Some((class.to_owned(), name.to_owned(), value, used))
}

/// Marks a choice as the default, unless one is already.
fn set_default(choices: &mut Map<String, Value>, first: &str) {
    let is_default = |choice: &Value| choice.get("default") == Some(&Value::Bool(true));
    if choices.values().any(is_default) {
        return;
    }
    if let Some(Value::Object(choice)) = choices.get_mut(first) {
        choice.insert("default".to_owned(), true.into());
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Skips spaces; within brackets also ends of lines and comments.
    fn skip_blanks(&mut self, in_brackets: bool) {
        loop {
            let rest = self.rest();
            let blanks: &[char] = if in_brackets { &[' ', '\t', '\r', '\n'] } else { &[' ', '\t'] };
            let trimmed = rest.trim_start_matches(blanks);
            self.at += rest.len() - trimmed.len();
            if !in_brackets || !trimmed.starts_with('#') {
                return;
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    fn take(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    fn value(&mut self, depth: u32) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        match self.rest().chars().next()? {
            '[' => self.items(']', depth).map(Value::Array),
            '(' => self.items(')', depth).map(Value::Array),
            '{' => self.entries(depth, false),
            '\'' | '"' | 'r' | 'R' => self.texts(depth > 0).map(Value::String),
            '-' | '0'..='9' => self.number(),
            _ => self.word(),
        }
    }

    fn items(&mut self, close: char, depth: u32) -> Option<Vec<Value>> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.skip_blanks(true);
            if self.take(&close.to_string()) {
                return Some(items);
            }
            items.push(self.value(depth + 1)?);
            self.skip_blanks(true);
            let more = self.take(",");
            if !more && !self.rest().starts_with(close) {
                return None;
            }
            // `("text")` is a text in brackets.
            if !more && close == ')' && items.len() == 1 {
                return None;
            }
        }
    }

    /// Reads a dictionary. The first of the choices of an option, in the order of the text, is the default one, which is
    /// written down, because other dictionaries have no order.
    fn entries(&mut self, depth: u32, are_choices: bool) -> Option<Value> {
        self.at += 1;
        let (mut entries, mut first): (_, Option<String>) = (Map::new(), None);
        loop {
            self.skip_blanks(true);
            if self.take("}") {
                if let Some(first) = first.filter(|_| are_choices) {
                    set_default(&mut entries, &first);
                }
                return Some(Value::Object(entries));
            }
            let key = self.texts(true)?;
            self.skip_blanks(true);
            if !self.take(":") {
                return None;
            }
            self.skip_blanks(true);
            let value = match key.as_str() {
                "choices" if self.rest().starts_with('{') && depth < MAX_DEPTH => {
                    self.entries(depth + 1, true)?
                }
                _ => self.value(depth + 1)?,
            };
            first.get_or_insert_with(|| key.clone());
            entries.insert(key, value);
            self.skip_blanks(true);
            if !self.take(",") && !self.rest().starts_with('}') {
                return None;
            }
        }
    }

    /// Texts that follow each other are one text.
    fn texts(&mut self, in_brackets: bool) -> Option<String> {
        let mut whole = self.string()?;
        loop {
            let before = self.at;
            self.skip_blanks(in_brackets);
            let Some(more) = self.string() else {
                self.at = before;
                return Some(whole);
            };
            whole += &more;
        }
    }

    /// Skips a text of any kind: to its end, or that of the line or the file if it has none.
    fn skip_string(&mut self) {
        let quote = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| self.take(quote));
        let Some(quote) = quote else { return };
        while let Some(char) = self.rest().chars().next() {
            if self.take(quote) || char == '\n' && quote.len() == 1 {
                return;
            }
            self.at += char.len_utf8();
            if char == '\\' {
                self.at += self.rest().chars().next().map_or(0, char::len_utf8);
            }
        }
    }

    fn string(&mut self) -> Option<String> {
        let start = self.at;
        let raw = self.take("r") || self.take("R");
        let quote = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| self.take(quote));
        let Some(quote) = quote else {
            self.at = start;
            return None;
        };
        let mut out = String::new();
        loop {
            if self.take(quote) {
                return Some(out);
            }
            let char = self.rest().chars().next()?;
            self.at += char.len_utf8();
            match char {
                '\n' if quote.len() == 1 => return None,
                '\\' if raw => {
                    let next = self.rest().chars().next()?;
                    self.at += next.len_utf8();
                    out.extend(['\\', next]);
                }
                '\\' => self.escape(&mut out)?,
                _ => out.push(char),
            }
        }
    }

    fn escape(&mut self, out: &mut String) -> Option<()> {
        let char = self.rest().chars().next()?;
        self.at += char.len_utf8();
        match char {
            '\n' => {}
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            '\\' | '\'' | '"' => out.push(char),
            'x' => self.hexadecimal(2, out)?,
            'u' => self.hexadecimal(4, out)?,
            // A number in octal, or a name of a character.
            '0'..='9' | 'N' | 'U' | 'a' | 'b' | 'f' | 'v' => return None,
            _ => out.extend(['\\', char]),
        }
        Some(())
    }

    fn hexadecimal(&mut self, digits: usize, out: &mut String) -> Option<()> {
        let code = u32::from_str_radix(self.rest().get(..digits)?, 16).ok()?;
        self.at += digits;
        out.push(char::from_u32(code)?);
        Some(())
    }

    fn number(&mut self) -> Option<Value> {
        let rest = self.rest();
        let is_part = |(at, char): (usize, char)| {
            char.is_ascii_alphanumeric() || matches!(char, '.' | '_') || at == 0 && char == '-'
        };
        let length = rest.char_indices().find(|part| !is_part(*part)).map_or(rest.len(), |(at, _)| at);
        let written = rest[..length].replace('_', "");
        self.at += length;
        if let Ok(whole) = written.parse::<i64>() {
            // Python refuses a zero in front.
            let digits = written.trim_start_matches('-');
            return (digits.len() == 1 || !digits.starts_with('0')).then(|| whole.into());
        }
        if let Some(octal) = written.strip_prefix("0o") {
            return u64::from_str_radix(octal, 8).ok().map(Value::from);
        }
        let is_float = written.contains('.') && !written.contains(|char: char| char.is_ascii_alphabetic());
        let float = is_float.then(|| written.parse().ok()).flatten()?;
        Number::from_f64(float).map(Value::Number)
    }

    fn word(&mut self) -> Option<Value> {
        let words = [("True", Value::Bool(true)), ("False", Value::Bool(false)), ("None", Value::Null)];
        let (_, value) = words.into_iter().find(|(word, _)| self.take(word))?;
        let ends =
            !self.rest().starts_with(|char: char| char.is_ascii_alphanumeric() || "_.(".contains(char));
        ends.then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn value(written: &str) -> Option<Value> {
        let config = read(&format!("c.KubeSpawner.x = {written}\n"));
        config.literals.into_iter().next().map(|(_, _, value)| value)
    }

    #[test]
    fn literals_are_read() {
        for (written, expected) in [
            ("\"2G\"", json!("2G")),
            ("'a' \"b\"  # note", json!("ab")),
            ("r'\\d+'", json!("\\d+")),
            ("'\\n\\x41\\u00e9\\d'", json!("\nAé\\d")),
            ("'''a\nb'''", json!("a\nb")),
            ("3", json!(3)),
            ("-1_000", json!(-1000)),
            ("0.5", json!(0.5)),
            ("0o644", json!(420)),
            ("True", json!(true)),
            ("None", json!(null)),
            ("[1, 2,]", json!([1, 2])),
            ("('a',)", json!(["a"])),
            ("{}", json!({})),
            (
                "[\n  {  # first\n    'name': 'home',\n    'n': {'a': 'b'\n 'c'},\n  },\n]",
                json!([{"name": "home", "n": {"a": "bc"}}]),
            ),
        ] {
            assert_eq!(value(written), Some(expected), "{written}");
        }
    }

    #[test]
    fn what_is_computed_stays_in_the_rest() {
        for written in [
            "f'{x}'",
            "b'x'",
            "get_config('a')",
            "[x]",
            "1 + 2",
            "'a' + b",
            "{1: 2}",
            "('a')",
            "Trueish",
            "None or 1",
            "lambda spawner: 1",
            "007",
            "'open",
            "[1",
            "1e3",
            "'\\N{DASH}'",
            "",
        ] {
            let text = format!("c.KubeSpawner.x = {written}\n");
            let config = read(&text);
            assert!(config.literals.is_empty(), "{written}");
            assert!(config.rest.starts_with("c.KubeSpawner.x ="), "{written}: {}", config.rest);
        }
        let deep = format!("c.Spawner.x = {}{}\n", "[".repeat(1000), "]".repeat(1000));
        assert!(read(&deep).literals.is_empty());
    }

    #[test]
    fn only_assignments_that_begin_a_line_count() {
        let text = "import os\nc.KubeSpawner.a = 1\nif x:\n    c.KubeSpawner.b = 2\nc.Spawner.c = [\n  3]\nc.KubeSpawner.d += 4\n\
                    c.JupyterHub.e = 5\nc.KubeSpawner.f == 6\n";
        let config = read(text);
        let found: Vec<_> =
            config.literals.iter().map(|(class, name, _)| format!("{class}.{name}")).collect();
        assert_eq!(found, ["KubeSpawner.a", "Spawner.c"]);
        assert!(config.rest.contains("c.KubeSpawner.b = 2") && config.rest.contains("c.KubeSpawner.d += 4"));
        assert!(!config.rest.contains("3]"), "{}", config.rest);
    }

    #[test]
    fn texts_and_comments_are_no_settings() {
        let text = "\"\"\"Site.\n\nc.KubeSpawner.a = 1\n\"\"\"\n\
                    # c.KubeSpawner.b = 2\n\
                    def hook(spawner):\n    '''It's\nc.KubeSpawner.c = 3\n    '''\n    spawner.x = 1  # c.Spawner.y\n\
                    note = \"\"\"\nc.KubeSpawner.d = 4\n\"\"\" + end\n\
                    ''
f(\nc.KubeSpawner.e == 5,\n\"it's\")\n\
                    quote = '\\'' + \"\"\"\\\"\"\"\"\nc.KubeSpawner.f = 6\n";
        let config = read(text);
        let found: Vec<_> = config.literals.iter().map(|(_, name, _)| name.as_str()).collect();
        assert_eq!(found, ["f"], "{}", config.rest);
        for gone in ["Site", "KubeSpawner.b", "KubeSpawner.c", "Spawner.y"] {
            assert!(!config.rest.contains(gone), "{gone}: {}", config.rest);
        }
        for kept in ["spawner.x = 1", "KubeSpawner.d", "KubeSpawner.e"] {
            assert!(config.rest.contains(kept), "{kept}: {}", config.rest);
        }
        let open = "a = 1\n\"\"\"\nc.KubeSpawner.a = 1\n";
        assert!(read(open).literals.is_empty());
    }

    #[test]
    fn the_first_choice_of_a_dictionary_is_the_default() {
        let choices = |text: &str| value(&format!("{{'choices': {text}}}")).unwrap()["choices"].clone();
        let found = choices("{'small': {'display_name': 'S'}, 'large': {}}");
        assert_eq!(found, json!({"small": {"display_name": "S", "default": true}, "large": {}}));
        let given = choices("{'small': {}, 'large': {'default': True}}");
        assert_eq!(given, json!({"small": {}, "large": {"default": true}}));
    }

    proptest! {
        #[test]
        fn any_text_is_taken_apart(text in "(c\\.KubeSpawner\\.x = )?[-\\[\\]{}()'\"\\\\:,#a-zé0-9. \r\n]{0,60}") {
            let config = read(&text);
            prop_assert!(config.rest.len() <= text.len());
            prop_assert!(text.contains(['#', '\'', '"', '\\', '\n', '\r']) || !config.literals.is_empty() || config.rest == text);
        }
    }
}
