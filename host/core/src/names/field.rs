//! The fields a template may name, and their values for one user and server.

use super::scheme::{self, Slug, Slugs};
use super::{Compat, SlugScheme};

/// A template field; the names are KubeSpawner's ("Templated fields" in its documentation).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// `{userid}`: JupyterHub's number for the user.
    Userid,
    /// `{unescaped_username}`: the username as it is.
    UnescapedUsername,
    /// `{unescaped_servername}`: the server name as it is.
    UnescapedServername,
    /// `{hubnamespace}`: the namespace JupyterHub runs in.
    Hubnamespace,
    /// `{username}`: its slug under the configured scheme.
    Username,
    /// `{servername}`: its slug under the configured scheme; empty for the default server.
    Servername,
    /// `{user_server}`: both as one slug under the configured scheme; unique for a server.
    UserServer,
    /// `{safe_username}`
    SafeUsername,
    /// `{safe_servername}`
    SafeServername,
    /// `{safe_user_server}`
    SafeUserServer,
    /// `{escaped_username}`
    EscapedUsername,
    /// `{escaped_servername}`
    EscapedServername,
    /// `{escaped_user_server}`
    EscapedUserServer,
    /// `{namespace}`: where the lab's objects are; known to all templates but its own.
    Namespace,
    /// `{pod_name}`: known once the pod's template was resolved.
    PodName,
    /// `{pvc_name}`: known once the volume's template was resolved.
    PvcName,
}

impl Field {
    /// Every field, in the order they are told to people.
    pub const ALL: [Field; 16] = [
        Field::Userid,
        Field::UnescapedUsername,
        Field::UnescapedServername,
        Field::Hubnamespace,
        Field::Username,
        Field::Servername,
        Field::UserServer,
        Field::SafeUsername,
        Field::SafeServername,
        Field::SafeUserServer,
        Field::EscapedUsername,
        Field::EscapedServername,
        Field::EscapedUserServer,
        Field::Namespace,
        Field::PodName,
        Field::PvcName,
    ];

    /// The field as templates spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Field::Userid => "userid",
            Field::UnescapedUsername => "unescaped_username",
            Field::UnescapedServername => "unescaped_servername",
            Field::Hubnamespace => "hubnamespace",
            Field::Username => "username",
            Field::Servername => "servername",
            Field::UserServer => "user_server",
            Field::SafeUsername => "safe_username",
            Field::SafeServername => "safe_servername",
            Field::SafeUserServer => "safe_user_server",
            Field::EscapedUsername => "escaped_username",
            Field::EscapedServername => "escaped_servername",
            Field::EscapedUserServer => "escaped_user_server",
            Field::Namespace => "namespace",
            Field::PodName => "pod_name",
            Field::PvcName => "pvc_name",
        }
    }

    /// The field of this name.
    pub(super) fn named(name: &str) -> Option<Field> {
        Field::ALL.into_iter().find(|field| field.as_str() == name)
    }
}

/// How far resolution has come when a template is rendered; each step adds the name before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TemplateScope {
    /// The namespace's own template: users, servers and the Hub's namespace only.
    Namespace,
    /// The pod's: also `{namespace}`.
    Pod,
    /// The volume's: also `{pod_name}`.
    Pvc,
    /// Everything else: also `{pvc_name}`.
    Rest,
}

impl TemplateScope {
    /// True if `field` has a value by then.
    pub fn knows(self, field: Field) -> bool {
        match field {
            Field::Namespace => self > TemplateScope::Namespace,
            Field::PodName => self > TemplateScope::Pod,
            Field::PvcName => self > TemplateScope::Pvc,
            _ => true,
        }
    }
}

/// The values of all fields for one user and server. Names not yet resolved are empty; [`TemplateScope`] keeps templates from
/// reading them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fields {
    userid: Option<i64>,
    username: String,
    servername: String,
    hubnamespace: String,
    scheme: SlugScheme,
    safe: Slugs,
    escaped: Slugs,
    escaped_user_server: Slug,
    namespace: String,
    pod_name: String,
    pvc_name: String,
}

/// A field's value, borrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Text(&'a str),
    Number(i64),
    /// `{userid}` where the caller knows none.
    Missing,
}

impl Fields {
    /// The fields that come from who asks, for which server.
    pub(super) fn new(
        user: &str,
        server: &str,
        userid: Option<i64>,
        scheme: SlugScheme,
        compat: Compat,
    ) -> Self {
        let (escaped, escaped_user_server) = scheme::escape(user, server, compat);
        Self {
            userid,
            username: user.to_owned(),
            servername: server.to_owned(),
            hubnamespace: String::new(),
            scheme,
            safe: scheme::safe(user, server, compat),
            escaped,
            escaped_user_server,
            namespace: String::new(),
            pod_name: String::new(),
            pvc_name: String::new(),
        }
    }

    /// With the namespace JupyterHub runs in.
    pub(super) fn in_hub(mut self, namespace: &str) -> Self {
        namespace.clone_into(&mut self.hubnamespace);
        self
    }

    /// The same with the slugs of another scheme.
    pub(super) fn under(mut self, scheme: SlugScheme) -> Self {
        self.scheme = scheme;
        self
    }

    fn slugs(&self) -> &Slugs {
        match self.scheme {
            SlugScheme::Safe => &self.safe,
            SlugScheme::Escape => &self.escaped,
        }
    }

    /// From now on `{namespace}` is known.
    pub(super) fn set_namespace(&mut self, name: &str) {
        name.clone_into(&mut self.namespace);
    }

    /// From now on `{pod_name}` is known.
    pub(super) fn set_pod_name(&mut self, name: &str) {
        name.clone_into(&mut self.pod_name);
    }

    /// From now on `{pvc_name}` is known.
    pub(super) fn set_pvc_name(&mut self, name: &str) {
        name.clone_into(&mut self.pvc_name);
    }

    pub(super) fn value(&self, field: Field) -> Value<'_> {
        Value::Text(match field {
            Field::Userid => return self.userid.map_or(Value::Missing, Value::Number),
            Field::UnescapedUsername => &self.username,
            Field::UnescapedServername => &self.servername,
            Field::Hubnamespace => &self.hubnamespace,
            Field::Username => self.slugs().username.as_str(),
            Field::Servername => self.slugs().servername.as_str(),
            Field::UserServer => self.slugs().user_server.as_str(),
            Field::SafeUsername => self.safe.username.as_str(),
            Field::SafeServername => self.safe.servername.as_str(),
            Field::SafeUserServer => self.safe.user_server.as_str(),
            Field::EscapedUsername => self.escaped.username.as_str(),
            Field::EscapedServername => self.escaped.servername.as_str(),
            Field::EscapedUserServer => self.escaped_user_server.as_str(),
            Field::Namespace => &self.namespace,
            Field::PodName => &self.pod_name,
            Field::PvcName => &self.pvc_name,
        })
    }
}
