use super::layout::layout;
use super::{FieldKind, Form, input, script};

/// Highlights the chosen card. On a page that forbids inline styles the radio buttons still show the choice.
const CARDS: &str = "<style>\n#wasmspawner-form .border:has(> :checked) { border-color: var(--bs-primary) !important; \
background-color: var(--bs-primary-bg-subtle); }\n</style>\n";

/// Renders the form as an HTML fragment for JupyterHub's spawn page, which supplies the `<form>` and the button.
///
/// The HTML uses classes and colours of Bootstrap 5.3, which that page loads, and so follows its light or dark mode.
/// Every text is escaped, every input has a label, and every key is submitted with at most one value. Without scripts
/// all fields are visible and everything else works.
pub fn render(form: &Form) -> String {
    let fields = match form {
        Form::Html(html) => return html.clone(),
        Form::Fields(fields) if fields.is_empty() => return String::new(),
        Form::Fields(fields) => fields,
    };
    let mut html = String::from("<div id=\"wasmspawner-form\">\n");
    if fields.iter().any(|field| matches!(field.kind, FieldKind::Radio(_))) {
        html.push_str(CARDS);
    }
    for section in layout(fields) {
        section.open(&mut html);
        for (at, field) in &section.fields {
            input::field(*at, field, &mut html);
        }
        section.close(&mut html);
    }
    html.push_str("</div>\n");
    if fields.iter().any(|field| field.visible_when.is_some()) {
        html.push_str(script::VISIBILITY);
    }
    html
}
