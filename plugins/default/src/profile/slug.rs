/// The slug that KubeSpawner derives from a display name: ASCII letters and digits in lower case, and `-` for all else.
/// `None` if KubeSpawner would transliterate letters of other alphabets, or if nothing would be left.
pub(super) fn slug(display_name: &str) -> Option<String> {
    if display_name.chars().any(|char| !char.is_ascii() && char.is_alphanumeric()) {
        return None;
    }
    let mut slug = String::new();
    let mut rest = display_name.chars().peekable();
    let mut before = ' ';
    while let Some(char) = rest.next() {
        // A comma within a number is dropped.
        let in_number =
            char == ',' && before.is_ascii_digit() && rest.peek().is_some_and(char::is_ascii_digit);
        if char.is_ascii_alphanumeric() {
            slug.push(char.to_ascii_lowercase());
        } else if !slug.ends_with('-') && !in_number {
            slug.push('-');
        }
        before = char;
    }
    let slug = slug.trim_matches('-');
    (!slug.is_empty()).then(|| slug.to_owned())
}

#[cfg(test)]
mod tests {
    use super::slug;

    #[test]
    fn slugs_are_those_of_kubespawner() {
        for (name, expected) in [
            ("Small", "small"),
            ("Deep learning: 1 GPU (A100)", "deep-learning-1-gpu-a100"),
            ("  R & RStudio -- beta ", "r-rstudio-beta"),
            ("Up to 1,000 cores, shared", "up-to-1000-cores-shared"),
            ("Ada's lab", "ada-s-lab"),
            ("🚀 GPU", "gpu"),
        ] {
            assert_eq!(slug(name).as_deref(), Some(expected), "{name}");
        }
        for name in ["Größe", "日本", "--", ""] {
            assert_eq!(slug(name), None, "{name}");
        }
    }
}
