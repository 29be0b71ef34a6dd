use super::layout::layout;
use super::{Form, input, script};

/// The form as an HTML fragment for JupyterHub's spawn page, which supplies the `<form>` and the button.
///
/// It uses the classes of Bootstrap 5.3 that the page has and brings no style of its own, so it follows the page in
/// light and dark. Every text is escaped, every input has a label, and every key is submitted with one value at most.
/// Without scripts all fields are visible and everything else works.
pub fn render(form: &Form) -> String {
    let fields = match form {
        Form::Html(html) => return html.clone(),
        Form::Fields(fields) if fields.is_empty() => return String::new(),
        Form::Fields(fields) => fields,
    };
    let mut html = String::from("<div id=\"wasmspawner-form\">\n");
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
