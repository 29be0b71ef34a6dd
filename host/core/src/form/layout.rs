//! Which fields stand together.

use std::fmt::Write as _;

use super::Field;
use super::escape::Escaped;

/// Fields below one title, or a field without one.
pub(super) struct Section<'a> {
    title: Option<&'a str>,
    /// Each with its position in the form.
    pub(super) fields: Vec<(usize, &'a Field)>,
}

/// The fields in their order; a group stands where its first field does.
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
    /// What stands before its fields. Writing to a String cannot fail.
    pub(super) fn open(&self, html: &mut String) {
        if let Some(title) = self.title {
            html.push_str("<fieldset class=\"border rounded p-3 mb-4\">\n");
            let title = Escaped(title);
            let _ = writeln!(html, "<legend class=\"float-none w-auto px-2 mb-0 fs-5\">{title}</legend>");
        }
    }

    /// What stands after its fields.
    pub(super) fn close(&self, html: &mut String) {
        if self.title.is_some() {
            html.push_str("</fieldset>\n");
        }
    }
}
