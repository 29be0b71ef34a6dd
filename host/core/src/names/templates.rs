//! Resolves the configuration's templates to the names of one lab.

use super::field::{Fields, TemplateScope};
use super::lab_names::{KeptNames, LabNames};
use super::problem::{NameError, TemplateError};
use super::template::Template;
use super::{
    Compat, InvalidName, LabelValue, NamesConfig, NamespaceName, ObjectName, ServerName, SlugScheme, Username,
};

/// The parsed name templates of a site. The names depend only on them and on the arguments of
/// [`NameTemplates::resolve`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameTemplates {
    scheme: SlugScheme,
    compat: Compat,
    hub_namespace: NamespaceName,
    namespace: Template,
    pod: Template,
    pvc: Template,
    object_prefix: Template,
    service_account: Template,
    remember_pvc_name: bool,
}

impl NameTemplates {
    /// Parses all templates of the section. Reports every problem at once.
    pub fn parse(config: &NamesConfig) -> Result<Self, Vec<TemplateError>> {
        let mut errors = Vec::new();
        let mut parse =
            |key, text, scope| Template::parse(key, text, scope).map_err(|error| errors.push(error)).ok();
        let (Some(namespace), Some(pod), Some(pvc), Some(object_prefix), Some(service_account)) = (
            parse("names.namespace", &config.namespace, TemplateScope::Namespace),
            parse("names.pod", &config.pod, TemplateScope::Pod),
            parse("names.pvc", &config.pvc, TemplateScope::Pvc),
            parse("names.object_prefix", &config.object_prefix, TemplateScope::Rest),
            parse("names.service_account", &config.service_account, TemplateScope::Rest),
        ) else {
            return Err(errors);
        };
        let NamesConfig { scheme, compat, ref hub_namespace, remember_pvc_name, .. } = *config;
        let hub_namespace = hub_namespace.clone();
        Ok(Self {
            scheme,
            compat,
            hub_namespace,
            namespace,
            pod,
            pvc,
            object_prefix,
            service_account,
            remember_pvc_name,
        })
    }

    /// True if a server's claim keeps its name even if the templates change.
    pub fn remembers_pvc(&self) -> bool {
        self.remember_pvc_name
    }

    /// True if labs of different users deliberately share one claim.
    pub fn shares_pvc(&self) -> bool {
        self.pvc.is_constant()
    }

    /// Returns the namespace of all labs, if its template gives the same for every user and server.
    pub fn constant_namespace(&self) -> Option<NamespaceName> {
        let fields = Fields::new("", "", None, self.scheme, self.compat)
            .with_hub_namespace(self.hub_namespace.as_str());
        let constant = self.namespace.is_constant().then(|| self.namespace.render(&fields));
        constant.and_then(|name| NamespaceName::parse(name).ok())
    }

    /// Resolves the names for a user's server. `userid` is JupyterHub's number of the user; only templates with
    /// `{userid}` need it.
    ///
    /// The order is namespace, pod, volume claim, all others. Each template may use the names before it.
    pub fn resolve(
        &self,
        user: &Username,
        server: &ServerName,
        userid: Option<i64>,
    ) -> Result<LabNames, NameError> {
        self.resolve_keeping(&KeptNames::default(), user, server, userid)
    }

    /// Like [`Self::resolve`], for a server that has names already: they replace the results of their templates.
    pub fn resolve_keeping(
        &self,
        kept: &KeptNames,
        user: &Username,
        server: &ServerName,
        userid: Option<i64>,
    ) -> Result<LabNames, NameError> {
        let mut fields = Fields::new(user.as_str(), server.as_str(), userid, self.scheme, self.compat)
            .with_hub_namespace(self.hub_namespace.as_str());
        let refused = |key| move |invalid: InvalidName| NameError::Refused { key, invalid };
        let render = |key: &'static str, template: &Template, fields: &Fields| {
            if userid.is_none() && template.needs_userid() {
                return Err(NameError::NoUserid { key });
            }
            Ok(template.render(fields))
        };

        let namespace = match &kept.namespace {
            Some(kept) => kept.clone(),
            None => NamespaceName::parse(render("names.namespace", &self.namespace, &fields)?)
                .map_err(refused("names.namespace"))?,
        };
        fields.set_namespace(namespace.as_str());
        let pod = render("names.pod", &self.pod, &fields)?;
        let pod = ObjectName::parse(pod).map_err(refused("names.pod"))?;
        fields.set_pod_name(pod.as_str());
        let pvc = match &kept.pvc {
            Some(kept) => kept.clone(),
            None => {
                ObjectName::parse(render("names.pvc", &self.pvc, &fields)?).map_err(refused("names.pvc"))?
            }
        };
        fields.set_pvc_name(pvc.as_str());
        let object = render("names.object_prefix", &self.object_prefix, &fields)?;
        let suffixed = |suffix: &str| ObjectName::parse(format!("{object}{suffix}"));
        let service_account = render("names.service_account", &self.service_account, &fields)?;

