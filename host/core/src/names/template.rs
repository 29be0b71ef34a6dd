//! Templates: text with fields in braces, in Python's format syntax, parsed once.

use super::field::{Field, Fields, TemplateScope, Value};
use super::problem::{TemplateError, TemplateProblem};
use super::repr;
use super::spec::Spec;

/// A parsed template. Rendering cannot fail, and the rendered text is never parsed as a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
    /// True if the template's text ends in `-`, so that a trailing dash of the result is kept.
    keeps_dash: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Field { field: Field, conversion: Conversion, spec: Spec },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Conversion {
    None,
    Str,
    Repr,
    Ascii,
}

impl Template {
    /// Parses the template at the configuration key `key`. It may contain the fields that `scope` knows.
    pub fn parse(key: &str, text: &str, scope: TemplateScope) -> Result<Self, TemplateError> {
        let refuse = |problem| TemplateError { key: key.to_owned(), template: text.to_owned(), problem };
        let pieces = pieces(text, scope).map_err(refuse)?;
        Ok(Self { pieces, keeps_dash: text.ends_with('-') })
    }

    /// Renders the template with these values, without the dashes that an empty field leaves at the end.
    ///
    /// An unknown `{userid}` renders as nothing; see [`Template::needs_userid`].
    pub fn render(&self, fields: &Fields) -> String {
        self.render_within(usize::MAX, fields).unwrap_or_default()
    }

    /// Like [`Template::render`], but returns `None` if the result has more than `most` bytes. A few characters of a
    /// template may render as a thousand.
    pub fn render_within(&self, most: usize, fields: &Fields) -> Option<String> {
        let mut out = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(text) => out.push_str(text),
                Piece::Field { field, conversion, spec } => {
                    field_text(*field, *conversion, spec, fields, &mut out);
                }
            }
            if out.len() > most {
                return None;
            }
        }
        if !self.keeps_dash {
            out.truncate(out.trim_end_matches('-').len());
        }
        Some(out)
    }

    /// True if the result is the same for every user and server.
    pub(super) fn is_constant(&self) -> bool {
        self.pieces.iter().all(|piece| match piece {
            Piece::Literal(_) => true,
            Piece::Field { field, spec, .. } => {
                *field == Field::Hubnamespace && spec.fields().next().is_none()
            }
        })
    }

    /// True if the template contains `{userid}`, JupyterHub's number of the user, which not every caller knows.
    pub fn needs_userid(&self) -> bool {
        self.pieces.iter().any(|piece| match piece {
            Piece::Literal(_) => false,
            Piece::Field { field, spec, .. } => *field == Field::Userid || spec.fields().next().is_some(),
        })
    }
}

fn field_text(field: Field, conversion: Conversion, spec: &Spec, fields: &Fields, out: &mut String) {
    let text = match (fields.value(field), conversion) {
        (Value::Missing, _) => return,
        (Value::Number(number), Conversion::None) => return spec.number(number, out),
        (Value::Number(number), _) => number.to_string(),
        (Value::Text(text), Conversion::None | Conversion::Str) => text.to_owned(),
        (Value::Text(text), Conversion::Repr) => repr::repr(text),
        (Value::Text(text), Conversion::Ascii) => repr::ascii(text),
    };
    spec.text(&text, fields.value(Field::Userid), out);
}

fn pieces(text: &str, scope: TemplateScope) -> Result<Vec<Piece>, TemplateProblem> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from_brace) = rest.split_at(at);
        literal.push_str(before);
        if let Some(after) = from_brace.strip_prefix("{{").or_else(|| from_brace.strip_prefix("}}")) {
            literal.push_str(&from_brace[..1]);
            rest = after;
            continue;
        }
        let Some(inside) = from_brace.strip_prefix('{') else {
            return Err(TemplateProblem::Unbalanced('}'));
        };
        let (field, after) = closing(inside)?;
        if !literal.is_empty() {
            pieces.push(Piece::Literal(std::mem::take(&mut literal)));
        }
        pieces.push(field_piece(field, scope)?);
        rest = after;
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        pieces.push(Piece::Literal(literal));
    }
    Ok(pieces)
}

/// Splits at the brace that closes the field, skipping nested braces.
fn closing(text: &str) -> Result<(&str, &str), TemplateProblem> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return Ok((&text[..at], &text[at + 1..])),
            '}' => depth -= 1,
            _ => {}
        }
    }
    Err(TemplateProblem::Unbalanced('{'))
}

