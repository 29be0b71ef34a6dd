use std::fmt;

/// Text that is escaped as HTML when displayed; safe between tags and in quoted attributes.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
            f.write_str(&rest[..at])?;
            f.write_str(match &rest[at..=at] {
                "&" => "&amp;",
                "<" => "&lt;",
                ">" => "&gt;",
                "\"" => "&quot;",
                _ => "&#39;",
            })?;
            rest = &rest[at + 1..];
        }
        f.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_quotes_are_escaped() {
        let text = r#"<script>alert('x')</script> & "é""#;
        let expected = "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &quot;é&quot;";
        assert_eq!(Escaped(text).to_string(), expected);
    }
}
