//! Renders one field of the form as HTML.

use std::fmt::{self, Write as _};

use super::escape::Escaped;
use super::{Choice, ChoiceInput, Field, FieldKind, NumberInput, TextInput};

/// Renders the field at position `at` of the form. Element ids consist of the position, because a field's name could
/// contain characters that are not valid in an id.
pub(super) fn field(at: usize, field: &Field, html: &mut String) {
    // Writing to a String cannot fail.
    let _ = write_field(&Input { id: format!("ws-{at}"), field }, html);
}

struct Input<'a> {
    id: String,
    field: &'a Field,
}

fn write_field(input: &Input<'_>, html: &mut String) -> fmt::Result {
    match &input.field.visible_when {
        // A fieldset can be disabled together with everything in it.
        Some(when) => {
            let values = serde_json::to_string(&when.values).unwrap_or_default();
            let (name, values) = (Escaped(&when.field), Escaped(&values));
            writeln!(html, "<fieldset class=\"mb-4\" data-ws-when=\"{name}\" data-ws-values=\"{values}\">")?;
        }
        None => writeln!(html, "<div class=\"mb-4\">")?,
    }
    match &input.field.kind {
        FieldKind::Select(choices) => input.select(choices, html)?,
        FieldKind::Radio(choices) => input.radio(choices, html)?,
        FieldKind::Search(choices) => input.search(choices, html)?,
        FieldKind::Checkbox(on) if input.field.required => input.consent(*on, html)?,
        FieldKind::Checkbox(on) => input.yes_or_no(*on, html)?,
        FieldKind::Text(text) => input.text(text, html)?,
        FieldKind::Number(number) => input.number(number, html)?,
    }
    writeln!(html, "{}", if input.field.visible_when.is_some() { "</fieldset>" } else { "</div>" })
}

