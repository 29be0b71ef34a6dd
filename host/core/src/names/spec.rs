//! Python's format specification for strings and integers
//! (`[[fill]align][sign][#][0][width][grouping][.precision][type]`), limited to the parts that names need.

use super::field::{Field, Value};
use super::problem::TemplateProblem;

/// Largest width in characters. A larger one is a mistake and could exhaust the memory.
const WIDEST: usize = 1024;

/// A parsed specification; rendering with it cannot fail.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Spec {
    fill: Option<char>,
    align: Option<Align>,
    sign: Option<char>,
    prefixed: bool,
    zero: bool,
    width: Option<Size>,
    grouping: Option<char>,
    precision: Option<Size>,
    kind: Option<char>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Align {
    Left,
    Right,
    Centre,
    /// Padding between the sign and the digits; for numbers only.
    Inside,
}

/// A width or precision: a number, or `{userid}`, which is the only numeric field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Size {
    Fixed(usize),
    Userid,
}

impl Spec {
    /// Parses the text after `:`, for a value that is a number (`{userid}` without conversion) or a string.
    pub(super) fn parse(text: &str, number: bool) -> Result<Self, TemplateProblem> {
        let refuse = |why: &'static str| TemplateProblem::Spec { spec: text.to_owned(), why };
        let mut rest = Rest(text);
        let mut spec = Spec::default();
        (spec.fill, spec.align) = rest.fill_and_align();
        spec.sign = rest.one_of("+- ");
        if rest.one_of("z").is_some() {
            return Err(refuse("'z' is for floating point numbers"));
        }
        spec.prefixed = rest.one_of("#").is_some();
        spec.zero = rest.one_of("0").is_some();
        spec.width = rest.size().map_err(refuse)?;
        spec.grouping = rest.one_of(",_");
        if rest.one_of(".").is_some() {
            spec.precision =
                Some(rest.size().map_err(refuse)?.ok_or_else(|| refuse("a number is missing after '.'"))?);
        }
        spec.kind = rest.one_of(if number { "bdnoxX" } else { "s" });
        if !rest.0.is_empty() {
            return Err(refuse(if number {
                "after width and precision a number takes one of b d n o x X"
            } else {
                "after width and precision a string takes only s"
            }));
        }
        if number { spec.check_number() } else { spec.check_string() }.map_err(refuse)?;
        Ok(spec)
    }

    fn check_number(&self) -> Result<(), &'static str> {
        match (self.precision, self.grouping, self.kind) {
            (Some(_), _, _) => Err("a precision is not for whole numbers"),
            (_, Some(','), Some('b' | 'o' | 'x' | 'X' | 'n')) | (_, Some('_'), Some('n')) => {
                Err("this type allows no such grouping")
            }
            _ => Ok(()),
        }
    }

    fn check_string(&self) -> Result<(), &'static str> {
        if self.align == Some(Align::Inside) {
            Err("'=' is for numbers")
        } else if self.sign.is_some() || self.prefixed || self.grouping.is_some() {
            Err("a sign, '#', ',' and '_' are for numbers")
        } else {
            Ok(())
        }
    }

    /// The fields that the specification itself contains.
    pub(super) fn fields(&self) -> impl Iterator<Item = Field> {
        [self.width, self.precision]
            .into_iter()
            .flatten()
            .filter(|size| *size == Size::Userid)
            .map(|_| Field::Userid)
    }

    /// Formats text; `userid` is the value for widths that refer to it.
    pub(super) fn text(&self, value: &str, userid: Value<'_>, out: &mut String) {
        let cut: String = match self.precision {
            Some(precision) => value.chars().take(precision.columns(userid)).collect(),
            None => value.to_owned(),
        };
        // A zero before the width is the fill character, but does not right-align text (Python 3.10 and later).
        let fill = self.fill.unwrap_or(if self.zero { '0' } else { ' ' });
        pad(&cut, fill, self.align.unwrap_or(Align::Left), self.missing(cut.chars().count(), userid), out);
    }

    /// Formats a whole number.
    pub(super) fn number(&self, value: i64, out: &mut String) {
        let size = value.unsigned_abs();
        let (prefix, digits, group) = match self.kind {
            Some('b') => ("0b", format!("{size:b}"), 4),
            Some('o') => ("0o", format!("{size:o}"), 4),
            Some('x') => ("0x", format!("{size:x}"), 4),
            Some('X') => ("0X", format!("{size:X}"), 4),
            _ => ("", size.to_string(), 3),
        };
        let sign = match (value < 0, self.sign) {
            (true, _) => "-",
            (false, Some('+')) => "+",
            (false, Some(' ')) => " ",
            _ => "",
        };
        let head = format!("{sign}{}", if self.prefixed { prefix } else { "" });
        let fill = self.fill.unwrap_or(if self.zero { '0' } else { ' ' });
        let align = self.align.unwrap_or(if self.zero { Align::Inside } else { Align::Right });
        let width = self.width.map_or(0, |width| width.columns(Value::Number(value)));
        // Zeros between sign and digits are grouped like digits.
        let least = if fill == '0' && align == Align::Inside { width.saturating_sub(head.len()) } else { 0 };
        let digits =
            self.grouping.map_or_else(|| digits.clone(), |mark| grouped(&digits, mark, group, least));
        let missing = width.saturating_sub(head.len() + digits.len());
        if align == Align::Inside {
            out.push_str(&head);
            pad(&digits, fill, Align::Right, missing, out);
        } else {
            pad(&format!("{head}{digits}"), fill, align, missing, out);
        }
    }

    fn missing(&self, length: usize, userid: Value<'_>) -> usize {
        self.width.map_or(0, |width| width.columns(userid)).saturating_sub(length)
    }
}

