//! The names of one user's server, as KubeSpawner 7.1 makes them with its default templates.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value as Json;

use crate::names::field::{Field, Fields, TemplateScope, Value};
use crate::names::{Compat, LabelValue, SlugScheme, Template, TemplateError};

/// KubeSpawner's default name templates, and optionally one more template.
#[derive(Debug, Clone)]
pub struct KubeSpawner {
    pod_name: Template,
    pvc_name: Template,
    secret_name: Template,
    dns_name: Template,
    user_namespace: Template,
    asked: Option<Template>,
}

/// The server whose names are wanted, and the settings that the names depend on.
///
/// The names are raw: KubeSpawner also computes names for users whom this service refuses (see
/// [`Username`](crate::names::Username)).
#[derive(Debug, Clone, Copy)]
pub struct NameQuery<'a> {
    /// The raw username.
    pub username: &'a str,
    /// The raw server name; empty for the default server.
    pub servername: &'a str,
    /// JupyterHub's number for the user.
    pub userid: i64,
    /// The slug scheme.
    pub scheme: SlugScheme,
    /// The rule to follow: that of KubeSpawner's documentation or that of its release.
    pub compat: Compat,
    /// The namespace of all labs: `KubeSpawner.namespace`.
    pub namespace: &'a str,
    /// The namespace of the Hub.
    pub hub_namespace: &'a str,
}

impl<'a> NameQuery<'a> {
    /// Creates a query about a user's server, with example values for all other settings.
    pub fn new(username: &'a str, servername: &'a str, scheme: SlugScheme) -> Self {
        Self {
            username,
            servername,
            userid: 42,
            scheme,
            compat: Compat::default(),
            namespace: "jhub",
            hub_namespace: "user",
        }
    }
}

/// The names of one user's server. The keys of its JSON are those of the test vectors that were computed with
/// KubeSpawner itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The values of all template fields.
    pub fields: BTreeMap<&'static str, Json>,
    /// The names that KubeSpawner's default templates give.
    pub defaults: Defaults,
    /// The labels on the pod that name user and server.
    pub labels: BTreeMap<&'static str, LabelValue>,
    /// The result of the additional template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rendered: Option<String>,
}

/// The names that KubeSpawner's default templates give.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Defaults {
    /// `pod_name_template`: `jupyter-{user_server}`.
    pub pod_name: String,
    /// `pvc_name_template`: `claim-{user_server}`.
    pub pvc_name: String,
    /// `secret_name_template`: `{pod_name}`.
    pub secret_name: String,
    /// `dns_name_template`: `{pod_name}.{namespace}.svc.cluster.local`.
    pub dns_name: String,
    /// `user_namespace_template`, used with `enable_user_namespaces`: `{hubnamespace}-{username}`.
    pub namespace_if_user_namespaces: String,
}

/// Names for which KubeSpawner's rules give no usable result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Ambiguous {
    /// The username is empty.
    #[error("the username is empty")]
    NoUser,
    /// Under the scheme `escape` another name has the same slug.
    #[error("a control character followed by a hexadecimal digit has the slug of another character")]
    Control,
}

impl KubeSpawner {
    /// Parses the default templates, and `template` in addition.
    pub fn new(template: Option<&str>) -> Result<Self, TemplateError> {
        let default = |name, text| Template::parse(name, text, TemplateScope::Rest);
        Ok(Self {
            pod_name: default("pod_name_template", "jupyter-{user_server}")?,
            pvc_name: default("pvc_name_template", "claim-{user_server}")?,
            secret_name: default("secret_name_template", "{pod_name}")?,
            dns_name: default("dns_name_template", "{pod_name}.{namespace}.svc.cluster.local")?,
            user_namespace: default("user_namespace_template", "{hubnamespace}-{username}")?,
            asked: template.map(|text| Template::parse("template", text, TemplateScope::Rest)).transpose()?,
        })
    }

    /// Computes the names for one user's server.
    pub fn answer(&self, question: &NameQuery<'_>) -> Result<Report, Ambiguous> {
        question.check()?;
        let mut fields = question.fields();
        let (pod_name, pvc_name) = (self.pod_name.render(&fields), self.pvc_name.render(&fields));
        fields.set_pod_name(&pod_name);
        fields.set_pvc_name(&pvc_name);
        Ok(Report {
            defaults: Defaults {
                pod_name,
                pvc_name,
                secret_name: self.secret_name.render(&fields),
                dns_name: self.dns_name.render(&fields),
                namespace_if_user_namespaces: self.user_namespace.render(&fields),
            },
            labels: BTreeMap::from([
                ("hub.jupyter.org/username", LabelValue::for_name(question.username)),
                ("hub.jupyter.org/servername", LabelValue::for_name(question.servername)),
            ]),
            rendered: self.asked.as_ref().map(|template| template.render(&fields)),
            fields: Field::ALL
                .into_iter()
                .filter(|field| TemplateScope::Rest.knows(*field))
                .map(|field| (field.as_str(), json(fields.value(field))))
                .collect(),
        })
    }
}

impl NameQuery<'_> {
    fn check(&self) -> Result<(), Ambiguous> {
        if self.username.is_empty() {
            return Err(Ambiguous::NoUser);
        }
        if [self.username, self.servername].into_iter().any(slug_of_another) {
            return Err(Ambiguous::Control);
        }
        Ok(())
    }

    fn fields(&self) -> Fields {
        let mut fields =
            Fields::new(self.username, self.servername, Some(self.userid), self.scheme, self.compat)
                .with_hub_namespace(self.hub_namespace);
        fields.set_namespace(self.namespace);
        fields
    }
}

/// True if another name has the same slug: the scheme `escape` writes bytes below 0x10 with one hexadecimal digit, so
/// that the next character can look like the second digit.
fn slug_of_another(name: &str) -> bool {
    name.as_bytes().windows(2).any(|pair| matches!(pair, [0..0x10, next] if next.is_ascii_hexdigit()))
}

fn json(value: Value<'_>) -> Json {
    match value {
        Value::Text(text) => text.into(),
        Value::Number(number) => number.into(),
        Value::Missing => Json::Null,
    }
}
