//! The fields that a template may contain, and their values for one user and server.

use super::scheme::{self, Slug, Slugs};
use super::{Compat, SlugScheme};

/// A template field. The names are KubeSpawner's ("Templated fields" in its documentation).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// `{userid}`: JupyterHub's number for the user.
    Userid,
    /// `{unescaped_username}`: the unchanged username.
    UnescapedUsername,
    /// `{unescaped_servername}`: the unchanged server name.
    UnescapedServername,
    /// `{hubnamespace}`: the namespace of JupyterHub.
    Hubnamespace,
    /// `{username}`: the slug of the username under the configured scheme.
    Username,
    /// `{servername}`: the slug of the server name under the configured scheme; empty for the default server.
    Servername,
    /// `{user_server}`: one slug of both names under the configured scheme; unique for each server.
    UserServer,
    /// `{safe_username}`: the slug of the username under the scheme `safe`.
    SafeUsername,
    /// `{safe_servername}`: the slug of the server name under the scheme `safe`.
    SafeServername,
    /// `{safe_user_server}`: the slug of both names under the scheme `safe`.
    SafeUserServer,
    /// `{escaped_username}`: the slug of the username under the scheme `escape`.
    EscapedUsername,
    /// `{escaped_servername}`: the slug of the server name under the scheme `escape`.
    EscapedServername,
    /// `{escaped_user_server}`: the slug of both names under the scheme `escape`.
    EscapedUserServer,
    /// `{namespace}`: the lab's namespace; known to all templates except the namespace's own.
    Namespace,
    /// `{pod_name}`: the pod's name; known after the pod's template is resolved.
    PodName,
    /// `{pvc_name}`: the volume claim's name; known after the claim's template is resolved.
    PvcName,
    /// `{uid}`: the user's UID. KubeSpawner has neither this field nor those after it.
    Uid,
    /// `{gid}`: the user's primary GID.
    Gid,
    /// `{supplemental_gids}`: the GIDs of the user's other groups, with commas; empty if there are none.
    SupplementalGids,
    /// `{home}`: the user's home, as `/etc/passwd` has it.
    Home,
}

impl Field {
    /// All fields, in the order in which messages list them.
    pub const ALL: [Field; 20] = [
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
        Field::Uid,
        Field::Gid,
        Field::SupplementalGids,
        Field::Home,
    ];

    /// The field's name in templates.
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
            Field::Uid => "uid",
            Field::Gid => "gid",
            Field::SupplementalGids => "supplemental_gids",
            Field::Home => "home",
        }
    }

    /// Returns the field with this name.
    pub(super) fn named(name: &str) -> Option<Field> {
        Field::ALL.into_iter().find(|field| field.as_str() == name)
    }
}

/// The step of resolution at which a template is rendered. Each step knows the names of the steps before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TemplateScope {
    /// The namespace's template: it knows only fields of the user, the server and the Hub's namespace.
    Namespace,
    /// The pod's template: also knows `{namespace}`.
    Pod,
    /// The volume claim's template: also knows `{pod_name}`.
    Pvc,
    /// The templates of all other names: also know `{pvc_name}`.
    Rest,
    /// Templates of the settings inside a lab: also know the user's numbers and home. Names do not know these, because
    /// they are needed where the identity provider is not asked, and must not change with its answer.
    Lab,
}

impl TemplateScope {
    /// True if `field` has a value at this step.
    pub fn knows(self, field: Field) -> bool {
        match field {
            Field::Namespace => self > TemplateScope::Namespace,
            Field::PodName => self > TemplateScope::Pod,
            Field::PvcName => self > TemplateScope::Pvc,
            Field::Uid | Field::Gid | Field::SupplementalGids | Field::Home => self > TemplateScope::Rest,
            _ => true,
        }
    }
}

/// The values of all fields for one user and server. Names that are not resolved yet are empty; [`TemplateScope`]
/// prevents templates from reading them.
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
    uid: u32,
    gid: u32,
    supplemental_gids: String,
    home: String,
}

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Text(&'a str),
    Number(i64),
    /// No value: `{userid}`, if the caller does not know it.
    Missing,
}

impl Fields {
    /// Computes the fields that depend on the user and the server only.
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
            uid: 0,
            gid: 0,
            supplemental_gids: String::new(),
            home: String::new(),
        }
    }

    /// Adds the numbers and the home of the lab's user.
    #[must_use]
    pub fn with_user(mut self, uid: u32, gid: u32, supplemental_gids: &[u32], home: String) -> Self {
        let gids: Vec<_> = supplemental_gids.iter().map(u32::to_string).collect();
        (self.uid, self.gid, self.supplemental_gids, self.home) = (uid, gid, gids.join(","), home);
        self
    }

    /// The home of the lab's user; empty before [`Fields::with_user`].
    pub fn home(&self) -> &str {
        &self.home
    }

    /// Sets the namespace of JupyterHub.
    pub(super) fn with_hub_namespace(mut self, namespace: &str) -> Self {
        namespace.clone_into(&mut self.hubnamespace);
        self
    }

    /// Replaces the slugs by those of another scheme.
    pub(super) fn with_scheme(mut self, scheme: SlugScheme) -> Self {
        self.scheme = scheme;
        self
    }

    fn slugs(&self) -> &Slugs {
        match self.scheme {
            SlugScheme::Safe => &self.safe,
            SlugScheme::Escape => &self.escaped,
        }
    }

    /// Sets `{namespace}`.
    pub(super) fn set_namespace(&mut self, name: &str) {
        name.clone_into(&mut self.namespace);
    }

    /// Sets `{pod_name}`.
    pub(super) fn set_pod_name(&mut self, name: &str) {
        name.clone_into(&mut self.pod_name);
    }

    /// Sets `{pvc_name}`.
    pub(super) fn set_pvc_name(&mut self, name: &str) {
        name.clone_into(&mut self.pvc_name);
    }

    pub(super) fn value(&self, field: Field) -> Value<'_> {
        Value::Text(match field {
            Field::Userid => return self.userid.map_or(Value::Missing, Value::Number),
            Field::Uid => return Value::Number(self.uid.into()),
            Field::Gid => return Value::Number(self.gid.into()),
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
            Field::SupplementalGids => &self.supplemental_gids,
            Field::Home => &self.home,
        })
    }
}