impl Size {
    fn columns(self, userid: Value<'_>) -> usize {
        match (self, userid) {
            (Size::Fixed(size), _) => size,
            (Size::Userid, Value::Number(id)) => usize::try_from(id).unwrap_or(0).min(WIDEST),
            (Size::Userid, _) => 0,
        }
    }
}

/// The part of the specification that is not parsed yet.
struct Rest<'a>(&'a str);

impl Rest<'_> {
    fn fill_and_align(&mut self) -> (Option<char>, Option<Align>) {
        let mut chars = self.0.chars();
        let (first, second) = (chars.next(), chars.next());
        if let (Some(fill), Some(align)) = (first, second.and_then(align)) {
            self.0 = chars.as_str();
            return (Some(fill), Some(align));
        }
        let align = first.and_then(align);
        if align.is_some() {
            self.0 = self.0.get(1..).unwrap_or_default();
        }
        (None, align)
    }

    fn one_of(&mut self, set: &str) -> Option<char> {
        let first = self.0.chars().next().filter(|c| set.contains(*c))?;
        self.0 = self.0.get(first.len_utf8()..).unwrap_or_default();
        Some(first)
    }

    fn size(&mut self) -> Result<Option<Size>, &'static str> {
        if let Some(rest) = self.0.strip_prefix("{userid}") {
            self.0 = rest;
            return Ok(Some(Size::Userid));
        }
        let digits = self.0.len() - self.0.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, rest) = self.0.split_at(digits);
        self.0 = rest;
        match number.parse() {
            _ if number.is_empty() => Ok(None),
            Ok(size) if size <= WIDEST => Ok(Some(Size::Fixed(size))),
            _ => Err("at most 1024 characters can be asked for"),
        }
    }
}

fn align(c: char) -> Option<Align> {
    Some(match c {
        '<' => Align::Left,
        '>' => Align::Right,
        '^' => Align::Centre,
        '=' => Align::Inside,
        _ => return None,
    })
}

fn pad(text: &str, fill: char, align: Align, missing: usize, out: &mut String) {
    let left = match align {
        Align::Left => 0,
        Align::Right | Align::Inside => missing,
        Align::Centre => missing / 2,
    };
    out.extend(std::iter::repeat_n(fill, left));
    out.push_str(text);
    out.extend(std::iter::repeat_n(fill, missing - left));
}

/// Inserts `mark` before every `group` digits from the right, after filling with zeros to at least `least` characters.
fn grouped(digits: &str, mark: char, group: usize, least: usize) -> String {
    let mut reversed = String::new();
    let mut source = digits.chars().rev();
    let mut count = 0;
    loop {
        let digit = match source.next() {
            Some(digit) => digit,
            None if reversed.len() < least => '0',
            None => break,
        };
        if count > 0 && count % group == 0 {
            reversed.push(mark);
        }
        reversed.push(digit);
        count += 1;
    }
    reversed.chars().rev().collect()
}
