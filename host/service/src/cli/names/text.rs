//! The report as text for a terminal.

use std::io::{self, Write};

use wasmspawner_core::names::kubespawner::Report;
use wasmspawner_core::names::{
    Field, LabNames, NameTemplates, NamesConfig, ServerName, SlugScheme, Username,
};

/// Writes the reports one below the other.
pub(super) fn write(
    out: &mut impl Write,
    user: &str,
    server: &str,
    reports: &[(SlugScheme, Report)],
) -> io::Result<()> {
    for (index, (scheme, report)) in reports.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        writeln!(out, "scheme {}", scheme.as_str())?;
        fields(out, report)?;
        defaults(out, report)?;
        if let Some(rendered) = &report.rendered {
            writeln!(out, "  the template gives\n    {rendered}")?;
        }
        ours(out, *scheme, user, server)?;
    }
    Ok(())
}

fn fields(out: &mut impl Write, report: &Report) -> io::Result<()> {
    writeln!(out, "  template fields")?;
    for field in Field::ALL {
        match report.fields.get(field.as_str()) {
            Some(serde_json::Value::String(text)) => row(out, field.as_str(), text)?,
            Some(other) => row(out, field.as_str(), &other.to_string())?,
            None => {}
        }
    }
    Ok(())
}

fn defaults(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let names = &report.defaults;
    writeln!(out, "  KubeSpawner's names")?;
    row(out, "pod", &names.pod_name)?;
    row(out, "volume claim", &names.pvc_name)?;
    row(out, "secret", &names.secret_name)?;
    row(out, "dns name", &names.dns_name)?;
    row(out, "user namespace", &names.namespace_if_user_namespaces)?;
    for (key, value) in &report.labels {
        row(out, &format!("label {key}"), value.as_str())?;
    }
    Ok(())
}

fn ours(out: &mut impl Write, scheme: SlugScheme, user: &str, server: &str) -> io::Result<()> {
    writeln!(out, "  wasmspawner's names, by its default templates")?;
    match resolve(scheme, user, server) {
        Ok(names) => {
            row(out, "namespace", names.namespace.as_str())?;
            row(out, "pod", names.pod.as_str())?;
            row(out, "volume claim", names.pvc.as_str())?;
            row(out, "other objects", names.object.as_str())
        }
        Err(refusal) => row(out, "none", &refusal),
    }
}

fn resolve(scheme: SlugScheme, user: &str, server: &str) -> Result<LabNames, String> {
    let user = Username::parse(user).map_err(|error| error.to_string())?;
    let server = ServerName::parse(server).map_err(|error| error.to_string())?;
    let config = NamesConfig { scheme, ..NamesConfig::default() };
    let templates = NameTemplates::parse(&config)
        .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
    templates.resolve(&user, &server, None).map_err(|error| error.to_string())
}

fn row(out: &mut impl Write, name: &str, value: &str) -> io::Result<()> {
    // Control characters in a name must not reach the terminal.
    if value.chars().any(char::is_control) {
        writeln!(out, "    {name:<34} {value:?}")
    } else {
        writeln!(out, "    {name:<34} {}", if value.is_empty() { "(empty)" } else { value })
    }
}