/// Parses `name`, `name!r`, `name:spec` or `name!r:spec`.
fn field_piece(text: &str, scope: TemplateScope) -> Result<Piece, TemplateProblem> {
    let end = text.find(['!', ':']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let field = field(name, scope)?;
    let (conversion, rest) = conversion(rest)?;
    let number = field == Field::Userid && conversion == Conversion::None;
    let spec = Spec::parse(rest.strip_prefix(':').unwrap_or_default(), number)?;
    Ok(Piece::Field { field, conversion, spec })
}

fn field(name: &str, scope: TemplateScope) -> Result<Field, TemplateProblem> {
    if name.is_empty() || name.bytes().all(|c| c.is_ascii_digit()) {
        return Err(TemplateProblem::Positional);
    }
    if name.contains('{') {
        return Err(TemplateProblem::Unbalanced('{'));
    }
    match Field::named(name) {
        Some(field) if scope.knows(field) => Ok(field),
        Some(field) => Err(TemplateProblem::LaterField { field, scope }),
        None if name.contains(['.', '[']) => Err(TemplateProblem::Access(name.to_owned())),
        None => Err(TemplateProblem::UnknownField { field: name.to_owned(), scope }),
    }
}

/// Parses `!r`, `!s` or `!a`. The rest is empty or starts with `:`.
fn conversion(text: &str) -> Result<(Conversion, &str), TemplateProblem> {
    let Some(text) = text.strip_prefix('!') else {
        return Ok((Conversion::None, text));
    };
    let mut chars = text.chars();
    let conversion = match chars.next() {
        Some('s') => Conversion::Str,
        Some('r') => Conversion::Repr,
        Some('a') => Conversion::Ascii,
        _ => return Err(TemplateProblem::Conversion),
    };
    let rest = chars.as_str();
    if rest.is_empty() || rest.starts_with(':') {
        Ok((conversion, rest))
    } else {
        Err(TemplateProblem::Conversion)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{Compat, SlugScheme};

    fn render(text: &str, userid: i64) -> String {
        let fields = Fields::new("Ada", "", Some(userid), SlugScheme::Safe, Compat::V7_1_0);
        Template::parse("key", text, TemplateScope::Rest).unwrap().render(&fields)
    }

    /// The expected values were computed with Python 3.12.
    #[test]
    fn numbers_are_formatted_as_in_python() {
        for (text, userid, expected) in [
            ("{userid}", 42, "42"),
            ("{userid:05}", -42, "-0042"),
            ("{userid:+,}", 1_234_567, "+1,234,567"),
            ("{userid:#x}", 255, "0xff"),
            ("{userid:#010b}", 5, "0b00000101"),
            ("{userid:_X}", 1_234_567, "12_D687"),
            ("{userid:*=+9}", 42, "+******42"),
            ("{userid:^6}.", 42, "  42  ."),
            ("{userid:<6}.", 42, "42    ."),
            ("{userid:09,}", 1234, "0,001,234"),
            ("{userid:08,}", 1234, "0,001,234"),
            ("{userid!s:>4}", 42, "  42"),
            ("{userid!r:.1}", 42, "4"),
            ("{userid: }", 42, " 42"),
        ] {
            assert_eq!(render(text, userid), expected, "{text}");
        }
    }

    #[test]
    fn strings_are_formatted_as_in_python() {
        for (text, expected) in [
            ("{unescaped_username:>6}", "   Ada"),
            ("{unescaped_username:é^7}", "ééAdaéé"),
            ("{unescaped_username:06}", "Ada000"),
            ("{unescaped_username:.2}", "Ad"),
            ("{unescaped_username:6.2s}|", "Ad    |"),
            ("{unescaped_username!r:>7}", "  'Ada'"),
            ("{unescaped_username:{userid}}|", "Ada |"),
            ("{{{unescaped_username}}}", "{Ada}"),
        ] {
            assert_eq!(render(text, 4), expected, "{text}");
        }
    }

    #[test]
    fn formats_that_python_refuses_are_refused() {
        for text in [
            "{userid:.2}",
            "{userid:s}",
            "{userid:f}",
            "{username:d}",
            "{username:+}",
            "{username:=5}",
            "{username:,}",
            "{username!x}",
            "{username!}",
            "{username!rr}",
            "{username:99999999999999999999}",
            "{",
            "}",
            "{}",
            "{0}",
            "{username!r",
            "{ username}",
            "{userid:,x}",
            "{userid:._}",
            "{username:5.}",
        ] {
            assert!(Template::parse("key", text, TemplateScope::Rest).is_err(), "{text}");
        }
    }
}
