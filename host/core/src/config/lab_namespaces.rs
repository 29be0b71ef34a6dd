//! The namespaces of labs: what `names.namespace` and the section `kubernetes` say together.

use super::{InvalidSetting, KubernetesConfig, NamespacePattern, NamespaceReclaim};
use crate::names::{NameError, NameTemplates, NamespaceName, ServerName, Username};

/// The namespaces in which labs may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabNamespaces {
    single: Option<NamespaceName>,
    /// Namespaces that are for labs whoever has made them.
    named: Vec<NamespacePattern>,
    /// The service's own namespace.
    service: NamespaceName,
}

impl LabNamespaces {
    /// Checks that the settings fit together. `written` is the template `names.namespace` as it was written.
    pub(super) fn parse(
        written: &str,
        names: &NameTemplates,
        kubernetes: &KubernetesConfig,
    ) -> Result<Self, InvalidSetting> {
        let constant = names.constant_namespace();
        let of_all = constant.clone().map(NamespacePattern::from);
        let of_labs: Vec<_> = kubernetes.existing_namespaces.iter().cloned().chain(of_all).collect();
        let problem = |message: String| Err(InvalidSetting::new("names.namespace", message));
        if constant.as_ref() == Some(&kubernetes.namespace) {
            return problem(format!(
                "{written:?} is the service's own namespace (kubernetes.namespace), which holds its records and the \
                 site's secrets; name another one for labs"
            ));
        }
        match kubernetes.namespaces {
            NamespaceReclaim::Delete if is_shared(names) => problem(
                "several labs share this namespace, so stopping one would delete the others; use {user_server}, or set \
                 kubernetes.namespaces to `retain`"
                    .to_owned(),
            ),
            NamespaceReclaim::Single if constant.is_none() => problem(format!(
                "{written:?} is not the same for all users, and kubernetes.namespaces is `single`; name the one \
                 namespace of all labs, or set kubernetes.namespaces to `delete` or `retain`"
            )),
            NamespaceReclaim::Single => Ok(Self { single: constant, named: of_labs, service: kubernetes.namespace.clone() }),
            NamespaceReclaim::Delete | NamespaceReclaim::Retain => {
                Ok(Self { single: None, named: of_labs, service: kubernetes.namespace.clone() })
            }
        }
    }

    /// The one namespace of all labs, with `kubernetes.namespaces: single`.
    pub fn single(&self) -> Option<&NamespaceName> {
        self.single.as_ref()
    }

    /// The namespaces that are for labs whoever has made them.
    pub fn named(&self) -> &[NamespacePattern] {
        &self.named
    }

    /// Refuses a namespace in which no lab may be. It may come from what is remembered of a server, and a template can
    /// give the service's own namespace for one particular user.
    pub fn check(&self, namespace: &NamespaceName) -> Result<(), NameError> {
        if *namespace == self.service {
            return Err(NameError::ServiceNamespace { namespace: namespace.clone() });
        }
        match &self.single {
            Some(single) if single != namespace => {
                Err(NameError::KeptElsewhere { kept: namespace.clone(), single: single.clone() })
            }
            _ => Ok(()),
        }
    }
}

/// True if several labs have the same namespace.
pub(super) fn is_shared(names: &NameTemplates) -> bool {
    let namespace = |user: &str, server: &str| {
        let user = Username::parse(user).ok()?;
        let server = ServerName::parse(server).ok()?;
        names
            .resolve(&user, &server, Some(user.as_str().len().try_into().ok()?))
            .ok()
            .map(|names| names.namespace)
    };
    let [first, second, other] = [namespace("ada", ""), namespace("ada", "second"), namespace("grace", "")];
    first.is_some() && (first == second || first == other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::NamesConfig;

    fn parse(template: &str, kubernetes: &str) -> Result<LabNamespaces, String> {
        let names = NamesConfig { namespace: template.into(), ..NamesConfig::default() };
        let names = NameTemplates::parse(&names).unwrap();
        let kubernetes = serde_saphyr::from_str(kubernetes).unwrap();
        LabNamespaces::parse(template, &names, &kubernetes).map_err(|problem| problem.to_string())
    }

    fn namespace(name: &str) -> NamespaceName {
        NamespaceName::parse(name).unwrap()
    }

    #[test]
    fn a_namespace_that_labs_share_must_not_be_deleted() {
        let problem = parse("labs-{username}", "{}").unwrap_err();
        assert!(problem.contains("kubernetes.namespaces to `retain`"), "{problem}");
        assert!(parse("labs-{username}", "{namespaces: retain}").is_ok());
    }

    #[test]
    fn the_single_namespace_is_one_for_all_users() {
        let problem = parse("labs-{username}", "{namespaces: single}").unwrap_err();
        insta::assert_snapshot!(problem, @r#"names.namespace: "labs-{username}" is not the same for all users, and kubernetes.namespaces is `single`; name the one namespace of all labs, or set kubernetes.namespaces to `delete` or `retain`"#);
        let single = |template: &str| parse(template, "{namespaces: single}").unwrap().single().cloned();
        assert_eq!(single("labs"), Some(namespace("labs")));
        assert_eq!(single("{hubnamespace}-labs"), Some(namespace("jupyterhub-labs")));
        assert_eq!(parse("labs", "{namespaces: retain}").unwrap().single(), None);
    }

    #[test]
    fn no_lab_is_in_the_service_s_own_namespace() {
        for namespaces in ["delete", "retain", "single"] {
            let own = format!("{{namespace: site, namespaces: {namespaces}}}");
            assert!(parse("site", &own).unwrap_err().contains("\"site\" is the service's own namespace"));
        }
        // Only the name of one user gives that namespace.
        let by_name = parse("{username}", "{namespace: site, namespaces: retain}").unwrap();
        assert!(matches!(by_name.check(&namespace("site")), Err(NameError::ServiceNamespace { .. })));
        assert_eq!(by_name.check(&namespace("ada")), Ok(()));
    }

    #[test]
    fn a_server_with_claims_elsewhere_gets_no_lab_in_the_single_namespace() {
        let single = parse("labs", "{namespaces: single}").unwrap();
        assert_eq!(single.check(&namespace("labs")), Ok(()));
        assert!(matches!(single.check(&namespace("jhub")), Err(NameError::KeptElsewhere { .. })));
    }
}
