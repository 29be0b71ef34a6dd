//! Groups the fields of a form into sections.

use std::fmt::Write as _;

use super::Field;
use super::escape::Escaped;

/// Fields below a common title, or one field without a group.
pub(super) struct Section<'a> {
    title: Option<&'a str>,
    /// Each field with its position in the form.
    pub(super) fields: Vec<(usize, &'a Field)>,
}

/// Splits the fields into sections, in order. A group is placed where its first field is.
pub(super) fn layout(fields: &[Field]) -> Vec<Section<'_>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    for (at, field) in fields.iter().enumerate() {
        let title = field.group.as_deref();
        match sections.iter_mut().find(|section| title.is_some() && section.title == title) {
            Some(section) => section.fields.push((at, field)),
            None => sections.push(Section { title, fields: vec![(at, field)] }),
        }
    }
    sections
}

impl Section<'_> {
    /// Writes the HTML before the section's fields. Writing to a `String` cannot fail.
    pub(super) fn open(&self, html: &mut String) {
        if let Some(title) = self.title {
            html.push_str("<fieldset class=\"border rounded p-3 mb-4\">\n");
            let title = Escaped(title);
            let _ = writeln!(html, "<legend class=\"float-none w-auto px-2 mb-0 fs-5\">{title}</legend>");
        }
    }

    /// Writes the HTML after the section's fields.
    pub(super) fn close(&self, html: &mut String) {
        if self.title.is_some() {
            html.push_str("</fieldset>\n");
        }
    }
}