impl Input<'_> {
    fn select(&self, input: &ChoiceInput, html: &mut String) -> fmt::Result {
        self.label(html)?;
        writeln!(html, "<select class=\"form-select\"{}>", self.attributes())?;
        if input.default.is_none() {
            // Without this option the browser would select the first choice by itself.
            writeln!(html, "<option value=\"\">Choose…</option>")?;
        }
        for choice in &input.choices {
            let (value, label) = (Escaped(&choice.value), Escaped(&choice.label));
            let selected = flag("selected", input.default.as_ref() == Some(&choice.value));
            write!(html, "<option value=\"{value}\"{selected}>{label}")?;
            if let Some(description) = &choice.description {
                write!(html, " – {}", Escaped(description))?;
            }
            writeln!(html, "</option>")?;
        }
        writeln!(html, "</select>")?;
        self.help(html)
    }

    /// Renders a line of text with suggestions. The browser offers the values whose name or text contains the typed
    /// text, without a script.
    fn search(&self, input: &ChoiceInput, html: &mut String) -> fmt::Result {
        self.label(html)?;
        let (id, value) = (&self.id, Escaped(input.default.as_deref().unwrap_or_default()));
        let attributes = self.attributes();
        writeln!(
            html,
            "<input class=\"form-control\" type=\"search\" list=\"{id}-list\" autocomplete=\"off\" value=\"{value}\"{attributes}>"
        )?;
        writeln!(html, "<datalist id=\"{id}-list\">")?;
        for choice in &input.choices {
            let (value, label) = (Escaped(&choice.value), Escaped(&choice.label));
            write!(html, "<option value=\"{value}\">{label}")?;
            if let Some(description) = &choice.description {
                write!(html, " – {}", Escaped(description))?;
            }
            writeln!(html, "</option>")?;
        }
        writeln!(html, "</datalist>")?;
        self.help(html)
    }

    /// Renders cards: each is a radio button whose label covers the whole card.
    fn radio(&self, input: &ChoiceInput, html: &mut String) -> fmt::Result {
        self.open_group(html)?;
        writeln!(html, "<div class=\"row row-cols-1 row-cols-md-2 g-2\">")?;
        for (at, choice) in input.choices.iter().enumerate() {
            let checked = input.default.as_ref() == Some(&choice.value);
            self.card(at, choice, checked, html)?;
        }
        writeln!(html, "</div>")?;
        self.help(html)?;
        writeln!(html, "</div>")
    }

    fn card(&self, at: usize, choice: &Choice, checked: bool, html: &mut String) -> fmt::Result {
        let (id, label) = (&self.id, Escaped(&choice.label));
        writeln!(
            html,
            "<div class=\"col\">\n<div class=\"form-check position-relative border rounded h-100 p-3 ps-5\">"
        )?;
        self.radio_button(at, choice.description.is_some(), &choice.value, checked, html)?;
        write!(
            html,
            "<label class=\"form-check-label stretched-link fw-semibold\" for=\"{id}-{at}\">{label}</label>"
        )?;
        if let Some(description) = &choice.description {
            let description = Escaped(description);
            write!(
                html,
                "\n<div class=\"small text-body-secondary\" id=\"{id}-{at}-more\">{description}</div>"
            )?;
        }
        writeln!(html, "\n</div>\n</div>")
    }

    /// Renders a switch as two choices. A checkbox that is off submits nothing, and a checkbox with a hidden second
    /// input submits two values; every key has to be submitted exactly once.
    fn yes_or_no(&self, on: bool, html: &mut String) -> fmt::Result {
        self.open_group(html)?;
        for (at, (value, label, checked)) in
            [("true", "Yes", on), ("false", "No", !on)].into_iter().enumerate()
        {
            writeln!(html, "<div class=\"form-check form-check-inline\">")?;
            self.radio_button(at, false, value, checked, html)?;
            writeln!(
                html,
                "<label class=\"form-check-label\" for=\"{}-{at}\">{label}</label>\n</div>",
                self.id
            )?;
        }
        self.help(html)?;
        writeln!(html, "</div>")
    }

    /// Renders a checkbox that must be checked before the form is submitted, and so always submits its one value.
    fn consent(&self, on: bool, html: &mut String) -> fmt::Result {
        let (attributes, checked) = (self.attributes(), flag("checked", on));
        writeln!(html, "<div class=\"form-check\">")?;
        writeln!(
            html,
            "<input class=\"form-check-input\" type=\"checkbox\" value=\"true\"{attributes}{checked}>"
        )?;
        let label = Escaped(&self.field.label);
        writeln!(
            html,
            "<label class=\"form-check-label fw-semibold\" for=\"{}\">{label}</label>\n</div>",
            self.id
        )?;
        self.help(html)
    }

    fn text(&self, input: &TextInput, html: &mut String) -> fmt::Result {
        self.label(html)?;
        let (attributes, value) = (self.attributes(), Escaped(&input.default));
        write!(html, "<input class=\"form-control\" type=\"text\" value=\"{value}\"{attributes}")?;
        attribute("placeholder", input.placeholder.as_deref(), html)?;
        attribute("maxlength", input.max_length, html)?;
        attribute("pattern", input.pattern.as_deref(), html)?;
        writeln!(html, ">")?;
        self.help(html)
    }

    fn number(&self, input: &NumberInput, html: &mut String) -> fmt::Result {
        self.label(html)?;
        let (attributes, value) = (self.attributes(), input.default);
        write!(html, "<input class=\"form-control\" type=\"number\" value=\"{value}\"{attributes}")?;
        attribute("min", input.minimum, html)?;
        attribute("max", input.maximum, html)?;
        match input.step {
            Some(step) => attribute("step", Some(step), html)?,
            None => write!(html, " step=\"any\"")?,
        }
        writeln!(html, ">")?;
        self.help(html)
    }

    fn radio_button(
        &self,
        at: usize,
        described: bool,
        value: &str,
        checked: bool,
        html: &mut String,
    ) -> fmt::Result {
        let (id, name, value) = (&self.id, Escaped(&self.field.name), Escaped(value));
        let state = [flag("checked", checked), flag("required", self.field.required)].concat();
        write!(html, "<input class=\"form-check-input\" type=\"radio\" id=\"{id}-{at}\" name=\"{name}\"")?;
        if described {
            write!(html, " aria-describedby=\"{id}-{at}-more\"")?;
        }
        // Off, because a browser that restores an earlier choice would hide the current default.
        writeln!(html, " value=\"{value}\" autocomplete=\"off\"{state}>")
    }

    /// Returns the attributes that every single input has.
    fn attributes(&self) -> String {
        let Self { id, field } = self;
        let required = flag("required", field.required);
        format!(" id=\"{id}\" name=\"{}\"{}{required}", Escaped(&field.name), self.described_by())
    }

    /// Opens a group, so that screen readers announce several buttons as one input.
    fn open_group(&self, html: &mut String) -> fmt::Result {
        let (id, described, label) = (&self.id, self.described_by(), Escaped(&self.field.label));
        writeln!(html, "<div role=\"radiogroup\" aria-labelledby=\"{id}-label\"{described}>")?;
        writeln!(html, "<div class=\"form-label fw-semibold\" id=\"{id}-label\">{label}</div>")
    }

    fn label(&self, html: &mut String) -> fmt::Result {
        let label = Escaped(&self.field.label);
        writeln!(html, "<label class=\"form-label fw-semibold\" for=\"{}\">{label}</label>", self.id)
    }

    fn help(&self, html: &mut String) -> fmt::Result {
        let id = &self.id;
        if let Some(notice) = &self.field.notice {
            let notice = Escaped(notice);
            writeln!(
                html,
                "<div class=\"form-text text-warning-emphasis\" id=\"{id}-notice\">{notice}</div>"
            )?;
        }
        match &self.field.help {
            Some(help) => writeln!(html, "<div class=\"form-text\" id=\"{id}-help\">{}</div>", Escaped(help)),
            None => Ok(()),
        }
    }

    fn described_by(&self) -> String {
        let Self { id, field } = self;
        let texts = [("notice", &field.notice), ("help", &field.help)];
        let ids: Vec<_> = texts
            .into_iter()
            .filter(|(_, text)| text.is_some())
            .map(|(part, _)| format!("{id}-{part}"))
            .collect();
        if ids.is_empty() { String::new() } else { format!(" aria-describedby=\"{}\"", ids.join(" ")) }
    }
}

fn flag(name: &str, on: bool) -> String {
    if on { format!(" {name}") } else { String::new() }
}

fn attribute(name: &str, value: Option<impl fmt::Display>, html: &mut String) -> fmt::Result {
    match value {
        Some(value) => write!(html, " {name}=\"{}\"", Escaped(&value.to_string())),
        None => Ok(()),
    }
}
