//! The slug that KubeSpawner derives from a display name. KubeSpawner 7.1 uses `python-slugify` with `text-unidecode`.

use super::letters;

/// Returns ASCII letters and digits in lower case, and `-` for everything else. `None` if nothing would be left, or if
/// the name has letters or references (`&eacute;`) whose transliteration is not known here.
pub(super) fn slug(display_name: &str) -> Option<String> {
    let mut text = String::new();
    for char in display_name.chars() {
        match char {
            // A typed apostrophe separates words. An apostrophe from the transliteration of another character is
            // dropped.
            '\'' => text.push('-'),
            _ if char.is_ascii() => text.push(char),
            _ => text.push_str(letters::transliterate(char)?),
        }
    }
    let slug = separated(&without_references(&text)?);
    (!slug.is_empty()).then_some(slug)
}

/// Replaces HTML's references to characters. `None` if one is not known here.
fn without_references(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        let name = after.split_once(';').map(|(name, _)| name).filter(|name| is_name(name));
        if let Some(name) = name {
            out.push_str(reference(name)?);
            rest = &after[name.len() + 1..];
        } else {
            out.push('&');
            rest = after;
        }
    }
    out.push_str(rest);
    Some(out)
}

/// True for a text that may stand between `&` and `;` of a reference.
fn is_name(text: &str) -> bool {
    let name = text.strip_prefix('#').unwrap_or(text);
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Returns the replacement of a reference. All of these characters separate words, except the apostrophe, which is
/// dropped.
fn reference(name: &str) -> Option<&'static str> {
    match name {
        "amp" | "lt" | "gt" | "quot" | "nbsp" | "ndash" | "mdash" | "middot" | "bull" | "times" | "copy"
        | "reg" | "lsquo" | "rsquo" | "ldquo" | "rdquo" | "laquo" | "raquo" | "deg" | "plusmn" | "euro"
        | "#38" | "#160" | "#8211" | "#8212" | "#8216" | "#8217" | "#8220" | "#8221" | "#xa0" | "#x2013"
        | "#x2019" => Some(" "),
        "#39" | "#x27" => Some(""),
        _ => None,
    }
}

/// Converts the text to lower case, with one `-` for each run of characters that are neither letters nor digits. A
/// comma within a number is dropped.
fn separated(text: &str) -> String {
    let mut slug = String::new();
    let mut rest = text.chars().peekable();
    let mut before = ' ';
    while let Some(char) = rest.next() {
        let in_number =
            char == ',' && before.is_ascii_digit() && rest.peek().is_some_and(char::is_ascii_digit);
        if char.is_ascii_alphanumeric() {
            slug.push(char.to_ascii_lowercase());
        } else if !slug.ends_with('-') && !in_number {
            slug.push('-');
        }
        before = char;
    }
    slug.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::slug;

    /// The expected slugs are KubeSpawner's own; `tests/profiles` compares further ones.
    #[test]
    fn slugs_are_those_of_kubespawner() {
        for (name, expected) in [
            ("Small", "small"),
            ("Deep learning: 1 GPU (A100)", "deep-learning-1-gpu-a100"),
            ("  R & RStudio -- beta ", "r-rstudio-beta"),
            ("Up to 1,000 cores, shared", "up-to-1000-cores-shared"),
            ("Ada's lab", "ada-s-lab"),
            ("Ada’s lab", "adas-lab"),
            ("Ada&#39;s lab", "adas-lab"),
            ("🚀 GPU", "gpu"),
            ("a🚀b", "ab"),
            ("❤️ x", "x"),
            ("Größe", "grosse"),
            ("Café №\u{a0}5", "cafe-no-5"),
            ("cafe\u{301}", "cafe"),
            ("GPU × 2, 20 °C", "gpu-x-2-20-degc"),
            ("R &amp; D &lt;new&gt;", "r-d-new"),
            ("a & b; c", "a-b-c"),
            ("½ node", "1-2-node"),
        ] {
            assert_eq!(slug(name).as_deref(), Some(expected), "{name}");
        }
        for name in ["日本", "Привет", "caf&eacute;", "&#65;", "--", ""] {
            assert_eq!(slug(name), None, "{name}");
        }
    }
}
