//! The patterns of text fields.
//!
//! A pattern is checked by the browser (a regular expression of JavaScript with the flag `v`) and by the SDK of the
//! policy's language. It may therefore contain only constructs with the same meaning in JavaScript, Python and Rust,
//! which `wit/README.md` lists. All SDKs read patterns in the same way, and `tests/tables/form-fields.json` tests this.

use std::iter::Peekable;
use std::str::Chars;

use regex_lite::Regex;

/// The maximum number of characters in a pattern with all repetitions written out.
const MAX_SIZE: u32 = 1000;
/// The maximum depth of nested groups.
const MAX_DEPTH: usize = 10;
/// Characters with a meaning outside of brackets.
const SYNTAX: &str = r"^$\.*+?()[]{}|/";
/// Characters that must be escaped within brackets.
const IN_BRACKETS: &str = r"([{}/|)";
/// Characters that are set operators when they occur twice in a row within brackets.
const NOT_TWICE: &str = "&!#$%*+,.:;<=>?@^`~";
/// The letters of escapes for sets of characters: digits, word characters, and their complements.
const SETS: &str = "dDwW";

/// Checks that browsers and all SDKs can apply the pattern with the same result.
///
/// # Errors
/// The part of the pattern that cannot be checked, and its replacement.
pub fn check(pattern: &str) -> Result<(), String> {
    Reader::new(pattern).read().map_err(|problem| format!("the pattern {pattern} {problem}"))
}

/// Returns true if the whole text matches the pattern.
///
/// # Errors
/// The errors of [`check`].
pub fn is_match(pattern: &str, text: &str) -> Result<bool, String> {
    check(pattern)?;
    let whole =
        Regex::new(&format!("^(?:{pattern})$")).map_err(|error| format!("the pattern {pattern}: {error}"))?;
    Ok(whole.is_match(text))
}

/// Reads a pattern from its beginning to its end.
struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    /// The position of the last character that was read; the first is 1.
    at: usize,
    /// The sizes of the pattern and of the groups that are open.
    sizes: Vec<u32>,
    /// The size of the item that a repetition would repeat.
    last: Option<u32>,
}

impl<'a> Reader<'a> {
    fn new(pattern: &'a str) -> Self {
        Self { rest: pattern.chars().peekable(), at: 0, sizes: vec![0], last: None }
    }

    fn next(&mut self) -> Option<char> {
        let next = self.rest.next();
        self.at += usize::from(next.is_some());
        next
    }

    fn next_if(&mut self, wanted: char) -> bool {
        let is_next = self.rest.peek() == Some(&wanted);
        if is_next {
            self.next();
        }
        is_next
    }

    fn read(mut self) -> Result<(), String> {
        while let Some(char) = self.next() {
            let at = self.at;
            match char {
                '\\' => {
                    self.escape(SYNTAX)?;
                    self.add(1)?;
                }
                '[' => {
                    self.brackets()?;
                    self.add(1)?;
                }
                '(' => self.open()?,
                ')' => self.close()?,
                '|' | '^' | '$' => self.last = None,
                '*' | '+' | '?' => self.repeat(char, at, 1)?,
                '{' => {
                    let times = self.times().ok_or_else(|| {
                        format!("has {{ at position {at}; write {{n}}, {{n,}} or {{n,m}} to repeat, or \\{{")
                    })?;
                    self.repeat(char, at, times)?;
                }
                ']' | '}' => return Err(unescaped(char, at)),
                _ => self.add(1)?,
            }
        }
        if self.sizes.len() == 1 { Ok(()) } else { Err("has a group that does not end".into()) }
    }

    /// Adds an item of this size to the innermost group.
    fn add(&mut self, size: u32) -> Result<(), String> {
        self.last = Some(size);
        self.grow(size)
    }

    fn grow(&mut self, size: u32) -> Result<(), String> {
        let Some(sum) = self.sizes.last_mut() else { return Ok(()) };
        *sum = sum.saturating_add(size);
        if *sum <= MAX_SIZE {
            return Ok(());
        }
        Err(format!("is too large: written without repetitions it may have {MAX_SIZE} characters"))
    }