        Ok(LabNames {
            namespace,
            pod,
            pvc,
            env: suffixed("-env").map_err(refused("names.object_prefix"))?,
            nss: suffixed("-nss").map_err(refused("names.object_prefix"))?,
            pull_secret: suffixed("-pull").map_err(refused("names.object_prefix"))?,
            object: suffixed("").map_err(refused("names.object_prefix"))?,
            service_account: ObjectName::parse(service_account).map_err(refused("names.service_account"))?,
            user_label: LabelValue::for_name(user.as_str()),
            server_label: LabelValue::for_name(server.as_str()),
            fields,
        })
    }

    /// Returns the name that a KubeSpawner before release 7 gave the lab's volume claim (the template under the
    /// `escape` scheme), if it differs from the present one. If a claim of that name exists, and none of the present
    /// name, it holds the user's data.
    pub fn legacy_pvc(&self, names: &LabNames) -> Option<ObjectName> {
        // A name that Kubernetes refuses cannot belong to an existing claim.
        let legacy =
            ObjectName::parse(self.pvc.render(&names.fields.clone().with_scheme(SlugScheme::Escape))).ok();
        legacy.filter(|legacy| *legacy != names.pvc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> Username {
        Username::parse(name).unwrap()
    }

    fn server(name: &str) -> ServerName {
        ServerName::parse(name).unwrap()
    }

    fn resolve(config: &NamesConfig, name: &str, server_name: &str) -> Result<LabNames, NameError> {
        NameTemplates::parse(config).unwrap().resolve(&user(name), &server(server_name), None)
    }

    #[test]
    fn the_default_templates_give_these_names() {
        let names = resolve(&NamesConfig::default(), "ada.lovelace@example.org", "").unwrap();
        assert_eq!(names.namespace, "nublado-ada-lovelace-example-org---7799473f");
        assert_eq!(names.pod, "nb-ada-lovelace-example-org---7799473f");
        assert_eq!(names.env, "nb-ada-lovelace-example-org---7799473f-env");
        let gpu = resolve(&NamesConfig::default(), "ada", "gpu").unwrap();
        assert_eq!((gpu.namespace.as_str(), gpu.pod.as_str()), ("nublado-ada--gpu", "nb-ada--gpu"));
        assert_eq!((gpu.user_label.as_str(), gpu.server_label.as_str()), ("ada", "gpu"));
    }

    #[test]
    fn later_names_build_on_earlier_ones() {
        let config = NamesConfig {
            namespace: "{hubnamespace}-labs".into(),
            pod: "{namespace}-{user_server}".into(),
            pvc: "{pod_name}-home".into(),
            service_account: "{pvc_name}-sa".into(),
            ..NamesConfig::default()
        };
        let names = resolve(&config, "ada", "").unwrap();
        assert_eq!(names.service_account, "jupyterhub-labs-ada-home-sa");
    }

    #[test]
    fn every_wrong_template_is_told_with_its_key_and_the_fields() {
        let config = NamesConfig {
            namespace: "{pod_name}".into(),
            pod: "nb-{user}".into(),
            pvc: "{pvc_name}".into(),
            object_prefix: "{username".into(),
            service_account: "{username.__class__}".into(),
            ..NamesConfig::default()
        };
        let errors: Vec<String> =
            NameTemplates::parse(&config).unwrap_err().iter().map(ToString::to_string).collect();
        insta::assert_yaml_snapshot!(errors);
    }

    #[test]
    fn an_error_about_an_invalid_name_names_its_template() {
        let config = NamesConfig {
            scheme: SlugScheme::Escape,
            namespace: "{username}".into(),
            ..NamesConfig::default()
        };
        let error = resolve(&config, "Ada", "").unwrap_err().to_string();
        insta::assert_snapshot!(error, @r#"names.namespace gives a name that Kubernetes refuses: namespace "-41da" must be lower case letters, digits and '-', with a letter or digit at both ends"#);
    }

    #[test]
    fn a_user_id_is_needed_only_where_a_template_reads_it() {
        let config = NamesConfig { pvc: "claim-{userid:05d}".into(), ..NamesConfig::default() };
        let templates = NameTemplates::parse(&config).unwrap();
        let lab = (user("ada"), server(""));
        assert!(
            matches!(templates.resolve(&lab.0, &lab.1, None), Err(NameError::NoUserid { key }) if key == "names.pvc")
        );
        assert_eq!(templates.resolve(&lab.0, &lab.1, Some(42)).unwrap().pvc, "claim-00042");
    }

    #[test]
    fn an_older_kubespawners_volume_is_looked_for_only_where_its_name_differs() {
        let templates = NameTemplates::parse(&NamesConfig::default()).unwrap();
        let legacy =
            |name: &str| templates.legacy_pvc(&templates.resolve(&user(name), &server(""), None).unwrap());
        assert_eq!(legacy("ada"), None);
        assert_eq!(legacy("ada-l").unwrap(), "claim-ada-2dl");
        assert_eq!(legacy("Ada").unwrap(), "claim--41da");
    }

    #[test]
    fn kept_names_replace_their_templates() {
        let config =
            NamesConfig { service_account: "{namespace}-{pvc_name}".into(), ..NamesConfig::default() };
        let templates = NameTemplates::parse(&config).unwrap();
        let kept = KeptNames {
            namespace: Some(NamespaceName::parse("jhub").unwrap()),
            pvc: Some(ObjectName::parse("claim-ada-2dl").unwrap()),
        };
        let names = templates.resolve_keeping(&kept, &user("ada-l"), &server(""), None).unwrap();
        assert_eq!(names.namespace, "jhub");
        assert_eq!(
            (names.pvc.as_str(), names.service_account.as_str()),
            ("claim-ada-2dl", "jhub-claim-ada-2dl")
        );
        assert_eq!(names.pod, "nb-ada-l");
    }
}
