//! Errors in templates, and in the names that templates render.

use super::field::{Field, TemplateScope};
use super::{InvalidName, NamespaceName};

/// A template that cannot be used, found when the configuration is loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: template {template:?}: {problem}")]
pub struct TemplateError {
    /// The configuration key that holds the template: `names.pod`.
    pub key: String,
    /// The template's text.
    pub template: String,
    /// The problem with the template.
    pub problem: TemplateProblem,
}

/// The problem with a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateProblem {
    /// The field does not exist.
    #[error("unknown field {{{field}}}; the fields are {}", known(*.scope))]
    UnknownField {
        /// The field's name as written.
        field: String,
        /// The scope of the template, which decides which fields are known.
        scope: TemplateScope,
    },
    /// The field is resolved after the template that contains it.
    #[error("{{{}}} is not resolved yet here; names are resolved in the order namespace, pod, volume, the rest. The fields are {}", .field.as_str(), known(*.scope))]
    LaterField {
        /// The field.
        field: Field,
        /// The scope of the template.
        scope: TemplateScope,
    },
    /// `{}` or `{0}`.
    #[error("a field is missing between the braces; for a brace itself write {{{{ or }}}}")]
    Positional,
    /// `{name.attribute}` or `{name[index]}`.
    #[error("{{{0}}}: attribute and index access are not available")]
    Access(String),
    /// `!` is not followed by `r`, `s` or `a` and then `:` or `}`.
    #[error("after '!' one of r, s, a is expected, then ':' or '}}'")]
    Conversion,
    /// The part after `:` is not one of Python's format specifications for this kind of value.
    #[error("format {spec:?}: {why}")]
    Spec {
        /// The text after `:`.
        spec: String,
        /// The reason for refusing it.
        why: &'static str,
    },
    /// A brace has no counterpart.
    #[error("unbalanced '{0}'; for a brace itself write it twice")]
    Unbalanced(char),
}

fn known(scope: TemplateScope) -> String {
    let fields: Vec<&str> =
        Field::ALL.into_iter().filter(|field| scope.knows(*field)).map(Field::as_str).collect();
    fields.join(", ")
}

/// A template that renders no usable name for this user and server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Kubernetes would refuse the name.
    #[error("{key} gives a name that Kubernetes refuses: {invalid}")]
    Refused {
        /// The configuration key of the template.
        key: &'static str,
        /// The name and the rule it breaks.
        invalid: InvalidName,
    },
    /// The template contains `{userid}`, and the request has no user id.
    #[error("{key} uses {{userid}}, and the request has no user id")]
    NoUserid {
        /// The configuration key of the template.
        key: &'static str,
    },
    /// The namespace is the service's own.
    #[error(
        "names.namespace gives {namespace}, the service's own namespace (kubernetes.namespace), which holds its records \
         and the site's secrets; no lab may be there"
    )]
    ServiceNamespace {
        /// The namespace.
        namespace: NamespaceName,
    },
    /// All labs are in one namespace, and the server has volume claims in another.
    #[error(
        "the volume claims of this server are in the namespace {kept}, and with kubernetes.namespaces `single` all labs \
         are in {single}; move the claims, or delete the server at JupyterHub"
    )]
    KeptElsewhere {
        /// The namespace of the claims.
        kept: NamespaceName,
        /// The namespace of all labs.
        single: NamespaceName,
    },
}