    fn open(&mut self) -> Result<(), String> {
        let at = self.at;
        if self.next_if('?') && !self.next_if(':') {
            return Err(format!(
                "has (? at position {at}, which this form cannot check; groups begin with ( or (?:"
            ));
        }
        self.sizes.push(0);
        self.last = None;
        if self.sizes.len() <= MAX_DEPTH + 1 {
            return Ok(());
        }
        Err(format!("has more than {MAX_DEPTH} groups in each other"))
    }

    fn close(&mut self) -> Result<(), String> {
        match self.sizes.pop() {
            // An empty group counts, too, because it can be repeated.
            Some(size) if !self.sizes.is_empty() => self.add(size.max(1)),
            _ => Err(format!("has the character ) at position {}, where no group ends; write \\)", self.at)),
        }
    }

    /// Repeats the last item. A repetition cannot be repeated; a `?` after it changes nothing for a whole text.
    fn repeat(&mut self, char: char, at: usize, times: u32) -> Result<(), String> {
        let Some(size) = self.last.take() else {
            return Err(format!("has {char} at position {at}, which repeats nothing"));
        };
        self.next_if('?');
        self.grow(size.saturating_mul(times.max(1) - 1))
    }

    /// Reads a repetition: the maximum of `{n}` and `{n,m}`, or the minimum of `{n,}`. Returns `None` if it is none of
    /// these.
    fn times(&mut self) -> Option<u32> {
        let least = self.number()?;
        let most = if self.next_if(',') { self.number() } else { Some(least) };
        (self.next_if('}') && most.is_none_or(|most| least <= most)).then(|| most.unwrap_or(least))
    }

    fn number(&mut self) -> Option<u32> {
        let mut number: Option<u32> = None;
        while let Some(digit) = self.rest.peek().and_then(|char| char.to_digit(10)) {
            self.next();
            number = Some(number.unwrap_or(0).saturating_mul(10).saturating_add(digit));
        }
        number
    }

    /// Reads the escape after a backslash. Returns `None` if it stands for several characters.
    fn escape(&mut self, escaped: &str) -> Result<Option<char>, String> {
        let at = self.at;
        match self.next() {
            None => Err("ends with \\".into()),
            Some(char) if SETS.contains(char) => Ok(None),
            Some(char) if escaped.contains(char) => Ok(Some(char)),
            Some(char) => Err(format!("has \\{char} at position {at}, which this form cannot check")),
        }
    }

    fn brackets(&mut self) -> Result<(), String> {
        let start = self.at;
        self.next_if('^');
        if self.rest.peek() == Some(&']') {
            return Err(format!("has brackets without a character at position {start}"));
        }
        while !self.next_if(']') {
            let first = self.item()?;
            let begin = self.at;
            if let Some(first) = first
                && self.next_if('-')
            {
                let dash = self.at;
                if self.rest.peek() == Some(&']') {
                    return Err(unescaped('-', dash));
                }
                let last = self.item()?.ok_or_else(|| unescaped('-', dash))?;
                if last < first {
                    return Err(format!("has a range at position {begin} that ends before it begins"));
                }
            }
        }
        Ok(())
    }

    /// Reads a character within brackets. Returns `None` if it stands for several.
    fn item(&mut self) -> Result<Option<char>, String> {
        let Some(char) = self.next() else { return Err("has brackets that do not end".into()) };
        if char == '\\' {
            return self.escape(&format!("{SYNTAX}-"));
        }
        if char == '-' || IN_BRACKETS.contains(char) {
            return Err(unescaped(char, self.at));
        }
        if NOT_TWICE.contains(char) && self.rest.peek() == Some(&char) {
            return Err(format!("has the character {char} twice at position {}; write it once", self.at));
        }
        Ok(Some(char))
    }
}

fn unescaped(char: char, at: usize) -> String {
    format!("has the character {char} at position {at}; write \\{char}")
}
